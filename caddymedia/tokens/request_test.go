package tokens_test

import (
	"errors"
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
		for range 2 { // of the same attempt
			if value, earlier, err := first.Claim(t.Context(), "name", []byte("value")); string(value) != "value" || earlier || err != nil {
				t.Errorf("claimed %q, earlier %t, error %v", value, earlier, err)
			}
		}
		if err := first.End(t.Context(), nil); err != nil {
			t.Error(err)
		}
		second, err := attempt()
		if err != nil || !second.IsRepeated {
			t.Fatalf("the second attempt: %+v, %v", second, err)
		}
		if value, earlier, err := second.Claim(t.Context(), "name", []byte("other")); string(value) != "value" || !earlier || err != nil {
			t.Errorf("claimed %q, earlier %t, error %v", value, earlier, err)
		}
		if _, err := store.DeleteAccount(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if lost.Load() != 1 {
			t.Errorf("told %d times that the request is lost", lost.Load())
		}
		if _, _, err := second.Claim(t.Context(), "more", nil); !errors.Is(err, tokens.ErrUnknown) {
			t.Errorf("a claim without the request: %v", err)
		}
		if err := second.End(t.Context(), []byte("late")); err != nil {
			t.Error(err)
		}
		third, err := attempt()
		if err != nil || third.Answer != nil || third.IsRepeated {
			t.Fatalf("the third attempt: %+v, %v", third, err)
		}
		if err := third.End(t.Context(), []byte("answer")); err != nil {
			t.Error(err)
		}
		if fourth, err := attempt(); err != nil || string(fourth.Answer) != "answer" {
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
