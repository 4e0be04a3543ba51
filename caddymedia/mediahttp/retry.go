package mediahttp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	headerRetryKey = "Idempotency-Key"
	headerReplayed = "Idempotency-Replayed"

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

// repetition is a request that may be repeated under its Idempotency-Key. Its steps, in this order,
// make it exact however often and wherever an attempt ends:
//   - The key is leased to one attempt at a time.
//   - What is about to change is claimed in the token store: each filename before an item is stored
//     under it, each item before it is removed. Later attempts find the claims, and by them the
//     changes of earlier ones.
//   - An attempt that has lost the lease changes nothing more, and undoes nothing.
//   - The answer is kept before it is sent.
//
// A nil repetition is that of a request without a key.
type repetition struct {
	attempt *tokens.Attempt // nil if the request is refused
	answer  *keptAnswer     // of an earlier attempt; nil if there is none
	id      tokens.ID
	refused *refusal    // why
	alias   string      // of the items that are about to be stored
	use     ticketUse   // of the items that are about to be stored; zero if they are not counted
	itemID  string      // begins the IDs of the items that this attempt claims
	unused  bool        // nothing is stored under the claims of the attempt
	undone  atomic.Bool // a part of the request has failed, although the answer is a success
	sent    []func()    // called when the answer is sent
}

type repetitionKey struct{}

// untilSent returns release, for a request without a key. Otherwise release is called when the
// answer is sent: the answer is held back until then.
func (rep *repetition) untilSent(release func()) func() {
	if rep == nil {
		return release
	}
	rep.sent = append(rep.sent, release)
	return func() {}
}

// repetitionOf returns the repetition of a request.
func repetitionOf(ctx context.Context) *repetition {
	rep, _ := ctx.Value(repetitionKey{}).(*repetition)
	return rep
}

// refusal returns why the key of the request is refused; nil if it is not.
func (rep *repetition) refusal() *refusal {
	if rep == nil {
		return nil
	}
	return rep.refused
}

// isRepeated reports whether an earlier attempt may have changed something.
func (rep *repetition) isRepeated() bool {
	return rep.isAnswered() || rep != nil && rep.attempt != nil && rep.attempt.IsRepeated
}

// isLost reports whether another attempt may have taken over.
func (rep *repetition) isLost() bool {
	return rep != nil && rep.attempt != nil && rep.attempt.IsLost()
}

// isAnswered reports whether an earlier attempt has succeeded.
func (rep *repetition) isAnswered() bool { return rep != nil && rep.answer != nil }

