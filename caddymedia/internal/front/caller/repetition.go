package caller

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/front/httpx"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// Headers of requests that may be repeated, and of answers that are sent again.
const (
	HeaderRetryKey = "Idempotency-Key"
	HeaderReplayed = "Idempotency-Replayed"

	// maxRetryKey is the length of the longest key.
	maxRetryKey = 255
	// maxKeptAnswer is the size in bytes of the largest answer that is kept. A request with a
	// larger one is carried out again, and finds the items that it has stored.
	maxKeptAnswer = 64 << 10
)

// keptHeaders are the headers of an answer that are kept with it.
var keptHeaders = []string{"Cache-Control", "Content-Type", "Location", "X-Content-Type-Options"}

// keptAnswer is the answer to a request with an Idempotency-Key.
type keptAnswer struct {
	Alias  string            `json:"alias,omitempty"` // of the items that were stored
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
}

// Repetition is a request that may be repeated under its Idempotency-Key. These steps, in this
// order, make it exact however often and wherever an attempt ends:
//   - The key is leased to one attempt at a time. An attempt that has lost the lease changes
//     nothing more, and undoes nothing.
//   - Before something changes, the request is kept with the time of its first attempt. A later one
//     makes the same names with it, and finds what is stored under them since.
//   - The answer is kept before it is sent.
//
// A nil repetition is that of a request without a key.
type Repetition struct {
	gate    *Gate
	attempt *access.Attempt // nil if the request is refused
	answer  *keptAnswer     // of an earlier attempt; nil if there is none
	id      string          // of the request and its first attempt, in letters and digits
	alias   string          // of the items that are about to be stored
	unused  bool            // nothing is stored by this attempt, nor ever will be
	undone  atomic.Bool     // a part of the request has failed, although the answer is a success
	sent    []func()        // called when the answer is sent
}

// untilSent returns release, for a request without a key. Otherwise release is called when the
// answer is sent: the answer is held back until then.
func (rep *Repetition) untilSent(release func()) func() {
	if rep == nil {
		return release
	}
	rep.sent = append(rep.sent, release)
	return func() {}
}

// IsRepeated reports whether an earlier attempt may have changed something.
func (rep *Repetition) IsRepeated() bool {
	return rep.IsAnswered() || rep != nil && rep.attempt != nil && rep.attempt.IsRepeated
}

// IsLost reports whether another attempt may have taken over.
func (rep *Repetition) IsLost() bool {
	return rep != nil && rep.attempt != nil && rep.attempt.IsLost()
}

// ID returns the ID of the request and its first attempt, in letters and digits.
func (rep *Repetition) ID() string { return rep.id }

// Began returns when the first attempt began.
func (rep *Repetition) Began() time.Time { return rep.attempt.Began }

// Undone says that a part of the request has failed, although the answer is a success.
func (rep *Repetition) Undone() {
	if rep != nil {
		rep.undone.Store(true)
	}
}

// IsAnswered reports whether an earlier attempt has succeeded.
func (rep *Repetition) IsAnswered() bool { return rep != nil && rep.answer != nil }

