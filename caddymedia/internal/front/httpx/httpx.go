// Package httpx has what the HTTP endpoints of several packages share: JSON bodies, the responses
// to failed uploads, and request bodies that are bounded in time or not read to their end. It
// routes nothing and knows no credentials. Begin with [Answer] and [Refuse].
package httpx

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// Error is the error of a request without a response. Headers such as Retry-After are already set.
type Error struct {
	// Status of the response.
	Status int
	// Err is the cause. It may contain internal details.
	Err error
}

// Error returns the status and the cause.
func (e *Error) Error() string { return fmt.Sprintf("%d: %v", e.Status, e.Err) }

// HTTPStatus returns the status, to programs that cannot name this type.
func (e *Error) HTTPStatus() int { return e.Status }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Answer writes v as a JSON response. The error is an *[Error]; then nothing was written.
func Answer(w http.ResponseWriter, status int, v any) error {
	if err := WriteJSON(w, status, v); err != nil {
		return &Error{http.StatusInternalServerError, err}
	}
	return nil
}

// AnswerUnread is [Answer] to a request whose body is not read to its end. Over HTTP/1 it closes
// the connection. Otherwise the server would wait for the body before it responds: for a minute if
// the client waits for "100 Continue". The caller should call [Linger] after a response, as
// [AnswerAndLinger] does.
func AnswerUnread(w http.ResponseWriter, r *http.Request, status int, v any) error {
	closeUnread(w, r)
	return Answer(w, status, v)
}

// AnswerAndLinger is [AnswerUnread], and [Linger] after a response.
func AnswerAndLinger(w http.ResponseWriter, r *http.Request, now func() time.Time, status int, v any) error {
	err := AnswerUnread(w, r, status, v)
	if err == nil {
		Linger(w, r, now)
	}
	return err
}

// NoContent responds with 204 to a request whose body is not read.
func NoContent(w http.ResponseWriter, r *http.Request) {
	closeUnread(w, r)
	w.WriteHeader(http.StatusNoContent)
}

func closeUnread(w http.ResponseWriter, r *http.Request) {
	if hasUnread(r) {
		w.Header().Set("Connection", "close")
	}
}

// RetryAfter sets the header of this name, to at least a second.
func RetryAfter(w http.ResponseWriter, wait time.Duration) {
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
}

