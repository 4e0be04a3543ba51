package tokens

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/queue"
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
	// Waiting is how many logins may wait for their turn, and as many again from where their
	// account has logged in before. Default: 100.
	Waiting int
	// MaxWait is how long one waits at most. Default: 10s.
	MaxWait time.Duration
}

// A Gate bounds the password hashing of a process, which every stranger can ask for. Share one among
// all Issuers.
//
// Networks that wait take turns, and so do accounts at sites from where they have logged in before.
// Those accounts get two of three turns while strangers wait too.
type Gate struct {
	queue   *queue.Queue
	maxWait time.Duration
	// secret keys the choice of a decoy. It lives here, not in the Issuer, so that one unknown key meets the same
	// decoy before and after a reload.
	secret [sha256.Size]byte
}

// Classes of the queue.
const (
	knownClass = iota
	strangerClass
)

// NewGate returns a Gate.
func NewGate(opts GateOptions) *Gate {
	waiting := positiveOr(opts.Waiting, defaultWaiting)
	g := &Gate{maxWait: positiveOr(opts.MaxWait, defaultMaxWait)}
	g.queue = queue.New(queue.Options{
		Slots:   positiveOr(opts.Concurrent, max(1, runtime.GOMAXPROCS(0)/2)),
		Wait:    g.maxWait,
		Classes: []queue.Class{knownClass: {Share: 2, Waiting: waiting}, strangerClass: {Share: 1, Waiting: waiting}},
	})
	rand.Read(g.secret[:]) // never fails, says its documentation
	return g
}

// enter waits for the turn of a login. Without an error the caller must release the slot.
func (g *Gate) enter(ctx context.Context, a *attempt) (*queue.Slot, error) {
	request := queue.Request{Owner: a.sites[len(a.sites)-1].String(), Class: strangerClass}
	if a.known {
		request = queue.Request{Owner: "account " + a.key.realm + " " + a.key.name, Class: knownClass}
	}
	slot, err := g.queue.Acquire(ctx, request)
	switch {
	case errors.Is(err, queue.ErrFull) || errors.Is(err, queue.ErrTimeout):
		return nil, &ThrottledError{RetryAfter: g.maxWait}
	case err != nil:
		return nil, fmt.Errorf("waiting to check a password: %w", err)
	}
	return slot, nil
}

// positiveOr returns v, or otherwise if v is no limit at all.
func positiveOr[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// digest maps a name to bytes that are unpredictable outside the process.
func (g *Gate) digest(realm, name string) []byte {
	h := hmac.New(sha256.New, g.secret[:])
	h.Write([]byte(realm + "\x00" + name))
	return h.Sum(nil)
}