// Admit authenticates a request, and serves it once for each Idempotency-Key. The endpoint must
// refuse a request whose permit is refused, and replay the answer of one that has it.
func (g *Gate) Admit(
	running *service.Service, w http.ResponseWriter, r *http.Request, origin item.Origin, authenticate Authenticator,
	serve func(*Permit, http.ResponseWriter, *http.Request) error,
) error {
	if len(r.Header.Values(HeaderRetryKey)) == 0 || slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method) {
		return serve(g.Permit(running, r, origin, authenticate), w, r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	rep := &Repetition{gate: g}
	defer func() {
		for _, release := range rep.sent {
			release()
		}
	}()
	repeatable := r.WithContext(storagedrivers.WithLease(ctx, rep.IsLost))
	defer func() { r.Body = repeatable.Body }() // it may be watched now
	p := g.Permit(running, repeatable, origin, authenticate)
	p.Repetition = rep
	if p.Refused == nil {
		p.Refused = rep.begin(p, w, repeatable, cancel)
	}
	if p.Refused != nil || rep.IsAnswered() {
		return serve(p, w, repeatable)
	}
	return rep.run(w, repeatable, func(w http.ResponseWriter) error { return serve(p, w, repeatable) })
}

// begin begins an attempt, or returns the refusal of its key. lost is called if another attempt
// takes over.
func (rep *Repetition) begin(p *Permit, w http.ResponseWriter, r *http.Request, lost func()) *Refusal {
	keys := r.Header.Values(HeaderRetryKey)
	if len(keys) > 1 || !isRetryKey(keys[0]) {
		return Refuse(
			http.StatusBadRequest, item.BadRequest, "the header Idempotency-Key is sent once, with 1 to 255 visible ASCII characters",
		)
	}
	account, owner := p.Account.APIKey, p.Account.User
	if p.Ticket != nil {
		owner = "\n" + p.Ticket.HexID()
	}
	id := access.RequestID(string(p.Actor.Origin), account, owner, keys[0], r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var err error
	rep.attempt, err = p.Service.Issuer().Attempt(r.Context(), access.Request{
		ID: id, Account: account, Owner: owner, Fingerprint: fmt.Sprint(max(r.ContentLength, -1), " ", mediaType),
	}, lost)
	if err == nil {
		// The items outlive the key, which may then be that of another request.
		first := access.RequestID(string(id[:]), rep.attempt.Began.String())
		rep.id = hex.EncodeToString(first[:16])
	}
	if err == nil && rep.attempt.Answer != nil {
		rep.answer = new(keptAnswer)
		err = json.Unmarshal(rep.attempt.Answer, rep.answer)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, access.ErrRunning):
		httpx.RetryAfter(w, time.Second)
		return underWay
	case errors.Is(err, access.ErrOtherRequest):
		return otherRequest
	}
	return rep.gate.StoreUnreachable(r.Context(), "the Idempotency-Key cannot be looked up now, try again later", err)
}

var (
	underWay     = Refuse(http.StatusConflict, item.Conflict, "a request with this Idempotency-Key is under way, try again later")
	otherRequest = Refuse(
		http.StatusUnprocessableEntity, item.OtherRequest,
		"an earlier request with this Idempotency-Key had another length, content type, name or beginning of its first file: send another key",
	)
)

const (
	// headSize is how many bytes of the first file distinguish requests.
	headSize = 512
	// maxBefore is how many bytes of a form are searched for its first file.
	maxBefore = 64 << 10
)

// Match returns the whole body again after its first file has begun, and the refusal if an earlier
// attempt had another one. Without a boundary the body is the file.
func (rep *Repetition) Match(body io.Reader, boundary string) (again io.Reader, refused *Refusal) {
	if rep == nil {
		return body, nil
	}
	var begun bytes.Buffer
	read := io.TeeReader(io.LimitReader(body, maxBefore), &begun)
	name := ""
	if boundary != "" {
		name, read = firstFile(read, boundary)
	}
	head, err := io.ReadAll(io.LimitReader(read, headSize))
	again = io.MultiReader(&begun, body)
	// The request fails by itself if its body ends early.
	if content := access.RequestID(name, string(head)); err == nil && !rep.attempt.Match(hex.EncodeToString(content[:])) {
		return again, otherRequest
	}
	return again, nil
}

// firstFile returns the name of the first file of a form, and its bytes; none if there is no file.
func firstFile(body io.Reader, boundary string) (name string, content io.Reader) {
	form := multipart.NewReader(body, boundary)
	for {
		part, err := form.NextRawPart()
		if err != nil {
			return "", strings.NewReader("")
		}
		if part.FileName() != "" {
			return part.FileName(), part
		}
	}
}

// isRetryKey reports whether a key is valid.
func isRetryKey(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] >= 0x7f {
			return false
		}
	}
	return len(key) > 0 && len(key) <= maxRetryKey
}

// ReplayRefusal returns the refusal of a caller who may not use the alias of the answer any more,
// or nil.
func (rep *Repetition) ReplayRefusal(allows func(alias string) bool) *Refusal {
	if !rep.IsAnswered() || rep.answer.Alias == "" || allows(rep.answer.Alias) {
		return nil
	}
	return OtherAlias
}

