package tokens

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// flight holds the unfinished attempts of one known pair, and those waiting for them.
type flight struct {
	attempts int
	waiting  []*waiter
}

// waiter is an attempt that is not charged yet. It receives one result.
type waiter struct {
	attempt *attempt
	result  chan error
}

// start charges a login to every limit that applies. The caller must end the attempt.
//
// At a known site it waits, first come, first served, if the rest of the limit is charged to
// unfinished attempts: most of them succeed and refund their charge.
func (t *Throttle) start(ctx context.Context, client netip.Addr, key loginKey) (*attempt, error) {
	a := &attempt{throttle: t, key: key, sites: sitesOf(client)}
	w, err := t.tryStart(a)
	if w != nil {
		err = t.wait(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// tryStart charges an attempt, or returns a waiter if it has to wait.
func (t *Throttle) tryStart(a *attempt) (*waiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if a.pair, a.known = t.known.find(a.key, a.sites, now); !a.known {
		err := cmp.Or(charge(a, &t.clients, a.sites[0], now), charge(a, &t.networks, a.sites[1], now), charge(a, &t.keys, a.key, now))
		if err != nil {
			a.refund()
		}
		return nil, err
	}
	f := t.inFlight[a.pair]
	if f == nil || len(f.waiting) == 0 {
		err := charge(a, &t.pairs, a.pair, now)
		switch {
		case err != nil && f == nil:
			return nil, err
		case err == nil && f == nil:
			t.inFlight[a.pair] = &flight{attempts: 1}
			return nil, nil
		case err == nil:
			f.attempts++
			return nil, nil
		}
	}
	if len(f.waiting) >= defaultWaiting {
		return nil, &ThrottledError{RetryAfter: defaultMaxWait}
	}
	w := &waiter{a, make(chan error, 1)}
	f.waiting = append(f.waiting, w)
	return w, nil
}

// wait returns the result of a waiter.
func (t *Throttle) wait(ctx context.Context, w *waiter) (err error) {
	timeout := time.NewTimer(defaultMaxWait)
	defer timeout.Stop()
	select {
	case err = <-w.result:
		return err
	case <-timeout.C:
		err = &ThrottledError{RetryAfter: defaultMaxWait}
	case <-ctx.Done():
		err = fmt.Errorf("waiting for parallel logins: %w", ctx.Err())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.inFlight[w.attempt.pair]
	if f != nil {
		if i := slices.Index(f.waiting, w); i >= 0 {
			f.waiting = slices.Delete(f.waiting, i, i+1)
			return err
		}
	}
	return <-w.result // the result arrived at the same moment
}

// end charges the attempts waiting for this one, as far as the limit allows. Its own charge stays
// unless it was refunded before.
func (a *attempt) end() {
	if !a.known {
		return
	}
	t := a.throttle
	t.mu.Lock()
	defer t.mu.Unlock()
	f, now := t.inFlight[a.pair], t.now()
	f.attempts--
	for len(f.waiting) > 0 {
		w := f.waiting[0]
		err := charge(w.attempt, &t.pairs, a.pair, now)
		if err != nil && f.attempts > 0 {
			return
		}
		if err == nil {
			f.attempts++
		}
		f.waiting = f.waiting[1:]
		w.result <- err
	}
	if f.attempts == 0 {
		delete(t.inFlight, a.pair)
	}
}
