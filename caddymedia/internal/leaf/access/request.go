package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// The errors of [Issuer.Attempt].
var (
	// ErrRunning means that another attempt at the request is running.
	ErrRunning = errors.New("the request is running")
	// ErrOtherRequest means that the earlier attempts were those of another request.
	ErrOtherRequest = errors.New("another request")
	// ErrLost means that another attempt has the lease of the request.
	ErrLost = errors.New("the lease of the request is lost")
)

const (
	// RequestLifetime is how long a request is kept after its first attempt.
	RequestLifetime = 24 * time.Hour
	// requestLease is how long a lease lasts. Its holder relies on it only for trustedLease,
	// because it learns late that the store has it.
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

// keptRequest is what the store has of a request that may have changed something.
type keptRequest struct {
	Fingerprint string          `json:"fingerprint"`
	Content     string          `json:"content,omitempty"`
	Began       time.Time       `json:"began"`
	Holder      string          `json:"holder"` // the last attempt
	Answer      json.RawMessage `json:"answer,omitempty"`
}

// lease is the running attempt at a request. It is volatile.
type lease struct {
	Holder      string `json:"holder"`
	Fingerprint string `json:"fingerprint"`
}

// Attempt is a running attempt at a request. Its methods are called one after the other, but for
// IsLost.
type Attempt struct {
	// Answer is that of an earlier attempt. With an answer the attempt does not run, and needs no
	// End.
	Answer json.RawMessage
	// Began is when the first attempt began that may have changed something.
	Began time.Time
	// IsRepeated reports whether an earlier attempt may have changed something.
	IsRepeated bool

	issuer  *Issuer
	request Request
	holder  string
	content string
	isKept  bool // the store has the request, or may have it, of this attempt
	stop    func()
	isLost  atomic.Bool
}

// Attempt begins an attempt at a request, which is leased to it until [Attempt.End]: no other one
// runs. lost is called if another attempt may have the lease by now, because it could not be
// extended in time.
//
// The error is ErrRunning, ErrOtherRequest or ErrUnavailable.
func (i *Issuer) Attempt(ctx context.Context, r Request, lost func()) (*Attempt, error) {
	a := &Attempt{issuer: i, request: r, holder: rand.Text(), Began: i.now().UTC(), stop: func() {}}
	expiry := time.AfterFunc(trustedLease, func() { a.lose(lost) })
	err := a.lease(ctx)
	if isRunning := errors.Is(err, ErrRunning); err == nil || isRunning { // another one that sends the answer again may have it
		if err = a.read(ctx); err == nil && isRunning && a.Answer == nil {
			err = ErrRunning
		}
	}
	if err == nil && a.Answer == nil {
		a.hold(context.WithoutCancel(ctx), expiry, lost)
		return a, nil
	}
	expiry.Stop()
	if !errors.Is(err, ErrRunning) {
		a.release(ctx) // it may have the lease
	}
	switch {
	case err == nil:
		return a, nil
	case errors.Is(err, ErrRunning), errors.Is(err, ErrOtherRequest):
		return nil, err
	}
	return nil, unavailable("beginning a request", err)
}

func (a *Attempt) leaseKey() string {
	return tokens.Volatile + "lease/" + tokenCoding.EncodeToString(a.request.ID[:])
}

func (a *Attempt) requestKey() string {
	return "request/" + tokenCoding.EncodeToString(a.request.ID[:])
}

// lease begins or extends the lease.
func (a *Attempt) lease(ctx context.Context) error {
	own := lease{a.holder, a.request.Fingerprint}
	return a.issuer.store.Update(ctx, a.leaseKey(), "", func(old tokens.Entry) (tokens.Entry, error) {
		var other lease
		switch err := json.Unmarshal(old.Value, &other); {
		case old.Value == nil || err == nil && other == own:
			return entryOf(own, a.issuer.now().Add(requestLease))
		case err != nil:
			return old, err
		case other.Fingerprint != own.Fingerprint:
			return old, ErrOtherRequest
		}
		return old, ErrRunning
	})
}

// release ends the lease, if the attempt has it. Otherwise, and after an error, it ends by itself.
func (a *Attempt) release(ctx context.Context) { _ = a.drop(ctx, a.leaseKey()) }

// drop removes an entry whose holder is the attempt. It does not end with ctx. The error is ErrLost
// if there is no such entry.
func (a *Attempt) drop(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	return a.issuer.store.Update(ctx, key, "", func(old tokens.Entry) (tokens.Entry, error) {
		var held struct {
			Holder string `json:"holder"`
		}
		if json.Unmarshal(old.Value, &held) != nil || held.Holder != a.holder {
			return old, ErrLost
		}
		return tokens.Entry{}, nil
	})
}

// read reads what earlier attempts have left.
func (a *Attempt) read(ctx context.Context) error {
	var kept keptRequest
	found, err := a.issuer.load(ctx, a.requestKey(), &kept)
	switch {
	case err != nil || !found:
		return err
	case kept.Fingerprint != a.request.Fingerprint:
		return ErrOtherRequest
	}
	a.Answer, a.Began, a.IsRepeated, a.content = kept.Answer, kept.Began, true, kept.Content
	return nil
}

// hold extends the lease until the end of the attempt. expiry calls lose unless it is stopped.
func (a *Attempt) hold(ctx context.Context, expiry *time.Timer, lost func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	a.stop = func() {
		cancel()
		<-done
		a.release(ctx)
	}
	go func() {
		defer close(done)
		defer func() { expiry.Stop() }()
		ticker := time.NewTicker(requestLease / 6)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if a.IsLost() {
				return
			}
			next := time.AfterFunc(trustedLease, func() { a.lose(lost) }) // before, as the process may be stopped
			switch err := guard.Call(func() error { return a.lease(ctx) }); {
			case err == nil:
				expiry, next = next, expiry
			case errors.Is(err, ErrRunning), errors.Is(err, ErrOtherRequest):
				a.lose(lost)
				next.Stop()
				return
			}
			next.Stop()
		}
	}()
}

