package mediahttp

import (
	"crypto/sha1" //nolint:gosec // the protocol demands it
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/resumable"
)

func isTusBody(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && mediaType == tusType
}

// patch adds the bytes of the request to the upload, and finishes it with its last ones.
func (t *tus) patch(u *resumable.Upload) error {
	if !isTusBody(t.r) {
		return t.refuse(http.StatusUnsupportedMediaType, "the Content-Type must be "+tusType)
	}
	if len(u.Parts) > 0 {
		return t.refuse(http.StatusForbidden, "a final upload has no bytes of its own")
	}
	if t.caller.UsedUp() && !u.Complete() { // its item may be the one that is counted
		return t.refuseWith(usedUp)
	}
	text, err := single(t.r.Header, headerOffset)
	if err == nil && text == "" {
		err = errors.New("Upload-Offset is missing")
	}
	var offset int64
	if err == nil {
		offset, err = number(headerOffset, text)
	}
	if err != nil {
		return t.refuseWith(badRequest(err))
	}
	if offset != u.Offset() {
		return t.refuseError(resumable.ErrOffset)
	}
	if err := t.add(u, offset); err != nil {
		return t.refuseError(err)
	}
	if err := t.finish(u); err != nil {
		return t.refuseError(err)
	}
	t.w.Header().Set(headerOffset, strconv.FormatInt(u.Offset(), 10))
	t.describeEnd(u)
	t.w.WriteHeader(http.StatusNoContent)
	return nil
}

// add receives the body of the request and sets the length. With a checksum, the length is set after
// the bytes: a mismatch must not change the upload.
func (t *tus) add(u *resumable.Upload, offset int64) error {
	if u.Outcome != nil {
		if !t.isEmpty() {
			return resumable.ErrTooLarge
		}
		return nil
	}
	length, err := t.length(u)
	if err != nil {
		return err
	}
	verified := t.r.Header.Get(headerChecksum) != ""
	if length != resumable.Unknown && !verified {
		if err := u.SetLength(t.r.Context(), length); err != nil {
			return err
		}
	}
	err = t.append(u, offset, length)
	if err == nil && length != resumable.Unknown && verified {
		err = u.SetLength(t.r.Context(), length)
	}
	return err
}

// length returns the length in the request, for an upload that was created without one.
func (t *tus) length(u *resumable.Upload) (int64, error) {
	text, err := single(t.r.Header, headerLength)
	if err != nil || text == "" {
		return resumable.Unknown, failureOf(err)
	}
	length, err := number(headerLength, text)
	switch {
	case err != nil:
		return 0, failureOf(err)
	case u.Length != resumable.Unknown && length != u.Length:
		return 0, resumable.ErrLength
	case length < u.Offset():
		return 0, failureOf(errors.New("Upload-Length is less than the bytes that the upload has"))
	case u.Length == resumable.Unknown && length > t.limit(&u.Record):
		return 0, resumable.ErrTooLarge
	}
	return length, nil
}

// failureOf returns the failure of a malformed request; nil if err is nil.
func failureOf(err error) error {
	if err == nil {
		return nil
	}
	return &aliases.Failure{Reason: aliases.BadRequest, Message: err.Error()}
}

// limit returns the largest length of an upload of the caller.
func (t *tus) limit(rec *resumable.Record) int64 {
	forced := forcedBy(t.caller)
	alias, ok := t.service.Alias(t.kind, rec.Alias)
	if !ok || rec.Partial && forced.Alias == "" { // the alias of the final upload is not known
		return forced.Limit(t.maxSize())
	}
	return forced.Limit(alias.MaxSize)
}

// append receives the body of the request behind offset. length is that in the request.
func (t *tus) append(u *resumable.Upload, offset, length int64) error {
	ended, ok := t.service.BeginUpload(t.actor)
	if !ok {
		retryAfter(t.w, time.Second)
		return &aliases.Failure{Reason: aliases.Busy, Message: "the account has too many uploads under way, try again later"}
	}
	defer ended()
	sum, newHash, err := t.checksum()
	if err != nil {
		return failureOf(err)
	}
	limit := t.limit(&u.Record)
	if known := max(u.Length, length); known != resumable.Unknown {
		limit = known
	}
	if t.r.ContentLength > limit-offset {
		return resumable.ErrTooLarge
	}
	t.r.Body = &watchedBody{ReadCloser: t.r.Body}
	timed, stop := newTimedBody(t.w, t.r.Body, time.Duration(t.service.Limits().MaxUploadTime))
	defer stop()
	body := resumable.Body{
		Reader: timed, Offset: offset, Limit: limit, Sum: sum, Interrupt: timed.end,
		Reserve: func() (func(), error) {
			release, ok := t.service.ReserveFile(t.actor)
			if !ok {
				return nil, &aliases.Failure{Reason: aliases.Busy, Message: "too many uploads are under way, try again later"}
			}
			return release, nil
		},
	}
	if sum != nil {
		body.Hash = newHash()
	}
	err = u.Append(t.r.Context(), body)
	if _, ok := errors.AsType[*resumable.BodyError](err); !ok {
		return err
	}
	// Clients continue after 503. After 400, tus-js-client ends the upload.
	if timed.over.Load() || errors.Is(err, os.ErrDeadlineExceeded) {
		return &aliases.Failure{Reason: aliases.Unavailable, Message: "the request took too long: continue the upload"}
	}
	return &aliases.Failure{Reason: aliases.BadRequest, Message: "the body ends too early: continue the upload", Err: err}
}

// checksum reads the header Upload-Checksum. sum is nil without one.
func (t *tus) checksum() (sum []byte, newHash func() hash.Hash, err error) {
	value, err := single(t.r.Header, headerChecksum)
	if err != nil || value == "" {
		return nil, nil, err
	}
	algorithm, encoded, _ := strings.Cut(value, " ")
	switch algorithm {
	case "sha1":
		newHash = sha1.New
	case "sha256":
		newHash = sha256.New
	default:
		return nil, nil, errors.New("Upload-Checksum names an unknown algorithm: use " + strings.ReplaceAll(tusChecksums, ",", " or "))
	}
	sum, err = base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(sum) != newHash().Size() {
		return nil, nil, errors.New("Upload-Checksum is malformed: it is an algorithm and a checksum in Base64")
	}
	return sum, newHash, nil
}
