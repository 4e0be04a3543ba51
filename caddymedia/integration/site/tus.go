package site

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Tus is a client of one resumable upload. It is for one goroutine.
type Tus struct {
	HTTP *http.Client
	// Base is the scheme, host and port of the service.
	Base  string
	Token string
	// Kind of the item; "file" if empty.
	Kind string
	// Location is the path of the upload; empty before [Tus.Create].
	Location string
	// Acknowledged is the largest offset that a response had.
	Acknowledged int64
	// Filename is that of the stored item; empty before.
	Filename string
}

// TusError is a response that is no success.
type TusError struct {
	Status int
	Body   string
}

func (e TusError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Body) }

// ErrWentBack means that the service has lost bytes that it had acknowledged.
var ErrWentBack = errors.New("an acknowledged offset went back")

// UnknownLength creates an upload whose length is sent later.
const UnknownLength = -1

// Create creates an upload of a length, or of UnknownLength. metadata are keys and values in turn.
func (u *Tus) Create(ctx context.Context, length int64, metadata ...string) error {
	kind := u.Kind
	if kind == "" {
		kind = "file"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.Base+"/api/upload/"+kind+"/resumable", nil)
	if err != nil {
		return err
	}
	pairs := make([]string, 0, len(metadata)/2)
	for i := 0; i < len(metadata); i += 2 {
		pairs = append(pairs, metadata[i]+" "+base64.StdEncoding.EncodeToString([]byte(metadata[i+1])))
	}
	req.Header.Set("Upload-Metadata", strings.Join(pairs, ","))
	if length == UnknownLength {
		req.Header.Set("Upload-Defer-Length", "1")
	} else {
		req.Header.Set("Upload-Length", strconv.FormatInt(length, 10))
	}
	header, err := u.do(req, http.StatusCreated)
	if err != nil {
		return err
	}
	u.Location = header.Get("Location")
	_, err = u.offset(header)
	return err
}

// Head returns the offset of the upload.
func (u *Tus) Head(ctx context.Context) (offset int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, u.Base+u.Location, nil)
	if err != nil {
		return 0, err
	}
	header, err := u.do(req, http.StatusOK)
	if err != nil {
		return 0, err
	}
	return u.offset(header)
}

// Patch sends size bytes at an offset. headers are names and values in turn.
func (u *Tus) Patch(ctx context.Context, offset int64, body io.Reader, size int64, headers ...string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, u.Base+u.Location, body)
	if err != nil {
		return err
	}
	req.ContentLength = size
	if size == 0 {
		req.Body = http.NoBody
	}
	req.Header.Set("Content-Type", "application/offset+octet-stream")
	req.Header.Set("Upload-Offset", strconv.FormatInt(offset, 10))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	header, err := u.do(req, http.StatusNoContent)
	if err != nil {
		return err
	}
	got, err := u.offset(header)
	if err == nil && got != offset+size {
		err = fmt.Errorf("the offset is %d after %d bytes at %d", got, size, offset)
	}
	return err
}

// SHA256 returns the header of the checksum of b.
func SHA256(b []byte) (name, value string) {
	sum := sha256.Sum256(b)
	return "Upload-Checksum", "sha256 " + base64.StdEncoding.EncodeToString(sum[:])
}

func (u *Tus) do(req *http.Request, want int) (http.Header, error) {
	req.Header.Set("Tus-Resumable", "1.0.0")
	req.Header.Set("Authorization", "Bearer "+u.Token)
	r, err := u.HTTP.Do(req)
	if err != nil {
		return nil, UnansweredError{err}
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil { // the connection was cut within the answer
		return nil, UnansweredError{err}
	}
	if r.StatusCode != want {
		return nil, TusError{r.StatusCode, string(body)}
	}
	return r.Header, nil
}

// offset returns the offset of a response, which must not be less than that of an earlier one.
func (u *Tus) offset(header http.Header) (int64, error) {
	offset, err := strconv.ParseInt(header.Get("Upload-Offset"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the header Upload-Offset: %w", err)
	}
	if offset < u.Acknowledged {
		return 0, fmt.Errorf("%w from %d to %d", ErrWentBack, u.Acknowledged, offset)
	}
	u.Acknowledged = offset
	if name := header.Get("Media-Filename"); name != "" {
		if u.Filename != "" && u.Filename != name {
			return 0, fmt.Errorf("the item is %q and was %q", name, u.Filename)
		}
		u.Filename = name
	}
	return offset, nil
}
