package tokens

import (
	"fmt"
	"net/netip"
	"sync"
	"time"
)

const (
	defaultMaxEntries = 100_000
	ipv6Site          = 64 // bits: what a provider gives one customer at least
)

// ThrottledError says that a login was not looked at because there were too many.
type ThrottledError struct {
	// RetryAfter is how long to wait before the next attempt.
	RetryAfter time.Duration
}

// Error implements error.
func (e *ThrottledError) Error() string {
	return fmt.Sprintf("too many logins, retry after %s", e.RetryAfter)
}

// Rate is how often something may happen.
type Rate struct {
	// PerMinute is how often in the long run. Zero means the default.
	PerMinute int
	// Burst is how often at once. Zero means PerMinute.
	Burst int
}

// ThrottleOptions are the limits of a Throttle. Zero means the default.
type ThrottleOptions struct {
	// Address limits the failed logins from one client: an IPv4 address, or the /64 of an IPv6 address.
	// Default: 10 a minute.
	Address Rate
	// Key limits the failed logins to one account. Default: 30 a minute.
	Key Rate
	// MaxEntries is how many clients, and how many accounts, are remembered. Default: 100000.
	MaxEntries int
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// A Throttle limits failed logins. Share one among all Issuers of a process and keep it across reloads.
type Throttle struct {
	now     func() time.Time
	mu      sync.Mutex
	clients buckets[netip.Prefix]
	keys    buckets[loginKey]
}

// loginKey is the account that a login aims at. A key that is not configured counts for one of a fixed number of
// decoys, which the caller can neither choose nor foresee. So it runs into its limit as a configured one does, and
// asking often does not tell them apart; and inventing keys gives nobody a bucket of his own.
type loginKey struct {
	decoy bool
	name  string
}

// NewThrottle makes a Throttle.
func NewThrottle(opts ThrottleOptions) *Throttle {
	entries := positiveOr(opts.MaxEntries, defaultMaxEntries)
	return &Throttle{
		now:     clockOr(opts.Now),
		clients: newBuckets[netip.Prefix](opts.Address, 10, entries),
		keys:    newBuckets[loginKey](opts.Key, 30, entries),
	}
}

// take charges one attempt in advance, so that parallel attempts cannot overdraw. Whoever turns out not to have
// failed calls giveBack.
func (t *Throttle) take(client netip.Addr, key loginKey) (giveBack func(), err error) {
	site := siteOf(client)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if wait := t.clients.take(site, now); wait > 0 {
		return nil, &ThrottledError{RetryAfter: wait}
	}
	if wait := t.keys.take(key, now); wait > 0 {
		t.clients.giveBack(site)
		return nil, &ThrottledError{RetryAfter: wait}
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.clients.giveBack(site)
		t.keys.giveBack(key)
	}, nil
}

// siteOf returns the addresses that count as one client. Invalid addresses are one client together.
func siteOf(client netip.Addr) netip.Prefix {
	client = client.Unmap().WithZone("")
	bits := client.BitLen()
	if client.Is6() {
		bits = ipv6Site
	}
	site, _ := client.Prefix(bits) // fails for an invalid address only, with the zero Prefix
	return site
}

// buckets are token buckets, each kept as the one moment at which it will be full. (golang.org/x/time/rate cannot
// give a token back once its time has come.)
type buckets[K comparable] struct {
	interval time.Duration // in which one token comes back
	burst    time.Duration // in which an empty bucket becomes full
	max      int
	fullAt   map[K]time.Time
}

func newBuckets[K comparable](r Rate, defaultPerMinute, entries int) buckets[K] {
	perMinute := positiveOr(r.PerMinute, defaultPerMinute)
	interval := time.Minute / time.Duration(perMinute)
	return buckets[K]{
		interval: interval,
		burst:    interval * time.Duration(positiveOr(r.Burst, perMinute)),
		max:      entries,
		fullAt:   make(map[K]time.Time),
	}
}

// take takes a token from the bucket of k, or says how long to wait for one.
func (b *buckets[K]) take(k K, now time.Time) (wait time.Duration) {
	fullAt, known := b.fullAt[k]
	if !known {
		b.makeRoom(now)
	}
	if fullAt.Before(now) {
		fullAt = now
	}
	fullAt = fullAt.Add(b.interval)
	if wait = fullAt.Sub(now) - b.burst; wait > 0 {
		return wait
	}
	b.fullAt[k] = fullAt
	return 0
}

func (b *buckets[K]) giveBack(k K) {
	if fullAt, known := b.fullAt[k]; known {
		b.fullAt[k] = fullAt.Add(-b.interval)
	}
}

// makeRoom looks at a few buckets at random, which keeps every step cheap: full ones are forgotten, and when there
// are too many the one that is closest to full goes, which nobody can empty for himself by being noisy.
func (b *buckets[K]) makeRoom(now time.Time) {
	const sample = 8
	var victim K
	var victimFull time.Time
	seen := 0
	for k, fullAt := range b.fullAt {
		switch {
		case !fullAt.After(now):
			delete(b.fullAt, k)
		case victimFull.IsZero() || fullAt.Before(victimFull):
			victim, victimFull = k, fullAt
		}
		if seen++; seen == sample {
			break
		}
	}
	if len(b.fullAt) >= b.max {
		delete(b.fullAt, victim)
	}
}
