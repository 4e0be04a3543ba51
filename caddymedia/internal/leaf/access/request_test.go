package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

// requests makes attempts at requests over one store.
type requests struct {
	*testing.T
	store  tokens.Store
	issuer *access.Issuer
	lost   atomic.Int64
}

func newRequests(t *testing.T, store tokens.Store) *requests {
	t.Helper()
	issuer, err := access.NewIssuer(access.IssuerOptions{
		Store: store, Comparer: tokens.CompareFunc(func(_, _ []byte) (bool, error) { return false, nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &requests{T: t, store: store, issuer: issuer}
}

// attempt begins an attempt at the request of a name.
func (r *requests) attempt(name string) (*access.Attempt, error) {
	return r.issuer.Attempt(r.Context(), access.Request{ID: access.RequestID(name), Account: "a", Fingerprint: "f"}, func() { r.lost.Add(1) })
}

// want begins an attempt, which finds an answer, or that an earlier one has kept the request.
func (r *requests) want(name, answer string, isRepeated bool) *access.Attempt {
	r.Helper()
	a, err := r.attempt(name)
	if err != nil {
		r.Fatalf("%s: %v", name, err)
	}
	if string(a.Answer) != answer || a.IsRepeated != isRepeated {
		r.Fatalf("%s: answer %q, repeated %t; want %q, %t", name, a.Answer, a.IsRepeated, answer, isRepeated)
	}
	return a
}

// is fails unless err is want.
func (r *requests) is(err, want error) {
	r.Helper()
	if !errors.Is(err, want) {
		r.Errorf("error %v, want %v", err, want)
	}
}

// TestAttempt: an attempt holds its request as long as it runs. What it keeps is found by the next
// one, until it is forgotten.
func TestAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRequests(t, memory.New(nil))
		first := r.want("a", "", false)
		began := first.Began
		time.Sleep(time.Hour)
		_, err := r.attempt("a")
		r.is(err, access.ErrRunning)
		_, err = r.issuer.Attempt(t.Context(), access.Request{ID: access.RequestID("a"), Account: "a", Fingerprint: "g"}, nil)
		r.is(err, access.ErrOtherRequest)
		r.is(first.End(t.Context(), nil), nil)
		second := r.want("a", "", false) // nothing was kept
		if second.Began.Equal(began) {
			t.Error("the second attempt has the time of the first, which has kept nothing")
		}
		began = second.Began
		r.is(errors.Join(second.Keep(t.Context()), second.Keep(t.Context()), second.End(t.Context(), nil)), nil)
		time.Sleep(time.Hour)
		third := r.want("a", "", true)
		if !third.Began.Equal(began) {
			t.Errorf("began %v, want %v", third.Began, began)
		}
		r.is(errors.Join(third.Keep(t.Context()), third.Forget(t.Context())), nil) // the second one may have changed something
		_, err = r.issuer.Attempt(t.Context(), access.Request{ID: access.RequestID("a"), Account: "a", Fingerprint: "g"}, nil)
		r.is(err, access.ErrOtherRequest)
		fourth := r.want("a", "", true)
		r.is(errors.Join(fourth.Keep(t.Context()), fourth.End(t.Context(), json.RawMessage(`"answer"`))), nil)
		for range 2 {
			r.want("a", `"answer"`, true)
		}
		forgotten := r.want("b", "", false)
		r.is(errors.Join(forgotten.Keep(t.Context()), forgotten.Forget(t.Context())), nil)
		r.is(r.want("b", "", false).End(t.Context(), nil), nil)
		time.Sleep(access.RequestLifetime - time.Hour)
		r.is(r.want("a", "", false).End(t.Context(), nil), nil)
		if r.lost.Load() > 0 {
			t.Error("an attempt is lost")
		}
		r.is(r.store.Close(), nil)
		_, err = r.attempt("a")
		r.is(err, tokens.ErrUnavailable)
	})
}

// TestAttemptAnswered: a repetition gets the answer although another attempt has the lease.
func TestAttemptAnswered(t *testing.T) {
	t.Parallel()
	store := &fakeStore{Store: memory.New(nil)}
	r := newRequests(t, store)
	first := r.want("a", "", false)
	asked := false
	store.before = func(key string) {
		if strings.HasPrefix(key, tokens.Volatile) { // the first one ends its lease
			store.before, asked = nil, true
			r.want("a", "1", true)
		}
	}
	r.is(first.End(t.Context(), json.RawMessage(`1`)), nil)
	if !asked {
		t.Error("the lease did not end")
	}
}

// TestAttemptContent: attempts with other content than that of an earlier one do not match.
func TestAttemptContent(t *testing.T) {
	t.Parallel()
	r := newRequests(t, memory.New(nil))
	match := func(a *access.Attempt, content string, want bool) {
		t.Helper()
		if a.Match(content) != want {
			t.Errorf("%q matches: %t", content, !want)
		}
	}
	first := r.want("a", "", false)
	match(first, "x", true)
	match(first, "y", false)
	r.is(errors.Join(first.Keep(t.Context()), first.End(t.Context(), nil)), nil)
	second := r.want("a", "", true)
	match(second, "y", false)
	match(second, "x", true)
	r.is(second.End(t.Context(), json.RawMessage(`1`)), nil)
	match(r.want("a", "1", true), "y", false)
}

// TestAttemptConcurrent: of many attempts at once one runs, and each one that begins can keep its
// request.
func TestAttemptConcurrent(t *testing.T) {
	t.Parallel()
	r := newRequests(t, memory.New(nil))
	var running, most atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				a, err := r.attempt("a")
				if errors.Is(err, access.ErrRunning) {
					continue
				}
				r.is(err, nil)
				most.Store(max(most.Load(), running.Add(1)))
				r.is(a.Keep(t.Context()), nil)
				running.Add(-1)
				r.is(a.Forget(t.Context()), nil)
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d attempts ran at once", most.Load())
	}
	r.is(r.want("a", "", false).End(t.Context(), nil), nil)
}

