package caller

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
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
)

// FormLimits bound the body of a form. A slow body would otherwise hold its connection and memory
// without limit.
type FormLimits struct {
	Bytes  int64
	Fields int
	Time   time.Duration // for the whole body
}

// SmallForm are the limits of a form with a few fields.
var SmallForm = FormLimits{64 << 10, 1000, 10 * time.Second}

// Read reads a form, urlencoded or multipart, in which each of names must occur once. The message
// is empty if the form is complete. Otherwise it explains the error, and the body may not have been
// read to its end. now is the clock.
func (l FormLimits) Read(w http.ResponseWriter, r *http.Request, now func() time.Time, names ...string) (form url.Values, status int, message string) {
	mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		mediaType = ""
	}
	if httpx.IsEncoded(r.Header) {
		return nil, http.StatusUnsupportedMediaType, httpx.EncodedBody
	}
	httpx.Watch(r)
	body := http.MaxBytesReader(w, r.Body, l.Bytes)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(now().Add(l.Time)) // without deadlines those of the server hold
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

func (l FormLimits) urlencoded(body io.Reader) (url.Values, error) {
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	if bytes.Count(b, []byte("&")) >= l.Fields {
		return nil, errTooManyFields
	}
	return url.ParseQuery(string(b))
}

// multipart ignores files and parts without a name.
func (l FormLimits) multipart(parts *multipart.Reader) (url.Values, error) {
	form := url.Values{}
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return form, nil
		case err != nil:
			return nil, err
		case n == l.Fields:
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

func (l FormLimits) failure(err error) (status int, message string) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok { // of the form, or of the site
		return http.StatusRequestEntityTooLarge, "the body is larger than " + bytesize.Format(tooLarge.Limit)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return http.StatusBadRequest, fmt.Sprintf("the body was not complete within %d seconds", l.Time/time.Second)
	}
	if errors.Is(err, errTooManyFields) {
		return http.StatusBadRequest, fmt.Sprintf("the form has more than %d fields", l.Fields)
	}
	return http.StatusBadRequest, "the body is malformed"
}

// SentTwice returns the first of names that is sent more than once; empty if there is none.
func SentTwice(values url.Values, names ...string) string {
	for _, name := range names {
		if len(values[name]) > 1 {
			return name
		}
	}
	return ""
}

// Memory returns the largest body that the form of a request may have.
func (l FormLimits) Memory(r *http.Request) int64 {
	if r.ContentLength < 0 {
		return l.Bytes
	}
	return min(r.ContentLength, l.Bytes)
}

// FormFields reads optional fields of a form. An empty field counts as missing.
type FormFields struct {
	Form    url.Values
	Problem string // the first one, for the caller; empty if there is none
}

// Text returns the value of a field, fallback if it is missing.
func (f *FormFields) Text(name, fallback string) string {
	if len(f.Form[name]) > 1 {
		f.Fail("the field " + name + " is sent twice")
	}
	if value := f.Form.Get(name); value != "" {
		return value
	}
	return fallback
}

// Number returns the value of a field from 1 to most, fallback if it is missing.
func (f *FormFields) Number(name string, fallback, most int64) int64 {
	text := f.Text(name, "")
	if text == "" {
		return fallback
	}
	value, err := strconv.ParseUint(text, 10, 63)
	if err != nil || value == 0 || int64(value) > most {
		f.Fail(fmt.Sprintf("the field %s must be a whole number from 1 to %d", name, most))
		return fallback
	}
	return int64(value)
}

// Fail notes a problem of the form.
func (f *FormFields) Fail(problem string) {
	if f.Problem == "" {
		f.Problem = problem
	}
}

// FormFailure is the response to a refused request with a small form.
type FormFailure struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

// RefuseForm responds to a request with a small form with an error.
func RefuseForm(running *service.Service, w http.ResponseWriter, r *http.Request, endpoint string, status int, message string) error {
	running.Observer().Failed(r.Context(), endpoint, strconv.Itoa(status))
	return httpx.AnswerUnread(w, r, status, FormFailure{Message: message})
}