func (a *Attempt) lose(lost func()) {
	if !a.isLost.Swap(true) {
		lost()
	}
}

// IsLost reports whether another attempt may have the lease.
func (a *Attempt) IsLost() bool { return a.isLost.Load() }

// Match reports whether content, a hash of what the request brings, is that of the earlier
// attempts. If they have left none, it is that of this one.
func (a *Attempt) Match(content string) bool {
	if a.content == "" {
		a.content = content
	}
	return a.content == content
}

// Keep keeps the request, because something is about to change: from now on other attempts are
// repetitions. The error is ErrLost or ErrUnavailable.
func (a *Attempt) Keep(ctx context.Context) error {
	if a.isKept {
		return nil
	}
	err := a.keep(ctx, "", nil)
	a.isKept = !errors.Is(err, ErrLost) // after another error it may be kept
	return err
}

// keep stores the request, which is the one of this attempt, with its answer. An attempt that has
// lost its lease overwrites nothing.
func (a *Attempt) keep(ctx context.Context, index string, answer json.RawMessage) error {
	if a.IsLost() {
		return ErrLost
	}
	kept, isKept := keptRequest{a.request.Fingerprint, a.content, a.Began, a.holder, answer}, a.isKept // the update may outlast this call
	err := a.issuer.store.Update(ctx, a.requestKey(), index, func(old tokens.Entry) (tokens.Entry, error) {
		var other keptRequest
		if old.Value != nil && isKept {
			if err := json.Unmarshal(old.Value, &other); err != nil {
				return old, err
			}
		}
		if isKept && other.Holder != kept.Holder {
			return old, ErrLost
		}
		return entryOf(kept, kept.Began.Add(RequestLifetime))
	})
	if err != nil && !errors.Is(err, ErrLost) {
		err = unavailable("keeping a request", err)
	}
	return err
}

// End ends the attempt, and keeps its answer if that is not nil. It does not end with ctx. Without
// an answer, a request that was kept stays for the next attempt. The error is ErrLost or
// ErrUnavailable.
func (a *Attempt) End(ctx context.Context, answer json.RawMessage) (err error) {
	defer a.stop()
	if answer == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	index, err := a.issuer.keptIn(ctx, a.request, len(answer))
	if err != nil {
		return unavailable("keeping a request", err)
	}
	return a.keep(ctx, index, answer)
}

// Forget ends the attempt as if it had never begun, unless an earlier one has kept the request. It
// does not end with ctx. The error is ErrUnavailable.
func (a *Attempt) Forget(ctx context.Context) error {
	defer a.stop()
	if !a.isKept || a.IsRepeated || a.IsLost() {
		return nil
	}
	err := a.drop(ctx, a.requestKey())
	if err != nil && !errors.Is(err, ErrLost) {
		return unavailable("forgetting a request", err)
	}
	return nil
}
