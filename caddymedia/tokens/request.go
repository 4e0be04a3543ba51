package tokens

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// The errors of [Store.BeginRequest].
var (
	// ErrRunning means that another attempt at the request is running.
	ErrRunning = errors.New("the request is running")
	// ErrOtherRequest means that the earlier attempts were those of another request.
	ErrOtherRequest = errors.New("another request")
)

// ErrTooLarge is the error of an [Attempt] whose claims are too large.
var ErrTooLarge = errors.New("too many claims for a request")

const (
	// RequestLifetime is how long a request is kept after its first attempt.
	RequestLifetime = 24 * time.Hour
	// maxRequests and maxAccount are how many requests of an account are kept, and how many bytes
	// of their claims and answers. Then the oldest is forgotten.
	maxRequests = 10_000
	maxAccount  = 16 << 20
	// maxClaims is the size in bytes of the claims of a request, as they are stored.
	maxClaims = 64 << 10
	// requestLease is how long a lease lasts. Its holder relies on it only for trustedLease,
	// because the clocks of the holder and of the store differ.
	requestLease = 30 * time.Second
	trustedLease = requestLease * 5 / 6
	// requestTimeout bounds the end of an attempt, which does not end with its context.
	requestTimeout = 10 * time.Second
)

// Request is an attempt at a request that may be repeated.
type Request struct {
	// ID identifies the request: a hash of its caller, its key and its address.
	ID ID
	// Account is the API key of its account.
	Account string
	// Owner is the user or the ticket of the account; empty for the account itself.
	Owner string
	// Fingerprint is equal for all attempts at the request.
	Fingerprint string
	// Holder identifies the attempt.
	Holder string
	// Most is how many requests of the account are kept, and MostBytes how many bytes of their
	// claims and answers.
	Most, MostBytes int
}

// RequestState is what earlier attempts at a request have left.
type RequestState struct {
	// Answer of the attempt that has succeeded; nil if there is none.
	Answer []byte `json:"answer,omitempty"`
	// Claims by their names. They are kept until there is an answer.
	Claims map[string][]byte `json:"claims,omitempty"`
}

// RequestID returns the ID of a request, for the texts that identify it.
func RequestID(texts ...string) ID {
	var b []byte
	for _, text := range texts {
		// The length prefix keeps one text from being read as two.
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return sha256.Sum256(b)
}

// Attempt is a running attempt at a request. It is safe for concurrent use.
type Attempt struct {
	// Answer is that of an earlier attempt. With an answer the attempt does not run, and needs no
	// End.
	Answer json.RawMessage
	// IsRepeated reports whether an earlier attempt has claimed something.
	IsRepeated bool

	store   Store
	request Request
	stop    func()
	isLost  atomic.Bool
	earlier map[string]json.RawMessage // the claims of earlier attempts

	mu    sync.Mutex
	own   map[string]json.RawMessage // the claims of this attempt
	kept  int                        // how many times attempts have claimed something
	bytes int                        // of all claims
}

// Attempt begins an attempt at a request, whose Holder and bounds it sets. Until [Attempt.End] no
// other one runs. lost is called if another attempt may have the lease by now: it could not be
// extended in time, or the store has given it away.
//
// The error is ErrRunning, ErrOtherRequest or ErrUnavailable.
func (i *Issuer) Attempt(ctx context.Context, r Request, lost func()) (*Attempt, error) {
	r.Holder, r.Most, r.MostBytes = rand.Text(), maxRequests, maxAccount
	a := &Attempt{store: i.store, request: r, earlier: map[string]json.RawMessage{}, own: map[string]json.RawMessage{}}
	expiry := time.AfterFunc(trustedLease, func() { a.lose(lost) })
	state, err := i.store.BeginRequest(ctx, r, requestLease)
	if err == nil {
		err = a.read(state)
	}
	if err != nil || a.Answer != nil {
		expiry.Stop()
	}
	switch {
	case errors.Is(err, ErrRunning), errors.Is(err, ErrOtherRequest):
		return nil, err
	case err != nil:
		a.stop = func() {}
		_ = a.End(ctx, nil) // it may have the lease
		return nil, unavailable("beginning a request", err)
	case a.Answer == nil:
		a.hold(context.WithoutCancel(ctx), expiry, lost)
	}
	return a, nil
}

// read reads the answer or the claims of earlier attempts.
func (a *Attempt) read(state RequestState) error {
	if state.Answer != nil {
		return unpack(state.Answer, &a.Answer)
	}
	for _, packed := range state.Claims {
		if err := unpack(packed, &a.earlier); err != nil {
			return err
		}
		a.bytes += len(packed)
	}
	a.kept, a.IsRepeated = len(state.Claims), len(state.Claims) > 0
	return nil
}

// hold extends the lease until the end of the attempt. expiry calls lose unless it is stopped.
func (a *Attempt) hold(ctx context.Context, expiry *time.Timer, lost func()) {
	ctx, cancel := context.WithCancel(ctx)
	var extending sync.WaitGroup
	a.stop = func() {
		cancel()
		extending.Wait()
	}
	extending.Go(func() {
		defer func() { expiry.Stop() }()
		ticker := time.NewTicker(requestLease / 6)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			next := time.AfterFunc(trustedLease, func() { a.lose(lost) }) // before, as the process may be stopped
			switch err := a.store.ExtendRequest(ctx, a.request, requestLease); {
			case err == nil:
				expiry, next = next, expiry
			case errors.Is(err, ErrUnknown):
				a.lose(lost)
				next.Stop()
				return
			}
			next.Stop()
		}
	})
}

