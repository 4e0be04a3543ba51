package tokens_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

// TestAttempt: an attempt holds its request as long as it runs. One that has lost it is cancelled,
// and ends without effect.
func TestAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		issuer, err := tokens.NewIssuer(tokens.IssuerOptions{
			Store: store, Comparer: tokens.CompareFunc(func(_, _ []byte) (bool, error) { return false, nil }),
		})
		if err != nil {
			t.Fatal(err)
		}
		request := tokens.Request{ID: tokens.RequestID("a", "b"), Account: "a", Fingerprint: "f"}
		var lost atomic.Int64
		attempt := func() (*tokens.Attempt, error) {
			return issuer.Attempt(t.Context(), request, func() { lost.Add(1) })
		}
		first, err := attempt()
		if err != nil || first.IsRepeated {
			t.Fatalf("repeated %t, error %v", first.IsRepeated, err)
		}
		time.Sleep(time.Hour)
		if _, err := attempt(); !errors.Is(err, tokens.ErrRunning) {
			t.Errorf("beside a running attempt: %v", err)
		}
		claim := func(a *tokens.Attempt, name, value, want string, isEarlier bool) {
			t.Helper()
			err := a.Claim(t.Context(), map[string]json.RawMessage{name: json.RawMessage(value)})
			if claimed, earlier := a.Claimed(name); string(claimed) != want || earlier != isEarlier || err != nil {
				t.Errorf("claimed %q, earlier %t, error %v", claimed, earlier, err)
			}
		}
		claim(first, "name", `"value"`, `"value"`, false)
		claim(first, "name", `"other"`, `"value"`, false)
		claim(first, "next", `2`, `2`, false)
		if err := first.End(t.Context(), nil); err != nil {
			t.Error(err)
		}
		second, err := attempt()
		if err != nil || !second.IsRepeated {
			t.Fatalf("the second attempt: %+v, %v", second, err)
		}
		claim(second, "name", `"other"`, `"value"`, true)
		claim(second, "next", `3`, `2`, true)
		claim(second, "last", `4`, `4`, false)
		if _, err := store.DeleteAccount(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if lost.Load() != 1 {
			t.Errorf("told %d times that the request is lost", lost.Load())
		}
		if err := second.Claim(t.Context(), map[string]json.RawMessage{"more": json.RawMessage("1")}); !errors.Is(err, tokens.ErrUnknown) || !second.IsLost() {
			t.Errorf("a claim without the request: %v", err)
		}
		if err := second.End(t.Context(), json.RawMessage(`"late"`)); err != nil {
			t.Error(err)
		}
		third, err := attempt()
		if err != nil || third.Answer != nil || third.IsRepeated {
			t.Fatalf("the third attempt: %+v, %v", third, err)
		}
		if err := third.End(t.Context(), json.RawMessage(`"answer"`)); err != nil {
			t.Error(err)
		}
		if fourth, err := attempt(); err != nil || string(fourth.Answer) != `"answer"` {
			t.Errorf("the answer: %+v, %v", fourth, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if _, err := attempt(); !errors.Is(err, tokens.ErrUnavailable) {
			t.Errorf("without a store: %v", err)
		}
	})
}

// unsteady is a store whose methods fail while it has an error. BeginRequest does its work
// nevertheless.
type unsteady struct {
	tokens.Store
	err atomic.Pointer[error]
}

func (s *unsteady) BeginRequest(ctx context.Context, r tokens.Request, lease time.Duration) (tokens.RequestState, error) {
	state, err := s.Store.BeginRequest(ctx, r, lease)
	if failed := s.err.Load(); failed != nil {
		err = *failed
	}
	return state, err
}

func (s *unsteady) ExtendRequest(ctx context.Context, r tokens.Request, lease time.Duration) error {
	if failed := s.err.Load(); failed != nil {
		return *failed
	}
	return s.Store.ExtendRequest(ctx, r, lease)
}

// newUnsteady returns an issuer with its store.
func newUnsteady(t *testing.T) (*unsteady, *tokens.Issuer) {
	t.Helper()
	s := &unsteady{Store: memory.New(nil)}
	issuer, err := tokens.NewIssuer(tokens.IssuerOptions{
		Store: s, Comparer: tokens.CompareFunc(func(_, _ []byte) (bool, error) { return false, nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, issuer
}

// TestAttemptUnextended: an attempt whose lease cannot be extended is lost before another one
// begins, not after a short failure of the store.
func TestAttemptUnextended(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, issuer := newUnsteady(t)
		request := tokens.Request{Account: "a"}
		var lost atomic.Int64
		first, err := issuer.Attempt(t.Context(), request, func() { lost.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		down := tokens.ErrUnavailable
		for range 10 {
			store.err.Store(&down)
			time.Sleep(14 * time.Second)
			store.err.Store(nil)
			time.Sleep(10 * time.Second)
		}
		if lost.Load() > 0 || first.IsLost() {
			t.Fatal("lost by a short failure")
		}
		store.err.Store(&down)
		for lost.Load() == 0 {
			time.Sleep(time.Second)
		}
		store.err.Store(nil)
		if _, err := issuer.Attempt(t.Context(), request, nil); !errors.Is(err, tokens.ErrRunning) || !first.IsLost() {
			t.Errorf("another attempt begins while the first one is not lost: %v", err)
		}
		time.Sleep(time.Minute)
		if lost.Load() > 1 {
			t.Errorf("lost %d times", lost.Load())
		}
		if err := first.End(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

// TestAttemptLeft: a caller that is gone while its attempt begins leaves no lease.
func TestAttemptLeft(t *testing.T) {
	t.Parallel()
	store, issuer := newUnsteady(t)
	request := tokens.Request{Account: "a"}
	gone := context.Canceled
	store.err.Store(&gone)
	if _, err := issuer.Attempt(t.Context(), request, nil); !errors.Is(err, tokens.ErrUnavailable) {
		t.Fatal(err)
	}
	store.err.Store(nil)
	attempt, err := issuer.Attempt(t.Context(), request, nil)
	if err != nil {
		t.Fatalf("the next attempt: %v", err)
	}
	if err := attempt.Forget(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAttemptLarge: the claims of a request are bounded in all, as they are stored.
func TestAttemptLarge(t *testing.T) {
	t.Parallel()
	_, issuer := newUnsteady(t)
	attempt, err := issuer.Attempt(t.Context(), tokens.Request{Account: "a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	claim := func(name, text string) error {
		value, _ := json.Marshal(text)
		return attempt.Claim(t.Context(), map[string]json.RawMessage{name: value})
	}
	random := func(n int) (text string) {
		for len(text) < n {
			text += rand.Text()
		}
		return text
	}
	if err := claim("same", strings.Repeat("a", 1<<20)); err != nil {
		t.Error(err)
	}
	if err := errors.Join(claim("a", random(40_000)), claim("b", random(40_000))); err != nil {
		t.Error(err)
	}
	if err := claim("c", random(40_000)); !errors.Is(err, tokens.ErrTooLarge) {
		t.Errorf("over 64 KiB: %v", err)
	}
	if err := attempt.Forget(t.Context()); err != nil {
		t.Error(err)
	}
}