// AnswerBytes writes JSON in answer to a request whose body is not read.
func AnswerBytes(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	closeUnread(w, r)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

type itemsAnswer struct {
	Success bool         `json:"success"`
	Result  []itemResult `json:"result"`
	// CachedFor is how many seconds others may still see the replaced item; nil for an upload.
	CachedFor *int64 `json:"cached_for,omitempty"`
	// Trash is the ID of the replaced item in the trash; empty if it is not kept.
	Trash string `json:"trash,omitempty"`
}

type itemResult struct {
	FullPath string `json:"full_path"`
	Filename string `json:"filename"`
	WebP     string `json:"webp,omitempty"`
	// Renditions are addresses by the names of the renditions.
	Renditions map[string]string `json:"renditions,omitempty"`
	// Trash is the ID of the item that an upload has replaced.
	Trash string `json:"trash,omitempty"`
	*derived.Facts
}

type failuresAnswer struct {
	Success bool          `json:"success"`
	Errors  []itemFailure `json:"errors"`
}

type itemFailure struct {
	Message  string `json:"message"`
	Filename string `json:"filename"`
}

// AnswerItems responds with stored items.
func AnswerItems(w http.ResponseWriter, status int, items []upload.Item) error {
	return Answer(w, status, answerOf(items))
}

// heldAnswer is the response with held uploads.
type heldAnswer struct {
	Success bool         `json:"success"`
	Result  []heldResult `json:"result"`
}

type heldResult struct {
	Held        string `json:"held"`
	Name        string `json:"name"`
	Size        int64  `json:"size"`
	ContentType string `json:"content_type"`
	// ExpiresAt is in Unix seconds.
	ExpiresAt int64 `json:"expires_at"`
	// Those of an image whose alias has facts.
	Width     int    `json:"width,omitempty"`
	Height    int    `json:"height,omitempty"`
	ThumbHash string `json:"thumbhash,omitempty"`
}

// AnswerHeld responds with held uploads.
func AnswerHeld(w http.ResponseWriter, status int, uploads ...*resumable.Upload) error {
	answer := heldAnswer{Success: true, Result: make([]heldResult, len(uploads))}
	for i, u := range uploads {
		held := cmp.Or(u.Held, new(resumable.Held)) // it may have ended since
		answer.Result[i] = heldResult{
			Held: u.ID, Name: u.Filename, Size: u.Length, ContentType: held.ContentType, ExpiresAt: u.Expires().Unix(),
			Width: held.Width, Height: held.Height, ThumbHash: held.ThumbHash,
		}
	}
	return Answer(w, status, answer)
}

// AnswerReplaced responds with an item that replaces another one. Others may still see that one for
// some seconds.
func AnswerReplaced(w http.ResponseWriter, items []upload.Item, cachedFor int64) error {
	answer := answerOf(items)
	answer.CachedFor = &cachedFor
	for i := range answer.Result {
		answer.Trash, answer.Result[i].Trash = answer.Result[i].Trash, ""
	}
	return Answer(w, http.StatusOK, answer)
}

func answerOf(items []upload.Item) itemsAnswer {
	result := make([]itemResult, len(items))
	for i, item := range items {
		result[i] = itemResult{FullPath: item.FullPath, Filename: item.Filename, WebP: item.WebP, Renditions: item.Renditions, Trash: item.Trash, Facts: item.Facts}
	}
	return itemsAnswer{Success: true, Result: result}
}

// Refuse responds with the failures of an upload, and logs those that are not the caller's fault.
func Refuse(w http.ResponseWriter, r *http.Request, log *slog.Logger, status int, failures item.Failures) error {
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		RetryAfter(w, RetryDelay(failures))
	}
	failed := failuresAnswer{Errors: make([]itemFailure, len(failures))}
	for i, f := range failures {
		failed.Errors[i] = itemFailure{Message: f.Message, Filename: f.Filename}
		if f.Err != nil {
			level := slog.LevelWarn
			if isFault(f.Reason) {
				level = slog.LevelError
			}
			log.Log(r.Context(), level, f.Message, "status", status, "error", f.Err)
		}
	}
	return AnswerUnread(w, r, status, failed)
}

// isFault reports whether a failure is a fault of the service or of its storage.
func isFault(reason item.Reason) bool {
	switch reason {
	case item.Busy, item.RemoteFailed, item.RemoteSlow:
		return false
	default:
		return statuses[reason] >= http.StatusInternalServerError
	}
}

// RetryDelay is the Retry-After value of failures. The encoding queue drains in seconds, and early
// retries only lengthen it.
func RetryDelay(failures item.Failures) time.Duration {
	for _, f := range failures {
		if f.Reason == item.Busy || errors.Is(f.Err, check.ErrUnanswered) {
			return BusyRetry
		}
	}
	return time.Second
}

// BusyRetry is the Retry-After value of a request that finds a queue full, or a check without an
// answer.
const BusyRetry = 5 * time.Second

// statuses of the reasons. Of several failures the highest counts.
var statuses = map[item.Reason]int{
	item.Internal:      http.StatusInternalServerError,
	item.BadRequest:    http.StatusBadRequest,
	item.Unauthorized:  http.StatusUnauthorized,
	item.Forbidden:     http.StatusForbidden,
	item.Conflict:      http.StatusConflict,
	item.TooLarge:      http.StatusRequestEntityTooLarge,
	item.BadContent:    http.StatusUnsupportedMediaType,
	item.StorageFailed: http.StatusBadGateway,
	item.Unavailable:   http.StatusServiceUnavailable,
	item.NoSpace:       http.StatusInsufficientStorage,
	item.Busy:          http.StatusServiceUnavailable,
	item.Missing:       http.StatusNotFound,
	item.Changed:       http.StatusPreconditionFailed,
	item.RemoteFailed:  http.StatusBadGateway,
	item.RemoteSlow:    http.StatusGatewayTimeout,
	item.OtherRequest:  http.StatusUnprocessableEntity,
}

// StatusOf returns the highest status of several failures.
func StatusOf(failures item.Failures) int {
	highest := 0
	for _, f := range failures {
		highest = max(highest, statuses[f.Reason])
	}
	return highest
}

// WriteJSON answers a request with v as a line of JSON. If v cannot be encoded, it returns an error
// and writes nothing.
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

