package access

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/caddymedia/media/storagedrivers/queue"
)

const (
	defaultWaiting = 100
	defaultMaxWait = 10 * time.Second
)

// HashLimiterOptions are the limits of a HashLimiter. Zero means the default.
type HashLimiterOptions struct {
	// Concurrent is the number of passwords hashed at the same time. One can cost 50 MB. Default:
	// half of GOMAXPROCS, at least one, so that a flood leaves processors to other work.
	Concurrent int
	// Waiting is the number of logins that may wait. As many again may wait from sites known for
	// their account. Default: 100.
	Waiting int
	// MaxWait is the longest time that a login waits. Default: 10s.
	MaxWait time.Duration
}

// A HashLimiter bounds the password hashing of a process, which any client can request. Share one
// among all Issuers.
//
// Accounts at sites from which they have logged in before take turns. All other logins together get
// one turn among them, and their networks take turns in that.
type HashLimiter struct {
	hashing   *queue.Queue
	strangers *queue.Queue // of logins that are not from a known site, before hashing
	maxWait   time.Duration
	// secret keys the choice of a decoy. It is kept here, not in the Issuer, so that an unknown key
	// has the same decoy before and after a reload.
	secret [sha256.Size]byte
}

// NewHashLimiter returns a HashLimiter.
func NewHashLimiter(opts HashLimiterOptions) *HashLimiter {
	l := &HashLimiter{maxWait: cmp.Or(max(opts.MaxWait, 0), defaultMaxWait)}
	options := queue.Options{
		Slots:   cmp.Or(max(opts.Concurrent, 0), max(1, runtime.GOMAXPROCS(0)/2)),
		Wait:    l.maxWait,
		Waiting: cmp.Or(max(opts.Waiting, 0), defaultWaiting),
	}
	l.hashing, l.strangers = queue.New(options), queue.New(options)
	rand.Read(l.secret[:]) // never fails, by its documentation
	return l
}

// acquire waits until a login may be hashed. The caller must call release unless there is an error.
func (l *HashLimiter) acquire(ctx context.Context, a *attempt) (release func(), err error) {
	owner, leave := "account "+a.key.realm+" "+a.key.name, func() {}
	if !a.known {
		owner = "strangers"
		stranger, err := l.strangers.Acquire(ctx, queue.Request{Owner: a.sites[len(a.sites)-1].String()})
		if err != nil {
			return nil, l.refusal(err)
		}
		leave = stranger.Release
	}
	slot, err := l.hashing.Acquire(ctx, queue.Request{Owner: owner})
	if err != nil {
		leave()
		return nil, l.refusal(err)
	}
	return func() {
		slot.Release()
		leave()
	}, nil
}

// refusal returns the error of a login for one of the queue.
func (l *HashLimiter) refusal(err error) error {
	if errors.Is(err, queue.ErrFull) || errors.Is(err, queue.ErrTimeout) {
		return &ThrottledError{RetryAfter: l.maxWait}
	}
	return fmt.Errorf("waiting to check a password: %w", err)
}

// digest maps a name to bytes that are unpredictable outside the process.
func (l *HashLimiter) digest(realm, name string) []byte {
	h := hmac.New(sha256.New, l.secret[:])
	h.Write([]byte(realm + "\x00" + name))
	return h.Sum(nil)
}