// TestAttemptUnextended: an attempt whose lease cannot be extended is lost before another one
// begins, not after a short failure of the store. Then it keeps nothing.
func TestAttemptUnextended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &fakeStore{Store: memory.New(nil)}
		r := newRequests(t, store)
		first := r.want("a", "", false)
		r.is(first.Keep(t.Context()), nil)
		for range 10 {
			store.fail(tokens.ErrUnavailable)
			time.Sleep(14 * time.Second)
			store.fail(nil)
			time.Sleep(10 * time.Second)
		}
		if r.lost.Load() > 0 || first.IsLost() {
			t.Fatal("lost by a short failure")
		}
		store.fail(tokens.ErrUnavailable)
		for r.lost.Load() == 0 {
			time.Sleep(time.Second)
		}
		store.fail(nil)
		_, err := r.attempt("a")
		r.is(err, access.ErrRunning)
		time.Sleep(time.Minute)
		second := r.want("a", "", true)
		r.is(first.Keep(t.Context()), nil) // it was kept before
		r.is(first.End(t.Context(), json.RawMessage(`"late"`)), access.ErrLost)
		r.is(second.Keep(t.Context()), nil)
		r.is(second.End(t.Context(), json.RawMessage(`"answer"`)), nil)
		r.want("a", `"answer"`, true)
		if n := r.lost.Load(); n != 1 {
			t.Errorf("lost %d times", n)
		}
	})
}

// TestAttemptTaken: an attempt whose request another one has kept since, by a clock that is ahead,
// keeps no answer.
func TestAttemptTaken(t *testing.T) {
	t.Parallel()
	clock := &offset{}
	r := newRequests(t, memory.New(clock.now))
	first := r.want("a", "", false)
	r.is(first.Keep(t.Context()), nil)
	clock.ahead.Store(int64(time.Minute)) // its lease has ended
	second := r.want("a", "", true)
	r.is(second.Keep(t.Context()), nil)
	r.is(first.End(t.Context(), json.RawMessage(`"late"`)), access.ErrLost)
	r.is(second.End(t.Context(), json.RawMessage(`"answer"`)), nil)
	r.want("a", `"answer"`, true)
}

// offset is a clock that can be put ahead.
type offset struct{ ahead atomic.Int64 }

func (o *offset) now() time.Time { return time.Now().Add(time.Duration(o.ahead.Load())) }

// TestAttemptLeft: a caller that is gone while its attempt begins leaves no lease, whether the
// store had granted it or not.
func TestAttemptLeft(t *testing.T) {
	t.Parallel()
	store := &fakeStore{Store: memory.New(nil), late: true}
	r := newRequests(t, store)
	store.fail(context.Canceled)
	_, err := r.attempt("a")
	r.is(err, tokens.ErrUnavailable)
	store.fail(nil)
	for n := range 50 {
		ctx, leave := context.WithTimeout(t.Context(), time.Duration(n)*10*time.Microsecond)
		left, err := r.issuer.Attempt(ctx, access.Request{ID: access.RequestID("a"), Fingerprint: "f"}, func() {})
		if leave(); err == nil {
			r.is(left.Forget(ctx), nil)
		}
		r.is(r.want("a", "", false).Forget(t.Context()), nil)
	}
}

