package tus

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// patch adds the bytes of the request to the upload, and finishes it with its last ones.
func (q *request) patch(ctx context.Context, u *resumable.Upload) error {
	if !hasBodyType(q.r.Header) {
		return &requestError{http.StatusUnsupportedMediaType, "the Content-Type must be " + bodyType}
	}
	if u.Form == resumable.Final {
		return &requestError{http.StatusForbidden, "a final upload has no bytes of its own"}
	}
	if q.UsedUp() && !u.Complete() { // its item may be the one that is counted
		return resumable.Uncounted(access.ErrUsedUp)
	}
	offset, err := readOffset(q.r.Header)
	if err != nil {
		return err
	}
	if offset != u.Offset() {
		return resumable.ErrOffset
	}
	if err := q.add(ctx, u, offset); err != nil {
		return err
	}
	if err := q.finish(ctx, u, resumable.RecordRefusals); err != nil {
		return err
	}
	q.w.Header().Set(headerOffset, strconv.FormatInt(u.Offset(), 10))
	q.describeEnd(u)
	q.w.WriteHeader(http.StatusNoContent)
	return nil
}

// add receives the body of the request and sets the length. With a checksum, the length is set
// after the bytes: a mismatch must not change the upload.
func (q *request) add(ctx context.Context, u *resumable.Upload, offset int64) error {
	if u.Outcome != nil {
		if !q.isEmpty() {
			return resumable.ErrTooLarge
		}
		return nil
	}
	length, err := q.length(u)
	if err != nil {
		return err
	}
	isVerified := q.r.Header.Get(headerChecksum) != ""
	if length != resumable.Unknown && !isVerified {
		if err := u.SetLength(ctx, length); err != nil {
			return err
		}
	}
	err = q.receive(ctx, u, offset, length)
	if err == nil && length != resumable.Unknown && isVerified {
		err = u.SetLength(ctx, length)
	}
	return err
}

// length returns the length in the request, for an upload that was created without one.
func (q *request) length(u *resumable.Upload) (int64, error) {
	text, err := single(q.r.Header, headerLength)
	if err != nil || text == "" {
		return resumable.Unknown, err
	}
	length, err := number(headerLength, text)
	switch {
	case err != nil:
		return 0, err
	case u.Length != resumable.Unknown && length != u.Length:
		return 0, resumable.ErrLength
	case length < u.Offset():
		return 0, badRequest("Upload-Length is less than the bytes that the upload has")
	case u.Length == resumable.Unknown && length > q.limit(&u.Record):
		return 0, resumable.ErrTooLarge
	}
	return length, nil
}

// receive adds the body of the request to the upload behind offset. length is that in the request.
func (q *request) receive(ctx context.Context, u *resumable.Upload, offset, length int64) error {
	if httpx.IsEncoded(q.r.Header) {
		return &requestError{http.StatusUnsupportedMediaType, httpx.EncodedBody}
	}
	ended, refused := q.BeginPart(q.w, resumable.TicketParts)
	if refused != nil {
		return refused.Failure
	}
	defer ended()
	sum, newHash, err := readChecksum(q.r.Header)
	if err != nil {
		return err
	}
	limit := q.limit(&u.Record)
	if known := max(u.Length, length); known != resumable.Unknown {
		limit = known
	}
	if q.r.ContentLength > limit-offset {
		return resumable.ErrTooLarge
	}
	httpx.Watch(q.r)
	timed, stop := httpx.NewTimedBody(q.w, q.r.Body, q.running.UploadTime(q.Ticket))
	defer stop()
	body := resumable.Body{
		Reader: timed, Offset: offset, Limit: limit, Sum: sum, Interrupt: timed.End,
		Reserve: func() (func(), error) { return q.running.ReserveFile(q.Actor) },
	}
	if sum != nil {
		body.Hash = newHash()
	}
	err = u.Append(ctx, body)
	if _, ok := errors.AsType[*resumable.BodyError](err); !ok {
		return err
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok { // of the site
		return &requestError{
			http.StatusRequestEntityTooLarge,
			"the site takes no request above " + bytesize.Format(tooLarge.Limit) + ": send smaller chunks",
		}
	}
	// Clients continue after 503. After 400, tus-js-client ends the upload.
	if timed.IsOver() || errors.Is(err, os.ErrDeadlineExceeded) {
		return &item.Failure{Reason: item.Unavailable, Message: "the request took too long: continue the upload"}
	}
	return &item.Failure{Reason: item.BadRequest, Message: "the body ends too early: continue the upload", Err: err}
}

// isEmpty reports whether the request has no body. The length of one over HTTP/3 may be unknown.
func (q *request) isEmpty() bool {
	if q.r.ContentLength >= 0 || q.r.Body == nil {
		return q.r.ContentLength <= 0
	}
	body, stop := httpx.NewTimedBody(q.w, q.r.Body, emptyTime)
	defer stop()
	n, err := io.ReadFull(body, make([]byte, 1))
	return n == 0 && errors.Is(err, io.EOF)
}

// emptyTime bounds the wait for the end of an empty body.
const emptyTime = 5 * time.Second
