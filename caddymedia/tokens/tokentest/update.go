package tokentest

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// testChange: change gets what Get returns.
func testChange(t *testing.T, s Subject) {
	key, e := s.newKey(), s.entry("a")
	want := func(old, changed tokens.Entry) {
		t.Helper()
		var got tokens.Entry
		wantNil(t, s.Store.Update(t.Context(), key, "", func(e tokens.Entry) (tokens.Entry, error) {
			got = e
			return changed, nil
		}))
		checkEntry(t, got, old)
	}
	short := s.shortEntry("c")
	want(tokens.Entry{}, e)
	want(e, tokens.Entry{Value: []byte{}})
	want(tokens.Entry{Value: []byte{}}, tokens.Entry{})
	want(tokens.Entry{}, tokens.Entry{})
	want(tokens.Entry{}, short)
	s.Advance(over)
	want(tokens.Entry{}, e)
	wantEntry(t, s.Store, key, e)
}

// testChangeFails: an error of change changes nothing, not even for Updates at the same time.
func testChangeFails(t *testing.T, s Subject) {
	refused, key, missing, index, e := errors.New("refused"), s.newKey(), s.newKey(), rand.Text(), s.entry("a")
	refuse := func(key string) {
		err := s.Store.Update(t.Context(), key, index, func(tokens.Entry) (tokens.Entry, error) {
			return s.entry("b"), refused
		})
		if !errors.Is(err, refused) || errors.Is(err, tokens.ErrUnavailable) {
			t.Errorf("Update: got %v, want the error of change", err)
		}
	}
	set(t, s.Store, key, index, e)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { refuse(key) })
		wg.Go(func() { refuse(missing) })
		wg.Go(func() {
			if err := s.Store.Update(t.Context(), s.newKey(), index, to(e)); err != nil {
				t.Errorf("Update: %v", err)
			}
		})
	}
	wg.Wait()
	wantEntry(t, s.Store, key, e)
	wantMissing(t, s.Store, missing)
	wantDeleted(t, s.Store, index, 1+20)
}

// increment adds one to the number in an entry.
func increment(old tokens.Entry) (tokens.Entry, error) {
	n, _ := strconv.Atoi(string(old.Value))
	return tokens.Entry{Value: strconv.AppendInt(nil, int64(n+1), 10)}, nil
}

func count(t *testing.T, s tokens.Store, key string) int {
	t.Helper()
	e, err := s.Get(t.Context(), key)
	wantNil(t, err)
	n, _ := strconv.Atoi(string(e.Value))
	return n
}

// testCounter: no Update is lost, from whichever store.
func testCounter(t *testing.T, s Subject) {
	const workers, each = 20, 10
	stores := []tokens.Store{s.Store}
	if s.Share != nil {
		stores = append(stores, s.Share(t))
	}
	key, e := s.newKey(), s.entry("1")
	var wg sync.WaitGroup
	var created atomic.Int64
	for n := range workers {
		wg.Go(func() {
			for range each {
				if err := stores[n%len(stores)].Update(t.Context(), key, "", increment); err != nil {
					t.Errorf("Update: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for _, store := range stores {
		if n := count(t, store, key); n != workers*each {
			t.Errorf("counted %d of %d", n, workers*each)
		}
	}
	first := s.newKey() // of many that create an entry, one does
	for n := range workers {
		wg.Go(func() {
			exists := false
			err := stores[n%len(stores)].Update(t.Context(), first, "", func(old tokens.Entry) (tokens.Entry, error) {
				if exists = old.Value != nil; exists {
					return old, nil
				}
				return e, nil
			})
			if err != nil {
				t.Errorf("Update: %v", err)
			} else if !exists {
				created.Add(1)
			}
		})
	}
	if wg.Wait(); created.Load() != 1 {
		t.Errorf("created by %d", created.Load())
	}
}

// testCallerLeaves: an Update whose caller leaves is stored or not, and does not come back later.
func testCallerLeaves(t *testing.T, s Subject) {
	key, stored, failed := s.newKey(), 0, 0
	for n := range 50 {
		ctx, leave := context.WithTimeout(t.Context(), time.Duration(n)*20*time.Microsecond)
		switch err := s.Store.Update(ctx, key, "", increment); {
		case err == nil:
			stored++
		case errors.Is(err, tokens.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded):
			failed++
		default:
			t.Errorf("Update: got %v, want ErrUnavailable and context.DeadlineExceeded", err)
		}
		leave()
		wantNil(t, s.Store.Update(t.Context(), key, "", increment))
		stored++
	}
	n := count(t, s.Store, key)
	if n < stored || n > stored+failed {
		t.Errorf("counted %d, want %d to %d", n, stored, stored+failed)
	}
	set(t, s.Store, key, "", tokens.Entry{Value: []byte("0")})
	if n := count(t, s.Store, key); n != 0 {
		t.Errorf("an Update that failed came back: %d", n)
	}
}

// testConcurrent: callers see what they have stored, and nothing of others.
func testConcurrent(t *testing.T, s Subject) {
	shared, e := s.newKey(), s.entry("shared")
	set(t, s.Store, shared, "", e)
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			key, value := s.newKey(), strconv.Itoa(n)
			err := s.Store.Update(t.Context(), key, "", to(s.entry(value)))
			got, errGet := s.Store.Get(t.Context(), key)
			_, errShared := s.Store.Get(t.Context(), shared)
			if err := errors.Join(err, errGet, errShared, s.Store.Check(t.Context())); err != nil {
				t.Errorf("worker %d: %v", n, err)
			} else if string(got.Value) != value {
				t.Errorf("worker %d got the entry of %s", n, got.Value)
			}
			err = s.Store.Update(t.Context(), key, "", to(tokens.Entry{}))
			got, errGet = s.Store.Get(t.Context(), key)
			if err := errors.Join(err, errGet); err != nil || got.Value != nil {
				t.Errorf("worker %d: got %q and %v after it was removed", n, got.Value, err)
			}
		})
	}
	wg.Wait()
	wantEntry(t, s.Store, shared, e)
}

// testShare: what one store stores, removes or revokes, the other one sees at once.
func testShare(t *testing.T, s Subject) {
	if s.Share == nil {
		t.Skip("the store has its data for itself")
	}
	other, key, index, e := s.Share(t), s.newKey(), rand.Text(), s.entry("a")
	set(t, s.Store, key, index, e)
	wantEntry(t, other, key, e)
	remove(t, other, key)
	wantMissing(t, s.Store, key)
	for range 20 {
		set(t, s.Store, key, index, e)
		wantDeleted(t, other, index, 1)
		wantMissing(t, s.Store, key)
	}
}