// TestKeepLeft: a request that is kept although its caller is gone is forgotten.
func TestKeepLeft(t *testing.T) {
	t.Parallel()
	store := &fakeStore{Store: memory.New(nil), late: true}
	r := newRequests(t, store)
	a := r.want("a", "", false)
	store.fail(context.Canceled)
	r.is(a.Keep(t.Context()), tokens.ErrUnavailable)
	store.fail(nil)
	r.is(a.Forget(t.Context()), nil)
	r.is(r.want("a", "", false).Forget(t.Context()), nil)
}

// answer makes requests of an owner with answers of size bytes.
func (r *requests) answer(owner string, from, to, size int) {
	r.Helper()
	for n := from; n < to; n++ {
		a, err := r.issuer.Attempt(r.Context(), access.Request{ID: access.RequestID(owner, fmt.Sprint(n)), Account: "a", Owner: owner}, func() {})
		if err == nil {
			err = a.End(r.Context(), json.RawMessage(`"`+strings.Repeat("x", size)+`"`))
		}
		if err != nil {
			r.Fatal(err)
		}
	}
}

// known returns which requests of an owner have an answer: the first one, and how many there are.
func (r *requests) known(owner string, n int) (first, known int) {
	r.Helper()
	first = -1
	for i := range n {
		a, err := r.issuer.Attempt(r.Context(), access.Request{ID: access.RequestID(owner, fmt.Sprint(i)), Account: "a", Owner: owner}, func() {})
		if err != nil {
			r.Fatal(err)
		}
		if a.Answer == nil {
			r.is(a.Forget(r.Context()), nil)
			continue
		}
		if known++; first < 0 {
			first = i
		}
	}
	return first, known
}

// TestKeptMost: of too many answers of an account the oldest are forgotten, at most a 50th more
// than necessary, and none of those that the others have.
func TestKeptMost(t *testing.T) {
	t.Parallel()
	r := newRequests(t, memory.New(nil))
	r.answer("a ticket", 0, 100, 4)
	r.answer("", 0, 9_896, 1600)
	if first, known := r.known("", 9_896); first != 0 || known != 9_896 {
		t.Errorf("%d of 9,896 are known, from %d on", known, first)
	}
	r.answer("", 9_896, 12_000, 4)
	first, known := r.known("", 12_000)
	if known > 10_000 || known < 9_600 || first+known != 12_000 {
		t.Errorf("%d of 12,000 are known, from %d on", known, first)
	}
	if _, known := r.known("a ticket", 100); known != 100 {
		t.Errorf("%d of 100 of a ticket are known", known)
	}
	r.answer("a user", 0, 6_000, 4) // less than the account itself has
	if _, known := r.known("a user", 6_000); known < 4_800 {
		t.Errorf("%d of 6,000 of a user are known", known)
	}
}

// TestKeptAtOnce: requests at the same time waste none of the room.
func TestKeptAtOnce(t *testing.T) {
	t.Parallel()
	r := newRequests(t, memory.New(nil))
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() { r.answer("", n*500, (n+1)*500, 4) })
	}
	group.Wait()
	if _, known := r.known("", 10_000); known != 10_000 {
		t.Errorf("%d of 10,000 are known", known)
	}
}

// TestKeptBytes: answers of 16 MiB are kept, the last ones.
func TestKeptBytes(t *testing.T) {
	t.Parallel()
	r := newRequests(t, memory.New(nil))
	const size = 60_000
	r.answer("", 0, 400, size)
	first, known := r.known("", 400)
	if most := 16 << 20 / size; known > most || known < most*3/4 || first+known != 400 {
		t.Errorf("%d of 400 are known, from %d on", known, first)
	}
}

// TestKeptRevoked: the answers of an account are forgotten with its tokens, those of others are
// not.
func TestKeptRevoked(t *testing.T) {
	t.Parallel()
	r := newRequests(t, memory.New(nil))
	r.answer("", 0, 200, 4)
	r.answer("a ticket", 0, 20, 4)
	if _, err := r.issuer.Revoke(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	if _, known := r.known("", 200); known != 200 {
		t.Errorf("%d of 200 are known", known)
	}
	if _, err := r.issuer.Revoke(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	for owner, n := range map[string]int{"": 200, "a ticket": 20} {
		if _, known := r.known(owner, n); known != 0 {
			t.Errorf("%d of %q are known", known, owner)
		}
	}
}

// TestKeptIssuers: each Issuer of a store, such as those of a restart, begins a block of its own.
// This costs few of the answers.
func TestKeptIssuers(t *testing.T) {
	t.Parallel()
	store := memory.New(nil)
	for n := range 500 {
		newRequests(t, store).answer("", n, n+1, 4)
	}
	if _, known := newRequests(t, store).known("", 500); known != 500 {
		t.Errorf("%d of 500 are known", known)
	}
}