// ReadJSON decodes the body of a request into v. The body must be a single JSON value of at most
// limit bytes without unknown fields. Numbers keep their spelling. The error is an
// [http.MaxBytesError] for a larger body; other errors may quote the body.
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

// Bounds of [Linger]. A client that sends an image, or reads the response while it sends, receives
// the response.
const (
	lingerTime  = 3 * time.Second
	stopTime    = 30 * time.Second // over HTTP/3: browsers read the response when they have sent the body
	lingerBytes = 96 << 20
)

// EncodedBody refuses a request whose body [IsEncoded].
const EncodedBody = "send the body as it is, without Content-Encoding"

// IsEncoded reports whether the body of a request with a header is compressed.
func IsEncoded(header http.Header) bool {
	return slices.ContainsFunc(header.Values("Content-Encoding"), func(encoding string) bool {
		encoding = strings.TrimSpace(encoding)
		return encoding != "" && !strings.EqualFold(encoding, "identity")
	})
}

// Linger reads a bounded part of the body after the response, so that the client does not lose it.
//
// Over HTTP/1 it does so after [AnswerUnread]: closing the connection at once would reset it, RFC
// 9112 section 9.6. Over HTTP/3 it does so after each response but to GET and HEAD: the server
// would stop the body, and Chromium 156 then often waits for the response without end. Beyond the
// bounds Linger panics there with [http.ErrAbortHandler], which is an error for the client.
// Otherwise it does nothing. The caller should hold no resources meanwhile.
func Linger(w http.ResponseWriter, r *http.Request, now func() time.Time) {
	limit := lingerTime
	stops := r.ProtoMajor == 3 && r.Method != http.MethodGet && r.Method != http.MethodHead
	switch {
	case stops:
		limit = stopTime
	case !hasUnread(r) || w.Header().Get("Connection") != "close":
		return
	}
	body, watched := r.Body.(*watchedBody)
	waits := r.Header.Get("Expect") != "" && (!watched || !body.begun)
	control := http.NewResponseController(w)
	if control.Flush() != nil || waits || control.SetReadDeadline(now().Add(limit)) != nil {
		return
	}
	_, err := io.CopyN(io.Discard, r.Body, lingerBytes)
	if stops && (err == nil || errors.Is(err, os.ErrDeadlineExceeded)) {
		panic(http.ErrAbortHandler)
	}
}

func hasUnread(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody
}

// Watch makes [Linger] know whether the body of a request has been read from.
func Watch(r *http.Request) { r.Body = &watchedBody{ReadCloser: r.Body} }

// watchedBody records whether the body has been read from.
type watchedBody struct {
	io.ReadCloser
	begun bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.begun = true
	return b.ReadCloser.Read(p)
}

// TimedBody is the body of an upload with a time limit. The server's own limits are for silent
// clients. A client that sends a byte now and then could otherwise hold the upload, and its
// configuration, without limit.
type TimedBody struct {
	io.ReadCloser
	writer http.ResponseWriter
	limit  time.Duration
	over   atomic.Bool

	mu      sync.Mutex
	stopped bool // the request no longer reads the body
}

// NewTimedBody returns body with a time limit. The caller must call stop after reading the body.
func NewTimedBody(w http.ResponseWriter, body io.ReadCloser, limit time.Duration) (timed *TimedBody, stop func()) {
	b := &TimedBody{ReadCloser: body, writer: w, limit: limit}
	timer := time.AfterFunc(limit, b.End)
	return b, func() {
		timer.Stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.stopped = true
	}
}

// End makes Read fail. The deadline ends a blocked one. If it cannot be set, the server's limit for
// silence applies. After stop, the connection belongs to another request.
func (b *TimedBody) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	b.over.Store(true)
	_ = http.NewResponseController(b.writer).SetReadDeadline(time.Unix(1, 0))
}

// IsOver reports whether the body was ended.
func (b *TimedBody) IsOver() bool { return b.over.Load() }

// Read reads from the body. It fails after the time limit, and after [TimedBody.End].
func (b *TimedBody) Read(p []byte) (int, error) {
	if b.over.Load() {
		return 0, b.failure()
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.over.Load() {
		return n, b.failure()
	}
	return n, err
}

func (b *TimedBody) failure() error {
	return &item.Failure{Reason: item.BadRequest, Message: "the upload took longer than " + b.limit.String()}
}
