package tokentest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// lease is longer than any test with a clock that cannot be moved.
const lease = time.Minute

// leased is when a lease of soon has ended, also by a clock of whole milliseconds.
const leased = soon + 10*time.Millisecond

// most is the number of requests of an account that are kept.
const most = 100

// newRequest returns an attempt at a new request of an account.
func newRequest(account string) tokens.Request {
	return tokens.Request{
		ID: newID(), Account: account, Fingerprint: "12 image/png", Holder: rand.Text(), Most: most, MostBytes: 1 << 20,
	}
}

// again returns another attempt at a request.
func again(r tokens.Request) tokens.Request {
	r.Holder = rand.Text()
	return r
}

// begin begins an attempt and returns what earlier ones have left.
func begin(t *testing.T, s tokens.Store, r tokens.Request) tokens.RequestState {
	t.Helper()
	state, err := s.BeginRequest(t.Context(), r, lease)
	if err != nil {
		t.Fatalf("BeginRequest: %v", err)
	}
	return state
}

func wantRefused(t *testing.T, s tokens.Store, r tokens.Request, want error) {
	t.Helper()
	if _, err := s.BeginRequest(t.Context(), r, lease); !errors.Is(err, want) {
		t.Fatalf("BeginRequest: %v, want %v", err, want)
	}
}

func wantNew(t *testing.T, s tokens.Store, r tokens.Request) {
	t.Helper()
	if state := begin(t, s, r); state.Answer != nil || len(state.Claims) > 0 {
		t.Fatalf("the request is known: %+v", state)
	}
}

// wantNil fails the test at the first error.
func wantNil(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// testRequest: one attempt at a time runs. The claims of earlier ones stay until there is an answer,
// which stays whole.
func testRequest(t *testing.T, s Subject) {
	first := newRequest(rand.Text())
	wantNew(t, s.Store, first)
	wantRefused(t, s.Store, again(first), tokens.ErrRunning)
	odd, value := "0/0 ě:\x00\n", []byte("{\x00\xff\"")
	wantNil(t,
		s.Store.ClaimRequest(t.Context(), first, odd, value),
		s.Store.ClaimRequest(t.Context(), first, "", []byte{}),
		s.Store.ExtendRequest(t.Context(), first, lease),
		s.Store.EndRequest(t.Context(), first, nil))
	second := again(first)
	state := begin(t, s.Store, second)
	if state.Answer != nil || len(state.Claims) != 2 || string(state.Claims[odd]) != string(value) || len(state.Claims[""]) > 0 {
		t.Errorf("the second attempt finds %+v", state)
	}
	other := again(first)
	other.Fingerprint = "13 image/png"
	wantRefused(t, s.Store, other, tokens.ErrOtherRequest)
	wantNil(t, s.Store.EndRequest(t.Context(), second, value))
	for range 2 {
		state := begin(t, s.Store, again(first))
		if string(state.Answer) != string(value) || len(state.Claims) > 0 {
			t.Errorf("after the answer: %+v", state)
		}
	}
	wantRefused(t, s.Store, other, tokens.ErrOtherRequest)
	wantNew(t, s.Store, newRequest(first.Account))
}

// testRequestLease: only the holder of the lease changes a request, and a lease ends by itself.
func testRequestLease(t *testing.T, s Subject) {
	dead := newRequest(rand.Text())
	_, err := s.Store.BeginRequest(t.Context(), dead, soon)
	wantNil(t, err, s.Store.ClaimRequest(t.Context(), dead, "a", []byte("dead")))
	s.Advance(leased)
	all := func(r tokens.Request) map[string]error {
		return map[string]error{
			"ExtendRequest": s.Store.ExtendRequest(t.Context(), r, lease),
			"ClaimRequest":  s.Store.ClaimRequest(t.Context(), r, "a", []byte("late")),
			"EndRequest":    s.Store.EndRequest(t.Context(), r, []byte("late")),
			"ForgetRequest": s.Store.ForgetRequest(t.Context(), r),
		}
	}
	want := func(r tokens.Request) {
		t.Helper()
		for name, err := range all(r) {
			if !errors.Is(err, tokens.ErrUnknown) {
				t.Errorf("%s without the lease: %v", name, err)
			}
		}
	}
	want(dead)
	next := again(dead)
	if state := begin(t, s.Store, next); string(state.Claims["a"]) != "dead" {
		t.Errorf("the next attempt finds %+v", state)
	}
	want(dead)
	wantRefused(t, s.Store, again(dead), tokens.ErrRunning)
	wantNil(t, s.Store.ForgetRequest(t.Context(), next))
	want(next)
	last := again(next)
	last.Fingerprint = "of another request"
	wantNew(t, s.Store, last)
	wantRefused(t, s.Store, again(dead), tokens.ErrOtherRequest) // although it has claimed nothing
	wantNil(t, s.Store.EndRequest(t.Context(), last, nil))
	want(last)
	wantNew(t, s.Store, again(dead))
	want(newRequest(dead.Account))
}

// testRequestForgotten: a request that ends while another one begins is either running or
// forgotten, and no attempt runs without its lease.
func testRequestForgotten(t *testing.T, s Subject) {
	r := newRequest(rand.Text())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				mine := again(r)
				if _, err := s.Store.BeginRequest(t.Context(), mine, lease); errors.Is(err, tokens.ErrRunning) {
					continue
				} else if err != nil {
					t.Errorf("BeginRequest: %v", err)
				}
				if err := s.Store.ClaimRequest(t.Context(), mine, "a", nil); err != nil {
					t.Errorf("ClaimRequest by the attempt that has begun: %v", err)
				}
				if err := s.Store.ForgetRequest(t.Context(), mine); err != nil {
					t.Errorf("ForgetRequest by the attempt that has begun: %v", err)
				}
			}
		})
	}
	wg.Wait()
	wantNew(t, s.Store, again(r))
}