// repeatable serves a request, once for each Idempotency-Key. The endpoint must return the refusal of
// its repetition after it has authenticated the request, and then replay its answer if it has one.
func (h *Handler) repeatable(
	service *media.Service, w http.ResponseWriter, r *http.Request, origin aliases.Origin, authenticate authenticator, serve endpoint,
) error {
	if len(r.Header.Values(headerRetryKey)) == 0 || slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, r.Method) {
		return serve(service, w, r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	caller, refused := authenticate(ctx, service)
	rep := &repetition{refused: refused, itemID: rand.Text()} // the endpoint authenticates too, but has no lease then
	defer func() {
		for _, release := range rep.sent {
			release()
		}
	}()
	ctx = storagedrivers.WithLease(context.WithValue(ctx, repetitionKey{}, rep), rep.isLost)
	repeatable := r.WithContext(ctx)
	defer func() { r.Body = repeatable.Body }() // it may be watched now
	if refused == nil {
		rep.begin(h, service, w, repeatable, origin, caller, cancel)
	}
	if rep.refused != nil || rep.isAnswered() {
		return serve(service, w, repeatable)
	}
	return rep.run(h, w, repeatable, func(w http.ResponseWriter) error { return serve(service, w, repeatable) })
}

// begin begins an attempt, or sets the refusal. lost is called if another attempt takes over.
func (rep *repetition) begin(
	h *Handler, service *media.Service, w http.ResponseWriter, r *http.Request, origin aliases.Origin, caller tokens.Caller, lost func(),
) {
	bad := func(status int, message string) *refusal { return &refusal{status, aliases.BadRequest, message} }
	keys := r.Header.Values(headerRetryKey)
	if len(keys) > 1 || !isRetryKey(keys[0]) {
		rep.refused = bad(http.StatusBadRequest, "the header Idempotency-Key is sent once, with 1 to 255 visible ASCII characters")
		return
	}
	account, owner := caller.Account.APIKey, caller.Account.User
	if caller.Ticket != nil {
		owner = "\n" + hex.EncodeToString(caller.Ticket.ID[:])
	}
	rep.id = tokens.RequestID(string(origin), account, owner, keys[0], r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var err error
	rep.attempt, err = service.Issuer().Attempt(r.Context(), tokens.Request{
		ID: rep.id, Account: account, Owner: owner, Fingerprint: fmt.Sprint(max(r.ContentLength, -1), " ", mediaType),
	}, lost)
	if err == nil && rep.attempt.Answer != nil {
		rep.answer = new(keptAnswer)
		err = json.Unmarshal(rep.attempt.Answer, rep.answer)
	}
	switch {
	case err == nil:
	case errors.Is(err, tokens.ErrRunning):
		httpx.RetryAfter(w, time.Second)
		rep.refused = &refusal{http.StatusConflict, aliases.Conflict, running}
	case errors.Is(err, tokens.ErrOtherRequest):
		rep.refused = bad(http.StatusUnprocessableEntity, "an earlier request with this Idempotency-Key had another length or content type: send another key")
	default:
		rep.refused = h.storeUnreachable(r.Context(), "the Idempotency-Key cannot be looked up now, try again later", err)
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

// replayRefusal returns the refusal of a caller who may not use the alias of the answer any more, or nil.
func (rep *repetition) replayRefusal(allows func(alias string) bool) *refusal {
	if !rep.isAnswered() || rep.answer.Alias == "" || allows(rep.answer.Alias) {
		return nil
	}
	return otherAlias
}

// replay sends the answer of an earlier attempt again.
func (rep *repetition) replay(w http.ResponseWriter, r *http.Request) error {
	for name, value := range rep.answer.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set(headerReplayed, "true")
	httpx.AnswerBytes(w, r, rep.answer.Status, []byte(rep.answer.Body))
	return nil
}

// run serves the request and ends the attempt. The answer is kept before it is sent.
func (rep *repetition) run(h *Handler, w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter) error) error {
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
	case !rep.isRepeated() && (rep.unused || !rep.attempt.HasClaimed(sourceName)):
		failed = rep.attempt.Forget(r.Context()) // nothing has changed
	default:
		failed = rep.attempt.End(r.Context(), nil)
	}
	if failed != nil { // a repetition finds the claims
		h.options.Log.Error("keeping the answer to a request with an Idempotency-Key", "error", failed)
	}
	switch {
	case err == nil && answer.status >= 300 && rep.isLost(): // the lost lease may be the cause
		httpx.RetryAfter(w, time.Second)
		return httpx.Refuse(w, r, h.options.Log, http.StatusConflict, aliases.Failures{{Reason: aliases.Conflict, Message: running}})
	case err == nil:
		w.WriteHeader(answer.status)
		_, _ = answer.body.WriteTo(w) // the client may be gone
	}
	return err
}

const running = "a request with this Idempotency-Key is under way, try again later"

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

// claimsOf makes a request to store items repeatable.
func (rep *repetition) claimsOf(req *upload.Request) {
	if rep == nil || rep.attempt == nil {
		return
	}
	confirm := req.Confirm
	req.Confirm = func(ctx context.Context, alias string, items int) (func(bool), *aliases.Failure) {
		rep.alias = alias
		return confirm(ctx, alias, items)
	}
	req.Claim, req.Leased, req.Unclaim = rep.claim, true, func() { rep.unused = true }
}

// aliasClaim is a claim of a filename in an alias.
type aliasClaim struct {
	Alias string `json:"alias"`
	upload.Claim
}

func claimName(item, n int) string { return fmt.Sprint(item, "/", n) }

// claim is [upload.Request.Claim]. A repetition whose fields or names differ cannot use the claims:
// the names have passed the checks for the earlier one.
func (rep *repetition) claim(ctx context.Context, claims []upload.Claim) error {
	proposed := map[string]any{}
	for _, claim := range claims {
		// The item outlives the key, which may then be that of another request.
		claim.ID = fmt.Sprint(rep.itemID, "i", claim.Item, "n", claim.Try)
		proposed[claimName(claim.Item, claim.Try)] = aliasClaim{rep.alias, claim}
	}
	if rep.use != (ticketUse{}) {
		proposed[rep.use.claimName()] = rep.use
	}
	if err := rep.record(ctx, proposed); err != nil {
		return err
	}
	for i, c := range claims {
		var claim aliasClaim
		earlier := rep.recorded(claimName(c.Item, c.Try), &claim)
		if claim.Alias != rep.alias || c.Try == 0 && path.Base(claim.Filename) != path.Base(c.Filename) {
			return aliases.Failf(aliases.OtherRequest, "an earlier request with this Idempotency-Key had another alias or name: send another key")
		}
		if c.Try == 0 { // only the last name can have the item, and those before it may be free by now
			for last := 1; ; last++ {
				var next aliasClaim
				if !rep.recorded(claimName(c.Item, last), &next) {
					break
				}
				claim = next
			}
		}
		claim.Item, claim.Try, claim.Earlier, claim.Final = c.Item, c.Try, earlier, earlier && rep.use != (ticketUse{})
		claims[i] = claim.Claim
	}
	return nil
}

// record claims names for values. Those of names that were claimed before stay.
func (rep *repetition) record(ctx context.Context, values map[string]any) error {
	claims := map[string]json.RawMessage{}
	for name, v := range values {
		value, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("recording a claim: %w", err)
		}
		claims[name] = value
	}
	switch err := rep.attempt.Claim(ctx, claims); {
	case errors.Is(err, tokens.ErrTooLarge):
		return aliases.Failf(aliases.TooLarge, "the request has too many items for an Idempotency-Key: send fewer of them")
	case err != nil:
		return &aliases.Failure{Reason: aliases.Unavailable, Message: "the Idempotency-Key cannot be used now, try again later", Err: err}
	}
	return nil
}

// recorded sets *v to the claim of a name, if there is one. It reports whether an earlier attempt
// has made it.
func (rep *repetition) recorded(name string, v any) (earlier bool) {
	if rep == nil || rep.attempt == nil {
		return false
	}
	value, earlier := rep.attempt.Claimed(name)
	return value != nil && json.Unmarshal(value, v) == nil && earlier
}

// claimed returns the filenames that earlier attempts have claimed for the item of a transfer, the last
// one first.
func (rep *repetition) claimed() []upload.Claim {
	var claims []upload.Claim
	for {
		var claim aliasClaim
		if !rep.recorded(claimName(0, len(claims)), &claim) {
			slices.Reverse(claims)
			return claims
		}
		claims = append(claims, claim.Claim)
	}
}
