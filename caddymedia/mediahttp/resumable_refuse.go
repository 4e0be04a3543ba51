package mediahttp

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/resumable"
)

// refuse responds with an error of the request.
func (t *tus) refuse(status int, message string) error {
	return t.refuseAs(status, aliases.Failures{{Reason: aliases.BadRequest, Message: message}})
}

func (t *tus) refuseWith(refused *refusal) error {
	return t.refuseAs(refused.status, aliases.Failures{{Reason: refused.reason, Message: refused.message}})
}

// fail responds with the failures of an item.
func (t *tus) fail(failures aliases.Failures) error { return t.refuseAs(statusOf(failures), failures) }

// refuseAs responds with failures. A HEAD that may succeed later has the status 423: after any other
// error tus-js-client forgets the upload and starts again at byte 0 (_resumeUpload in its
// lib/upload.ts). After 423 it repeats the HEAD.
func (t *tus) refuseAs(status int, failures aliases.Failures) error {
	if t.method == http.MethodHead && status >= http.StatusInternalServerError {
		status = http.StatusLocked
		if t.w.Header().Get("Retry-After") == "" {
			retryAfter(t.w, retryDelay(failures))
		}
	}
	return t.uploadRequest.refuse(t.service, t.w, t.r, status, failures)
}

// refuseError responds with an error of the state of an upload.
func (t *tus) refuseError(err error) error {
	for _, known := range []struct {
		err     error
		status  int
		message string
	}{
		{resumable.ErrUnknown, http.StatusNotFound, "there is no such upload, or it has expired: start a new one"},
		{resumable.ErrOffset, http.StatusConflict, "the upload has another offset: ask for it with HEAD"},
		{resumable.ErrTooLarge, http.StatusRequestEntityTooLarge, "more bytes than the upload has"},
		{resumable.ErrChecksum, statusChecksum, "the bytes do not have the checksum"},
		{resumable.ErrLength, http.StatusBadRequest, "the length of the upload is already another one"},
		{resumable.ErrParts, http.StatusBadRequest, "a part is missing, incomplete, or no partial upload"},
		{resumable.ErrRepeated, http.StatusBadRequest, "parts are repeated too often: send their bytes again"},
		{resumable.ErrScope, http.StatusForbidden, "the ticket is for other uploads"},
		{resumable.ErrSegments, http.StatusBadRequest, "the upload came in too many small pieces: send larger ones"},
		{resumable.ErrTooMany, http.StatusTooManyRequests, "the account, ticket or client has too many unfinished uploads: end some, or try again later"},
	} {
		if !errors.Is(err, known.err) {
			continue
		}
		if known.status == http.StatusTooManyRequests {
			retryAfter(t.w, tooManyRetry)
		}
		return t.refuse(known.status, known.message)
	}
	if ended, ok := errors.AsType[*endedError](err); ok {
		return t.refuse(http.StatusGone, ended.message)
	}
	if failures, ok := errors.AsType[aliases.Failures](err); ok {
		return t.fail(failures)
	}
	if failure, ok := errors.AsType[*aliases.Failure](err); ok {
		return t.fail(aliases.Failures{failure})
	}
	return t.fail(aliases.Failures{aliases.StorageFailure(err)})
}

// tooManyRetry is the Retry-After of an account with too many unfinished uploads.
const tooManyRetry = time.Minute