// testRequestLeft: a caller that leaves while it begins or claims can end the lease at once.
func testRequestLeft(t *testing.T, s Subject) {
	for n := range 50 {
		r := newRequest(rand.Text())
		ctx, leave := context.WithTimeout(t.Context(), time.Duration(n)*20*time.Microsecond)
		if _, err := s.Store.BeginRequest(ctx, r, lease); err == nil {
			_ = s.Store.ClaimRequest(ctx, r, "a", []byte("b")) // it may be stored
		}
		leave()
		if err := s.Store.EndRequest(t.Context(), r, nil); err != nil && !errors.Is(err, tokens.ErrUnknown) {
			t.Fatal(err)
		}
		begin(t, s.Store, again(r))
	}
}

// testRequestConcurrent: of many attempts at once, one runs.
func testRequestConcurrent(t *testing.T, s Subject) {
	r := newRequest(rand.Text())
	var running atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			switch _, err := s.Store.BeginRequest(t.Context(), again(r), lease); {
			case err == nil:
				running.Add(1)
			case !errors.Is(err, tokens.ErrRunning):
				t.Errorf("BeginRequest: %v", err)
			}
		})
	}
	wg.Wait()
	if running.Load() != 1 {
		t.Errorf("%d attempts run", running.Load())
	}
}

// testRequestDeleteAccount: the requests of an account are forgotten with its tokens, and are not
// counted.
func testRequestDeleteAccount(t *testing.T, s Subject) {
	running, done, kept := newRequest(rand.Text()), newRequest(""), newRequest(rand.Text())
	done.Account = running.Account
	done.Owner = "a user"
	for _, r := range []tokens.Request{running, done, kept} {
		begin(t, s.Store, r)
	}
	wantNil(t, s.Store.ClaimRequest(t.Context(), running, "a", nil))
	wantNil(t, s.Store.EndRequest(t.Context(), done, []byte("done")), s.Store.EndRequest(t.Context(), kept, []byte("kept")))
	wantDeleted(t, s.Store, running.Account, 0)
	if err := s.Store.EndRequest(t.Context(), running, []byte("late")); !errors.Is(err, tokens.ErrUnknown) {
		t.Errorf("EndRequest of a forgotten request: %v", err)
	}
	wantNew(t, s.Store, again(done))
	if state := begin(t, s.Store, again(kept)); string(state.Answer) != "kept" {
		t.Errorf("the other account has %+v", state)
	}
}

// answered stores the answers of requests one after the other.
func answered(t *testing.T, s Subject, size int, requests ...tokens.Request) {
	t.Helper()
	for _, r := range requests {
		begin(t, s.Store, r)
		wantNil(t, s.Store.EndRequest(t.Context(), r, make([]byte, size)))
		s.Advance(2 * time.Millisecond)
	}
}

// wantKnown checks which requests have an answer.
func wantKnown(t *testing.T, s tokens.Store, known bool, requests ...tokens.Request) {
	t.Helper()
	for n, r := range requests {
		mine := again(r)
		if state := begin(t, s, mine); (state.Answer != nil) != known {
			t.Errorf("request %d is known: %t", n, !known)
		} else if !known {
			wantNil(t, s.EndRequest(t.Context(), mine, nil))
		}
	}
}

