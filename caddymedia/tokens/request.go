package tokens

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"sync"
	"time"
)

// The errors of [Store.BeginRequest].
var (
	// ErrRunning means that another attempt at the request is running.
	ErrRunning = errors.New("the request is running")
	// ErrOtherRequest means that the earlier attempts were those of another request.
	ErrOtherRequest = errors.New("another request")
)

const (
	// RequestLifetime is how long a request is kept after its first attempt.
	RequestLifetime = 24 * time.Hour
	// maxRequests is how many requests of an account are kept. Then the oldest is forgotten.
	maxRequests = 10_000
	// requestLease is how long others believe in an attempt that is not heard of.
	requestLease = 30 * time.Second
	// requestTimeout bounds the end of an attempt, which does not end with its context.
	requestTimeout = 10 * time.Second
)

// Request is an attempt at a request that may be repeated.
type Request struct {
	// ID identifies the request: a hash of its caller, its key and its address.
	ID ID
	// Account is the API key of its account, with the user or the ticket if there is one. It has
	// requests of its own.
	Account string
	// Fingerprint is equal for all attempts at the request.
	Fingerprint string
	// Holder identifies the attempt.
	Holder string
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
	// RequestState is what earlier attempts have left. With an answer the attempt does not run, and
	// needs no End.
	RequestState
	// IsRepeated reports whether an earlier attempt has claimed something.
	IsRepeated bool

	store   Store
	request Request
	stop    func()

	mu  sync.Mutex
	own map[string][]byte // the claims of this attempt
}

// Attempt begins an attempt at a request, whose Holder it sets. Until [Attempt.End] no other one
// runs. lost is called if the store has given the request to another attempt.
//
// The error is ErrRunning, ErrOtherRequest or ErrUnavailable.
func (i *Issuer) Attempt(ctx context.Context, r Request, lost func()) (*Attempt, error) {
	r.Holder = rand.Text()
	state, err := i.store.BeginRequest(ctx, r, requestLease, maxRequests)
	switch {
	case errors.Is(err, ErrRunning), errors.Is(err, ErrOtherRequest):
		return nil, err
	case err != nil:
		return nil, unavailable("beginning a request", err)
	}
	a := &Attempt{RequestState: state, IsRepeated: len(state.Claims) > 0, store: i.store, request: r, own: map[string][]byte{}}
	if a.Answer == nil {
		a.hold(context.WithoutCancel(ctx), lost)
	}
	return a, nil
}

// hold renews the lease until the end of the attempt.
func (a *Attempt) hold(ctx context.Context, lost func()) {
	ctx, cancel := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	a.stop = func() {
		cancel()
		renewing.Wait()
	}
	renewing.Go(func() {
		ticker := time.NewTicker(requestLease / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if err := a.store.ExtendRequest(ctx, a.request, requestLease); errors.Is(err, ErrUnknown) {
					lost()
					return
				}
			}
		}
	})
}

// Claim returns the value of the first claim of name, or else stores value. earlier reports whether an
// earlier attempt has claimed it. The error is ErrUnknown if the attempt has lost the request, or
// ErrUnavailable. No two calls at the same time have the same name.
func (a *Attempt) Claim(ctx context.Context, name string, value []byte) (first []byte, earlier bool, err error) {
	if first, earlier = a.Claims[name]; earlier {
		return first, true, nil
	}
	a.mu.Lock()
	first, again := a.own[name]
	a.mu.Unlock()
	if again {
		return first, false, nil
	}
	if err := a.store.ClaimRequest(ctx, a.request, name, value); err != nil {
		if errors.Is(err, ErrUnknown) {
			return nil, false, err
		}
		return nil, false, unavailable("claiming for a request", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.own[name] = value
	return value, false, nil
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
func (a *Attempt) End(ctx context.Context, answer []byte) error {
	return a.end(ctx, func(ctx context.Context) error { return a.store.EndRequest(ctx, a.request, answer) })
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