// Keep keeps the request, because something is about to change in an alias. A request whose key
// cannot be used is refused.
func (rep *Repetition) Keep(ctx context.Context, alias string) *Refusal {
	if rep == nil {
		return nil
	}
	rep.alias = alias
	switch err := rep.attempt.Keep(ctx); {
	case err == nil:
		return nil
	case errors.Is(err, access.ErrLost):
		return underWay
	default:
		return rep.gate.StoreUnreachable(ctx, "the Idempotency-Key cannot be used now, try again later", err)
	}
}

// Settle notes the outcome of the commit.
func (rep *Repetition) Settle(outcome upload.Outcome) {
	if rep != nil {
		rep.unused = outcome == upload.NothingStored
	}
}

// Repeats returns how the items of the request are stored once; nil without a key.
func (rep *Repetition) Repeats() *upload.Repetition {
	if rep == nil || rep.attempt == nil {
		return nil
	}
	return &upload.Repetition{ID: rep.id, Began: rep.attempt.Began, Again: rep.attempt.IsRepeated}
}

// IsOlder reports whether a repetition may delete an object, because it was stored before the first
// attempt. Without a repetition it is true.
func (rep *Repetition) IsOlder(info storagedrivers.Info) bool {
	return !rep.IsRepeated() || !info.ModTime.After(rep.attempt.Began)
}

// Replay sends the answer of an earlier attempt again, when its turn comes.
func (p *Permit) Replay(w http.ResponseWriter, r *http.Request) *Refusal {
	answer := p.Repetition.answer
	leave, refused := p.EnterQueue(r.Context(), w, service.OtherCall, int64(len(answer.Body)))
	if refused != nil {
		return refused
	}
	defer leave()
	for name, value := range answer.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set(HeaderReplayed, "true")
	httpx.AnswerBytes(w, r, answer.Status, []byte(answer.Body))
	return nil
}

// run serves the request and ends the attempt. The answer is kept before it is sent.
func (rep *Repetition) run(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter) error) error {
	answer := &answerBuffer{ResponseWriter: w}
	ended := false
	defer func(ctx context.Context) {
		if !ended { // a panic
			_ = rep.attempt.End(ctx, nil)
		}
	}(r.Context())
	err := serve(answer)
	ended = true
	var kept json.RawMessage
	if err == nil && answer.status < 300 && !rep.undone.Load() {
		kept = answer.kept(rep.alias)
	}
	var failed error
	switch {
	case len(kept) > 0 && len(kept) <= maxKeptAnswer:
		failed = rep.attempt.End(r.Context(), kept)
	case err == nil && (rep.unused || answer.status >= 400 && answer.status < 500):
		failed = rep.attempt.Forget(r.Context())
	default:
		failed = rep.attempt.End(r.Context(), nil)
	}
	if failed != nil { // a Repetition finds what is stored
		rep.gate.Log.Error("keeping the answer to a request with an Idempotency-Key", "error", failed)
	}
	switch {
	case err == nil && answer.status >= 300 && rep.IsLost(): // the lost lease may be the cause
		httpx.RetryAfter(w, time.Second)
		return httpx.Refuse(w, r, rep.gate.Log, underWay.Status, item.Failures{underWay.Failure()})
	case err == nil:
		w.WriteHeader(answer.status)
		_, _ = answer.body.WriteTo(w) // the client may be gone
	}
	return err
}

// answerBuffer holds an answer back.
type answerBuffer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader implements [http.ResponseWriter].
func (a *answerBuffer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements [http.ResponseWriter].
func (a *answerBuffer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Unwrap is for [http.ResponseController].
func (a *answerBuffer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// kept returns the answer about items of an alias as it is kept.
func (a *answerBuffer) kept(alias string) json.RawMessage {
	kept := keptAnswer{Alias: alias, Status: a.status, Header: map[string]string{}, Body: a.body.String()}
	for _, name := range keptHeaders {
		if value := a.Header().Get(name); value != "" {
			kept.Header[name] = value
		}
	}
	encoded, _ := json.Marshal(kept) // it has no other types
	return encoded
}