// testRequestMost: of too many requests of an account, the oldest is forgotten.
func testRequestMost(t *testing.T, s Subject) {
	account, other := rand.Text(), newRequest(rand.Text())
	first := []tokens.Request{newRequest(account), newRequest(account), newRequest(account)}
	answered(t, s, 4, append(slices.Clone(first), other)...)
	var wg sync.WaitGroup
	for range most - len(first) + 1 {
		wg.Go(func() {
			r := newRequest(account)
			if _, err := s.Store.BeginRequest(t.Context(), r, lease); err != nil {
				t.Errorf("BeginRequest: %v", err)
			}
			if err := s.Store.EndRequest(t.Context(), r, []byte("done")); err != nil {
				t.Errorf("EndRequest: %v", err)
			}
		})
	}
	wg.Wait()
	wantKnown(t, s.Store, true, first[1], first[2], other)
	wantKnown(t, s.Store, false, first[0])
	answered(t, s, 4, first[0])
	wantKnown(t, s.Store, true, first[0], first[2], other)
	wantKnown(t, s.Store, false, first[1])
}

// testRequestBytes: of requests of an account that are too large together, the oldest one of the
// same owner is forgotten, and else the oldest. Its running attempt ends.
func testRequestBytes(t *testing.T, s Subject) {
	const size = 100_000 // seven to ten fit, as stores encode them
	account, other := rand.Text(), newRequest(rand.Text())
	of := func(owner string) tokens.Request {
		r := newRequest(account)
		r.Owner = owner
		return r
	}
	running, a, b, c := of("a"), of("a"), of("b"), of("c")
	begin(t, s.Store, running)
	wantNil(t, s.Store.ClaimRequest(t.Context(), running, "a", make([]byte, size)))
	s.Advance(2 * time.Millisecond)
	answered(t, s, size, a)
	answered(t, s, size, other)
	answered(t, s, size, b, c, of("c"), of("b"))
	wantKnown(t, s.Store, true, a, b, c)
	for range 20 { // claims of one name and then an answer count once
		answered(t, s, size, of("c"))
	}
	wantKnown(t, s.Store, true, a, b, other)
	wantKnown(t, s.Store, false, c)
	wantNil(t, s.Store.ExtendRequest(t.Context(), running, lease))
	answered(t, s, size, of("d"), of("d"), of("d"))
	if err := s.Store.ClaimRequest(t.Context(), running, "b", nil); !errors.Is(err, tokens.ErrUnknown) {
		t.Errorf("a claim for a request that is forgotten: %v", err)
	}
	wantKnown(t, s.Store, true, other)
	wantDeleted(t, s.Store, account, 0)
	wantKnown(t, s.Store, false, a, b)
}

// testRequestReopen: what is stored survives a restart, leases do not, unless others share the store.
func testRequestReopen(t *testing.T, s Subject) {
	if s.Reopen == nil {
		t.Skip("the store keeps nothing when it is closed")
	}
	done, open := newRequest(rand.Text()), newRequest(rand.Text())
	begin(t, s.Store, done)
	_, err := s.Store.BeginRequest(t.Context(), open, soon)
	wantNil(t, err, s.Store.EndRequest(t.Context(), done, []byte("done")), s.Store.ClaimRequest(t.Context(), open, "a", []byte("b")))
	next := s.Reopen(t)
	t.Cleanup(func() { _ = next.Close() })
	if state := begin(t, next, again(done)); string(state.Answer) != "done" {
		t.Errorf("the answer is %+v", state)
	}
	s.Advance(leased)
	if state := begin(t, next, again(open)); string(state.Claims["a"]) != "b" {
		t.Errorf("the claims are %+v", state)
	}
}

// testRequestExpiry: a request is forgotten after its lifetime. It needs a clock that can be moved.
func testRequestExpiry(t *testing.T, s Subject) {
	before := s.Now()
	if s.Advance(0); s.Now().Sub(before) > 0 {
		t.Skip("the clock cannot be moved")
	}
	done, running := newRequest(rand.Text()), newRequest(rand.Text())
	begin(t, s.Store, done)
	wantNil(t, s.Store.EndRequest(t.Context(), done, []byte("done")))
	s.Advance(tokens.RequestLifetime - time.Second)
	if state := begin(t, s.Store, again(done)); state.Answer == nil {
		t.Error("it is forgotten early")
	}
	begin(t, s.Store, running)
	s.Advance(time.Second)
	wantNew(t, s.Store, again(done))
	wantRefused(t, s.Store, again(running), tokens.ErrRunning)
}
