package access

import (
	"cmp"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

const (
	defaultMaxEntries = 100_000
	defaultFailures   = 10
	defaultTickets    = 600
	// The ratios of failed logins allowed for a network, or for an account, and for a client.
	networkToClient, keyToClient = 5, 3
)

// ThrottledError means that a login was not checked, or a ticket not issued, because there were too
// many.
type ThrottledError struct {
	// RetryAfter is how long to wait before the next attempt.
	RetryAfter time.Duration
}

// Error implements error.
func (e *ThrottledError) Error() string {
	return fmt.Sprintf("too many attempts, retry after %s", e.RetryAfter)
}

// ThrottleOptions are the limits of a Throttle. Zero means the default. A successful login costs
// nothing.
type ThrottleOptions struct {
	// Failures is the number of failed logins per minute from one client: an IPv4 address, or the /64
	// of an IPv6 address. Its network, a /24 or /48, has five times as many. An account has three
	// times as many, except from sites where its password was right before. Default: 10.
	Failures int
	// Tickets is the number of tickets per minute of one account. One that is valid for long counts
	// once more for every four hours, so the number of valid tickets is limited too. Default: 600.
	Tickets int
	// MaxEntries is the number of clients, and of accounts, that are remembered. Default: 100000.
	MaxEntries int
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// A Throttle limits failed logins. Share one among all Issuers of a process and keep it across
// reloads.
//
// An account has a separate limit at a client, or its network, from which it has logged in. No
// other limit applies there: neither guesses from elsewhere nor failures of its neighbours lock it
// out.
type Throttle struct {
	now      func() time.Time
	mu       sync.Mutex
	known    knownSites
	pairs    buckets[pair]
	clients  buckets[netip.Prefix]
	networks buckets[netip.Prefix]
	keys     buckets[loginKey]
	tickets  buckets[string] // by the account
}

// loginKey is the target account of a login. An unconfigured name counts for one of a fixed number
// of decoys, which the caller can neither choose nor foresee. So it reaches its limit like a
// configured one: many attempts do not reveal whether a name exists, and an invented name has no
// bucket of its own.
type loginKey struct {
	realm string
	decoy bool
	name  string
}

// NewThrottle returns a Throttle.
func NewThrottle(opts ThrottleOptions) *Throttle {
	entries := cmp.Or(max(opts.MaxEntries, 0), defaultMaxEntries)
	failures := cmp.Or(max(opts.Failures, 0), defaultFailures)
	tickets := cmp.Or(max(opts.Tickets, 0), defaultTickets)
	return &Throttle{
		now:      clockOr(opts.Now),
		known:    make(knownSites),
		pairs:    newBuckets[pair](failures, entries),
		clients:  newBuckets[netip.Prefix](failures, entries),
		networks: newBuckets[netip.Prefix](failures*networkToClient, entries),
		keys:     newBuckets[loginKey](failures*keyToClient, entries),
		tickets:  newBuckets[string](tickets, entries),
	}
}

// attempt is a login that was charged as a failed one in advance, so that parallel attempts cannot
// overdraw a limit.
type attempt struct {
	throttle *Throttle
	key      loginKey
	sites    []netip.Prefix // the client and its network
	known    bool           // this account has logged in from there before
	refunds  []func()       // one for each bucket
}

// start charges a login to every limit that applies. The error is a *ThrottledError.
func (t *Throttle) start(client netip.Addr, key loginKey) (*attempt, error) {
	a := &attempt{throttle: t, key: key, sites: sitesOf(client)}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	var site pair
	var err error
	if site, a.known = t.known.find(key, a.sites, now); a.known {
		err = charge(a, &t.pairs, site, now)
	} else {
		err = cmp.Or(charge(a, &t.clients, a.sites[0], now), charge(a, &t.networks, a.sites[1], now), charge(a, &t.keys, key, now))
	}
	if err != nil {
		a.refund()
		return nil, err
	}
	return a, nil
}

// charge spends one token from the bucket of k.
func charge[K comparable](a *attempt, b *buckets[K], k K, now time.Time) error {
	if wait := b.spend(k, 1, now); wait > 0 {
		return &ThrottledError{RetryAfter: wait}
	}
	a.refunds = append(a.refunds, func() { b.refund(k) })
	return nil
}

func (a *attempt) refund() {
	for _, refund := range a.refunds {
		refund()
	}
}

// ticketTime is the time for which a ticket is valid for each charge after the first.
const ticketTime = 4 * time.Hour

// ticket charges an account for a ticket. The error is a *ThrottledError.
func (t *Throttle) ticket(account string, lifetime time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wait := t.tickets.spend(account, 1+int(lifetime/ticketTime), t.now()); wait > 0 {
		return &ThrottledError{RetryAfter: wait}
	}
	return nil
}

// abandon refunds the charge of a login whose password was not checked.
func (a *attempt) abandon() {
	a.throttle.mu.Lock()
	defer a.throttle.mu.Unlock()
	a.refund()
}

// succeed refunds the charge of a successful login, and records its sites.
func (a *attempt) succeed() {
	t := a.throttle
	t.mu.Lock()
	defer t.mu.Unlock()
	a.refund()
	t.known.add(a.key, a.sites, t.now())
}

// buckets are token buckets, each stored as the time at which it will be full.
// (golang.org/x/time/rate cannot return a token once its time has come.)
type buckets[K comparable] struct {
	interval time.Duration // to regain one token
	burst    time.Duration // to refill an empty bucket
	max      int
	fullAt   map[K]time.Time
}

func newBuckets[K comparable](perMinute, entries int) buckets[K] {
	interval := time.Minute / time.Duration(perMinute)
	return buckets[K]{
		interval: interval,
		burst:    interval * time.Duration(perMinute),
		max:      entries,
		fullAt:   make(map[K]time.Time),
	}
}

// spend removes n tokens from the bucket of k, or all if it never has as many. Otherwise it returns
// how long to wait for them.
func (b *buckets[K]) spend(k K, n int, now time.Time) (wait time.Duration) {
	fullAt, known := b.fullAt[k]
	if !known {
		b.makeRoom(now)
	}
	if fullAt.Before(now) {
		fullAt = now
	}
	fullAt = fullAt.Add(min(time.Duration(n)*b.interval, b.burst))
	if wait = fullAt.Sub(now) - b.burst; wait > 0 {
		return wait
	}
	b.fullAt[k] = fullAt
	return 0
}

// refund returns a token to the bucket of k.
func (b *buckets[K]) refund(k K) {
	if fullAt, known := b.fullAt[k]; known {
		b.fullAt[k] = fullAt.Add(-b.interval)
	}
}

// makeRoom examines a few random buckets, so that every step is cheap. It removes full ones. If
// there are too many buckets, it removes the one that is closest to full. So many clients with few
// failures do not displace one with many.
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
