package mediahttp

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/httpx"
)

const (
	// maxForm is the largest body of a form in bytes.
	maxForm = 64 << 10
	// formTime bounds the time to receive the body. A slow body would otherwise hold its connection
	// and memory without limit.
	formTime = 10 * time.Second
)

// ReadForm reads a small form, urlencoded or multipart, in which each of names must occur once. The
// message is empty if the form is complete. Otherwise it explains the error, and the body may not
// have been read to its end. now is the clock.
func ReadForm(w http.ResponseWriter, r *http.Request, now func() time.Time, names ...string) (form url.Values, status int, message string) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	httpx.Watch(r)
	body := http.MaxBytesReader(w, r.Body, maxForm)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(now().Add(formTime)) // without deadlines those of the server hold
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	switch mediaType {
	case "application/x-www-form-urlencoded":
		var b []byte
		if b, err = io.ReadAll(body); err == nil {
			form, err = url.ParseQuery(string(b))
		}
	case "multipart/form-data":
		var parts *multipart.Form
		if parts, err = multipart.NewReader(body, params["boundary"]).ReadForm(maxForm); err == nil {
			form = parts.Value
		}
	default:
		return nil, http.StatusUnsupportedMediaType, "the body must be application/x-www-form-urlencoded or multipart/form-data"
	}
	if err != nil {
		status, message = formFailure(err)
		return nil, status, message
	}
	for _, name := range names {
		if len(form[name]) > 1 {
			return nil, http.StatusBadRequest, "the field " + name + " is sent twice"
		}
		if form.Get(name) == "" {
			return nil, http.StatusBadRequest, "the field " + name + " is missing"
		}
	}
	return form, 0, ""
}

func formFailure(err error) (status int, message string) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge, "the body is larger than 64 KiB"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return http.StatusBadRequest, "the body was not complete within 10 seconds"
	}
	return http.StatusBadRequest, "the body is malformed"
}
