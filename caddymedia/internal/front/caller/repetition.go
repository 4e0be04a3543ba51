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
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
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

// Repetition is an HTTP request that may be repeated under its Idempotency-Key: an [op.Attempt]
// with the answer, which is kept before it is sent. A nil repetition is that of a request without a
// key.
type Repetition struct {
	gate    *Gate
	attempt *op.Attempt // nil if the request is refused
	answer  *keptAnswer // of an earlier attempt; nil if there is none
	sent    []func()    // called when the answer is sent
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

// IsAnswered reports whether an earlier attempt has succeeded.
func (rep *Repetition) IsAnswered() bool { return rep != nil && rep.answer != nil }

// Admit authenticates a request, and serves it once for each Idempotency-Key. The endpoint must
// refuse a request whose permit is refused, and replay the answer of one that has it.
func (g *Gate) Admit(
	running *service.Service, w http.ResponseWriter, r *http.Request, origin item.Origin, authenticate op.Authenticator,
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
	isLost := func() bool { return rep.attempt.IsLost() }
	repeatable := r.WithContext(storagedrivers.WithLease(ctx, isLost))
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

// begin begins an attempt, or returns the failure of its key. lost is called if another attempt
// takes over.
func (rep *Repetition) begin(p *Permit, w http.ResponseWriter, r *http.Request, lost func()) *item.Failure {
	keys := r.Header.Values(HeaderRetryKey)
	if len(keys) > 1 || !isRetryKey(keys[0]) {
		return item.Failf(item.BadRequest, "the header Idempotency-Key is sent once, with 1 to 255 visible ASCII characters")
	}
	account, owner := p.Account.APIKey, p.Account.User
	if p.Ticket != nil {
		owner = "\n" + p.Ticket.HexID()
	}
	id := access.RequestID(string(p.Actor.Origin), account, owner, keys[0], r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	leased, err := p.Service.Issuer().Attempt(r.Context(), access.Request{
		ID: id, Account: account, Owner: owner, Fingerprint: fmt.Sprint(max(r.ContentLength, -1), " ", mediaType),
	}, lost)
	if err == nil && leased.Answer != nil {
		rep.answer = new(keptAnswer)
		err = json.Unmarshal(leased.Answer, rep.answer)
	}
	switch {
	case err == nil:
		rep.attempt = op.NewAttempt(leased, id)
		p.Attempt = rep.attempt
		return nil
	case errors.Is(err, access.ErrRunning):
		httpx.RetryAfter(w, time.Second)
		return op.ErrUnderWay
	case errors.Is(err, access.ErrOtherRequest):
		return errOtherRequest
	}
	return op.StoreUnreachable(r.Context(), p.Log, "the Idempotency-Key cannot be looked up now, try again later", err)
}

var errOtherRequest = item.Failf(item.OtherRequest,
	"an earlier request with this Idempotency-Key had another length, content type, name or beginning of its first file: send another key")

const (
	// headSize is how many bytes of the first file distinguish requests.
	headSize = 512
	// maxBefore is how many bytes of a form are searched for its first file.
	maxBefore = 64 << 10
)

// Match returns the whole body again after its first file has begun, and the failure if an earlier
// attempt had another one. Without a boundary the body is the file.
func (rep *Repetition) Match(body io.Reader, boundary string) (again io.Reader, failure *item.Failure) {
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
		return again, errOtherRequest
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

// MayReplay returns the failure of a caller who may not use the alias of the kept answer any more,
// or nil.
func (rep *Repetition) MayReplay(allows func(alias string) bool) *item.Failure {
	if rep.answer.Alias == "" || allows(rep.answer.Alias) {
		return nil
	}
	return op.ErrOtherAlias
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
	if err == nil && answer.status < 300 && !rep.attempt.IsOpen() {
		kept = answer.kept(rep.attempt.Alias)
	}
	var failed error
	switch {
	case len(kept) > 0 && len(kept) <= maxKeptAnswer:
		failed = rep.attempt.End(r.Context(), kept)
	case err == nil && (rep.attempt.Unused || answer.status >= 400 && answer.status < 500):
		failed = rep.attempt.Forget(r.Context())
	default:
		failed = rep.attempt.End(r.Context(), nil)
	}
	if failed != nil { // a Repetition finds what is stored
		rep.gate.Log.Error("keeping the answer to a request with an Idempotency-Key", "error", failed)
	}
	switch {
	case err == nil && answer.status >= 300 && rep.attempt.IsLost(): // the lost lease may be the cause
		httpx.RetryAfter(w, time.Second)
		return httpx.Refuse(w, r, rep.gate.Log, http.StatusConflict, item.Failures{op.ErrUnderWay})
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
