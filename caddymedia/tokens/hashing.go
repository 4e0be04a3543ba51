package tokens

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

const (
	defaultWaiting = 100
	defaultMaxWait = 10 * time.Second
)

// A Comparer tells whether plaintext is the password that hashed was made from. An error means that it cannot tell,
// for example because hashed is malformed. Caddy's http.authentication.hashes modules are Comparers.
type Comparer interface {
	Compare(hashed, plaintext []byte) (bool, error)
}

// CompareFunc makes a Comparer of a function.
type CompareFunc func(hashed, plaintext []byte) (bool, error)

// Compare calls f.
func (f CompareFunc) Compare(hashed, plaintext []byte) (bool, error) { return f(hashed, plaintext) }

// GateOptions are the limits of a Gate. Zero means the default.
type GateOptions struct {
	// Concurrent is how many passwords are hashed at the same time. One can cost 50 MB.
	// Default: half of GOMAXPROCS, at least one, so that a flood leaves processors to others.
	Concurrent int
	// Waiting is how many logins may wait for their turn. Default: 100.
	Waiting int
	// MaxWait is how long one waits at most. Default: 10s.
	MaxWait time.Duration
}

// A Gate bounds the password hashing of a process, which anybody can ask for. Share one among all Issuers.
type Gate struct {
	slots      chan struct{}
	waiting    atomic.Int64
	maxWaiting int64
	maxWait    time.Duration
	// secret keys the choice of a decoy. It lives here, not in the Issuer, so that one unknown key meets the same
	// decoy before and after a reload.
	secret [sha256.Size]byte
}

// NewGate makes a Gate.
func NewGate(opts GateOptions) *Gate {
	g := &Gate{
		slots:      make(chan struct{}, positiveOr(opts.Concurrent, max(1, runtime.GOMAXPROCS(0)/2))),
		maxWaiting: int64(positiveOr(opts.Waiting, defaultWaiting)),
		maxWait:    positiveOr(opts.MaxWait, defaultMaxWait),
	}
	rand.Read(g.secret[:]) // never fails, says its documentation
	return g
}

// enter waits for a turn. Who gets one must call leave.
func (g *Gate) enter(ctx context.Context) error {
	select {
	case g.slots <- struct{}{}:
		return nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > g.maxWaiting {
		return &ThrottledError{RetryAfter: g.maxWait}
	}
	timer := time.NewTimer(g.maxWait)
	defer timer.Stop()
	select {
	case g.slots <- struct{}{}:
		return nil
	case <-timer.C:
		return &ThrottledError{RetryAfter: g.maxWait}
	case <-ctx.Done():
		return fmt.Errorf("waiting to check a password: %w", ctx.Err())
	}
}

func (g *Gate) leave() { <-g.slots }

// positiveOr returns v, or otherwise if v is no limit at all.
func positiveOr[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// digest maps a name to bytes that nobody outside of the process can foresee.
func (g *Gate) digest(realm, name string) []byte {
	h := hmac.New(sha256.New, g.secret[:])
	h.Write([]byte(realm + "\x00" + name))
	return h.Sum(nil)
}
