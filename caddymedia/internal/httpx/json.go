// Package httpx has what the HTTP endpoints of several packages share: JSON bodies, the responses to failed
// uploads, and request bodies that are bounded in time or not read to their end.
package httpx

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// WriteJSON answers a request with v as a line of JSON. If v cannot be encoded, it returns an error and
// writes nothing.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // people read messages such as "send Bearer <token>" in a shell
	if err := encoder.Encode(v); err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(body.Len()))
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = body.WriteTo(w) // the client may be gone
	return nil
}

// ReadJSON decodes the body of a request into v. The body must be a single JSON value of at most limit
// bytes without unknown fields. Numbers keep their spelling. The error is an [http.MaxBytesError]
// for a larger body; other errors may quote the body.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return err
	}
	switch _, err := decoder.Token(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	return errors.New("more than one JSON value")
}
