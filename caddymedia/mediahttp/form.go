package mediahttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/service"
)

// formLimits bound the body of a form. A slow body would otherwise hold its connection and memory
// without limit.
type formLimits struct {
	bytes  int64
	fields int
	time   time.Duration
}

// smallForm are the limits of a form with a few fields.
var smallForm = formLimits{64 << 10, 1000, 10 * time.Second}

// ReadForm reads a small form, urlencoded or multipart, in which each of names must occur once. The
// message is empty if the form is complete. Otherwise it explains the error, and the body may not
// have been read to its end. now is the clock.
func ReadForm(w http.ResponseWriter, r *http.Request, now func() time.Time, names ...string) (form url.Values, status int, message string) {
	return smallForm.read(w, r, now, names...)
}

// ReadSet is [ReadForm] for a form with the names of up to 1,000 items.
func ReadSet(w http.ResponseWriter, r *http.Request, now func() time.Time) (form url.Values, status int, message string) {
	return setForm.read(w, r, now)
}

// read is [ReadForm] with other limits.
func (l formLimits) read(w http.ResponseWriter, r *http.Request, now func() time.Time, names ...string) (form url.Values, status int, message string) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	if httpx.IsEncoded(r.Header) {
		return nil, http.StatusUnsupportedMediaType, httpx.EncodedBody
	}
	httpx.Watch(r)
	body := http.MaxBytesReader(w, r.Body, l.bytes)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(now().Add(l.time)) // without deadlines those of the server hold
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	switch mediaType {
	case "application/x-www-form-urlencoded":
		form, err = l.urlencoded(body)
	case "multipart/form-data":
		form, err = l.multipart(multipart.NewReader(body, params["boundary"]))
	default:
		return nil, http.StatusUnsupportedMediaType, "the body must be application/x-www-form-urlencoded or multipart/form-data"
	}
	if err != nil {
		status, message = l.failure(err)
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

var errTooManyFields = errors.New("the form has too many fields")

func (l formLimits) urlencoded(body io.Reader) (url.Values, error) {
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	if bytes.Count(b, []byte("&")) >= l.fields {
		return nil, errTooManyFields
	}
	return url.ParseQuery(string(b))
}

// multipart ignores files and parts without a name.
func (l formLimits) multipart(parts *multipart.Reader) (url.Values, error) {
	form := url.Values{}
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return form, nil
		case err != nil:
			return nil, err
		case n == l.fields:
			return nil, errTooManyFields
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		if name := part.FormName(); name != "" && part.FileName() == "" {
			form.Add(name, string(value))
		}
	}
}

func (l formLimits) failure(err error) (status int, message string) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge, "the body is larger than " + bytesize.Format(l.bytes)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return http.StatusBadRequest, fmt.Sprintf("the body was not complete within %d seconds", l.time/time.Second)
	}
	if errors.Is(err, errTooManyFields) {
		return http.StatusBadRequest, fmt.Sprintf("the form has more than %d fields", l.fields)
	}
	return http.StatusBadRequest, "the body is malformed"
}

// repeated returns the first of names that is sent more than once; empty if there is none.
func repeated(values url.Values, names ...string) string {
	for _, name := range names {
		if len(values[name]) > 1 {
			return name
		}
	}
	return ""
}

// maxHeld is how long a request may hold memory while its client sends a form and reads the answer.
// The time of a set begins when it is deleted.
const maxHeld = 3 * time.Minute

var tooManyCalls = &refusal{http.StatusTooManyRequests, item.Busy, "the account has too many requests under way, try again later"}

// enterQueue waits until a request may hold n bytes for its form or its answer, as
// [service.Service.Enter]. leave must be called when the answer is written. Writes fail after
// [maxHeld]; those of a set only after [Handler.boundAnswer], as HTTP/2 aborts a request whose
// deadline passes.
func (h *Handler) enterQueue(
	running *service.Service, w http.ResponseWriter, r *http.Request, actor item.Actor, call service.Call, n int64,
) (leave func(), refused *refusal) {
	left, ok := running.Enter(r.Context(), actor, call, n)
	if !ok {
		httpx.RetryAfter(w, httpx.BusyRetry)
		return nil, tooManyCalls
	}
	if call != service.DeletedSet {
		h.boundAnswer(w)
	}
	return repetitionOf(r.Context()).untilSent(func() {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		left()
	}), nil
}

// boundAnswer makes writes of the answer fail after [maxHeld].
func (h *Handler) boundAnswer(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(h.options.Now().Add(maxHeld)) // without deadlines those of the server hold
}

// memory returns the largest body that the form of a request may have.
func (l formLimits) memory(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return l.bytes
	}
	return min(r.ContentLength, l.bytes)
}