func (a *Attempt) lose(lost func()) {
	if !a.isLost.Swap(true) {
		lost()
	}
}

// IsLost reports whether another attempt may have the lease.
func (a *Attempt) IsLost() bool { return a.isLost.Load() }

// Claim stores the claims whose names have none, all at once. The error is ErrUnknown if the
// attempt has lost the request, ErrTooLarge, or ErrUnavailable. No two calls at the same time have
// the same name.
func (a *Attempt) Claim(ctx context.Context, claims map[string]json.RawMessage) error {
	a.mu.Lock()
	fresh := map[string]json.RawMessage{}
	for name, value := range claims {
		if a.earlier[name] == nil && a.own[name] == nil {
			fresh[name] = value
		}
	}
	if len(fresh) == 0 {
		a.mu.Unlock()
		return nil
	}
	packed := pack(fresh)
	a.bytes += len(packed)
	name, isTooLarge := strconv.Itoa(a.kept), a.bytes > maxClaims
	a.kept++
	a.mu.Unlock()
	if isTooLarge {
		return ErrTooLarge
	}
	if err := a.store.ClaimRequest(ctx, a.request, name, packed); err != nil {
		if errors.Is(err, ErrUnknown) {
			return err
		}
		return unavailable("claiming for a request", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.Copy(a.own, fresh)
	return nil
}

// Claimed returns the value of the claim of a name; nil if there is none. earlier reports whether
// an earlier attempt has claimed it.
func (a *Attempt) Claimed(name string) (value json.RawMessage, earlier bool) {
	if value = a.earlier[name]; value != nil {
		return value, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own[name], false
}

// HasClaimed reports whether the attempt itself has claimed a name other than except.
func (a *Attempt) HasClaimed(except string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range a.own {
		if name != except {
			return true
		}
	}
	return false
}

// End ends the attempt, with its answer if that is not nil. It does not end with ctx.
func (a *Attempt) End(ctx context.Context, answer json.RawMessage) error {
	var packed []byte
	if answer != nil {
		packed = pack(answer)
	}
	return a.end(ctx, func(ctx context.Context) error { return a.store.EndRequest(ctx, a.request, packed) })
}

// Forget ends the attempt as if it had never begun. It does not end with ctx.
func (a *Attempt) Forget(ctx context.Context) error {
	return a.end(ctx, func(ctx context.Context) error { return a.store.ForgetRequest(ctx, a.request) })
}

func (a *Attempt) end(ctx context.Context, end func(context.Context) error) error {
	a.stop()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	if err := end(ctx); err != nil && !errors.Is(err, ErrUnknown) {
		return unavailable("ending a request", err)
	}
	return nil
}

// pack returns the compressed JSON of v, a value of types that JSON has.
func pack(v any) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_ = json.NewEncoder(w).Encode(v) // b takes all
	_ = w.Close()
	return b.Bytes()
}

// unpack is the inverse of pack.
func unpack(packed []byte, v any) error {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		err = json.NewDecoder(r).Decode(v)
	}
	if err != nil {
		return fmt.Errorf("reading a request: %w", err)
	}
	return nil
}
