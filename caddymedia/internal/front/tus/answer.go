package tus

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// describe sets the headers of an upload.
func (q *request) describe(u *resumable.Upload) {
	header := q.w.Header()
	header.Set(headerOffset, strconv.FormatInt(u.Offset(), 10))
	if u.Length == resumable.Unknown {
		header.Set(headerDeferLength, "1")
	} else {
		header.Set(headerLength, strconv.FormatInt(u.Length, 10))
	}
	if u.Metadata != "" {
		header.Set(headerMetadata, u.Metadata)
	}
	switch {
	case u.Form == resumable.Partial:
		header.Set(headerConcat, "partial")
	case u.Concat != "":
		header.Set(headerConcat, u.Concat)
	}
	q.describeEnd(u)
}

// describeEnd sets the header of the expiry and those of a stored item.
func (q *request) describeEnd(u *resumable.Upload) {
	header := q.w.Header()
	header.Set(headerExpires, u.Expires().UTC().Format(http.TimeFormat))
	if u.Held != nil && u.Form != resumable.Partial {
		header.Set(headerHeld, u.ID)
	}
	item, ok := q.running.ItemOf(u, q.BaseURL)
	if !ok {
		return
	}
	if item.FullPath != "" { // its alias is configured
		header.Set(headerFullPath, item.FullPath)
	}
	header.Set(headerFilename, headerText(item.Filename))
	if item.WebP != "" {
		header.Set(headerWebP, item.WebP)
	}
}

// headerText returns a text with percent signs, control characters and everything beyond ASCII
// percent-encoded.
func headerText(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c == '%' || c < ' ' || c > '~' {
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c)|0x100, 16)[1:]))
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// requestError is the response to a request that is wrong in itself.
type requestError struct {
	status  int
	message string
}

// Error returns the message to the client.
func (r *requestError) Error() string { return r.message }

// badRequest returns the refusal of a malformed request.
func badRequest(message string) error { return &requestError{http.StatusBadRequest, message} }

// refusals are the responses to errors of the state of an upload.
var refusals = []struct {
	err error
	requestError
}{
	{resumable.ErrUnknown, requestError{http.StatusNotFound, "there is no such upload, or it has expired: start a new one"}},
	{resumable.ErrOffset, requestError{http.StatusConflict, "the upload has another offset: ask for it with HEAD"}},
	{resumable.ErrTooLarge, requestError{http.StatusRequestEntityTooLarge, "more bytes than the upload has"}},
	{resumable.ErrChecksum, requestError{statusChecksum, "the bytes do not have the checksum"}},
	{resumable.ErrLength, requestError{http.StatusBadRequest, "the length of the upload is already another one"}},
	{resumable.ErrParts, requestError{http.StatusBadRequest, "a part is missing, incomplete, or no partial upload"}},
	{resumable.ErrRepeated, requestError{http.StatusBadRequest, "parts are repeated too often: send their bytes again"}},
	{resumable.ErrScope, requestError{http.StatusForbidden, "the ticket is for other uploads"}},
	{resumable.ErrPieces, requestError{http.StatusBadRequest, "the upload came in too many small pieces: send larger ones"}},
	{resumable.ErrTooMany, requestError{http.StatusTooManyRequests, "the account, ticket or client has too many unfinished uploads: end some, or try again later"}},
}

// tooManyRetry is the Retry-After of an account with too many unfinished uploads.
const tooManyRetry = time.Minute

// refuse responds with an error: a *[requestError], one of the state of an upload, or failures of
// an item. It returns the error of a response.
//
// A HEAD that may succeed later has the status 423: after any other error tus-js-client forgets the
// upload and starts again at byte 0 (_resumeUpload in its lib/upload.ts). After 423 it repeats the
// HEAD.
func (q *request) refuse(ctx context.Context, err error) error {
	if failed, ok := errors.AsType[*httpx.Error](err); ok {
		return failed
	}
	status, failures := q.failuresOf(err)
	if status == http.StatusTooManyRequests {
		httpx.RetryAfter(q.w, tooManyRetry)
	}
	if q.method == http.MethodHead && status >= http.StatusInternalServerError {
		status = http.StatusLocked
		if q.w.Header().Get("Retry-After") == "" {
			httpx.RetryAfter(q.w, httpx.RetryDelay(failures))
		}
	}
	q.running.Observer().Failed(ctx, q.Kind.Name(), strconv.Itoa(status))
	return httpx.Refuse(q.w, q.r, q.Gate.Log, status, failures)
}

// failuresOf returns the status and the failures of an error.
func (q *request) failuresOf(err error) (status int, failures item.Failures) {
	refused, ok := errors.AsType[*requestError](err)
	for i := range refusals {
		if !ok && errors.Is(err, refusals[i].err) {
			refused, ok = &refusals[i].requestError, true
		}
	}
	if ok {
		return refused.status, item.Failures{{Reason: item.BadRequest, Message: refused.message}}
	}
	failures, ok = errors.AsType[item.Failures](err)
	if failure, one := errors.AsType[*item.Failure](err); !ok && one {
		failures = item.Failures{failure}
	} else if !ok {
		failures = item.Failures{item.StorageFailure(err)}
	}
	return httpx.StatusOf(failures), failures
}
