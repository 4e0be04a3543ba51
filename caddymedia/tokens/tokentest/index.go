package tokentest

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// The indexes of these tests have unique names, because the data may be shared.

// testIndex uses names that a faulty store may confuse.
func testIndex(t *testing.T, s Subject) {
	name := rand.Text()
	indexes := []string{
		name, name + "1", name[:len(name)-1], "x" + name, name + "*", "*" + name, "?" + name[1:], "[A-Z2-7]" + name[1:],
		name + `\`, name + `"`, name + `","index":"` + name, name + " ", name + "!", name + "~", name + "%", name + "/", name + "/1",
		"{" + name + "}", name + ":" + name, strings.ToLower(name), "<&>" + name, (name + strings.Repeat("x", 200))[:199],
	}
	left, e := map[string]string{}, s.entry("a")
	for _, index := range append(indexes, "") {
		for range 3 {
			key := s.newKey()
			set(t, s.Store, key, index, e)
			left[key] = index
		}
	}
	for _, index := range indexes {
		key := s.prefix + index // an entry with the name of an index
		set(t, s.Store, key, "", e)
		left[key] = ""
	}
	wantDeleted(t, s.Store, rand.Text(), 0)
	for _, index := range indexes {
		wantDeleted(t, s.Store, index, 3)
		wantDeleted(t, s.Store, index, 0)
		for key, of := range maps.Clone(left) {
			if of == index {
				wantMissing(t, s.Store, key)
				delete(left, key)
				continue
			}
			wantEntry(t, s.Store, key, e)
		}
	}
	set(t, s.Store, s.newKey(), name, e) // the index may go on
	wantDeleted(t, s.Store, name, 1)
}

// testIndexMembers: an entry that is changed stays in its index, once; one that is removed does
// not.
func testIndexMembers(t *testing.T, s Subject) {
	index, refused := rand.Text(), errors.New("refused")
	kept, late, removed, expired, again := s.newKey(), s.newKey(), s.newKey(), s.newKey(), s.newKey()
	for _, key := range []string{kept, removed, expired, again} {
		set(t, s.Store, key, index, s.entry("a"))
		set(t, s.Store, key, index, tokens.Entry{Value: []byte("b")})
		set(t, s.Store, key, "", s.entry("c"))
	}
	set(t, s.Store, late, "", s.entry("a"))
	set(t, s.Store, late, index, s.entry("b"))
	remove(t, s.Store, removed)
	set(t, s.Store, expired, index, tokens.Entry{Value: []byte("d"), Expires: s.Now()})
	remove(t, s.Store, again)
	set(t, s.Store, again, index, s.entry("d"))
	err := s.Store.Update(t.Context(), s.newKey(), index, func(tokens.Entry) (tokens.Entry, error) {
		return s.entry("a"), refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("Update: got %v, want the error of change", err)
	}
	wantDeleted(t, s.Store, index, 3)
	for _, key := range []string{kept, late, removed, expired, again} {
		wantMissing(t, s.Store, key)
	}
	wantDeleted(t, s.Store, index, 0)
}

func testIndexExpired(t *testing.T, s Subject) {
	index, expired, key := rand.Text(), s.newKey(), s.newKey()
	set(t, s.Store, expired, index, s.shortEntry("a"))
	set(t, s.Store, key, index, s.entry("a"))
	s.Advance(over)
	wantDeleted(t, s.Store, index, 1)
	wantMissing(t, s.Store, key)
	wantMissing(t, s.Store, expired)
}

// testIndexMixed: an index may have durable and volatile entries.
func testIndexMixed(t *testing.T, s Subject) {
	index, key := rand.Text(), rand.Text()
	set(t, s.Store, key, index, s.entry("a"))
	set(t, s.Store, tokens.Volatile+key, index, s.entry("a"))
	wantDeleted(t, s.Store, index, 2)
	wantMissing(t, s.Store, key)
	wantMissing(t, s.Store, tokens.Volatile+key)
}

// testIndexMany uses more entries than a store examines at once.
func testIndexMany(t *testing.T, s Subject) {
	const workers, each = 16, 160
	index, other := rand.Text(), rand.Text()
	keys := s.newKeys(workers * each)
	var wg sync.WaitGroup
	for n := range workers {
		wg.Go(func() {
			for _, key := range keys[n*each : (n+1)*each] {
				err := s.Store.Update(t.Context(), key, index, to(s.entry("a")))
				if err != nil {
					t.Errorf("Update: %v", err)
					return
				}
			}
			if err := s.Store.Update(t.Context(), s.newKey(), other, to(s.entry("b"))); err != nil {
				t.Errorf("Update: %v", err)
			}
		})
	}
	wg.Wait()
	wantDeleted(t, s.Store, index, len(keys))
	wantDeleted(t, s.Store, index, 0)
	for _, key := range keys {
		wantMissing(t, s.Store, key)
	}
	wantDeleted(t, s.Store, other, workers)
}

// testIndexConcurrent deletes an index while it and another one are busy.
func testIndexConcurrent(t *testing.T, s Subject) {
	const workers, each = 8, 20
	index, other := rand.Text(), rand.Text()
	before := s.newKeys(50)
	for _, key := range before {
		set(t, s.Store, key, index, s.entry("a"))
	}
	var wg sync.WaitGroup
	defer wg.Wait() // also when the test ends early
	for range workers {
		wg.Go(func() {
			for range each {
				key := s.newKey()
				err := s.Store.Update(t.Context(), key, other, to(s.entry("b")))
				got, errGet := s.Store.Get(t.Context(), key)
				errOwn := s.Store.Update(t.Context(), s.newKey(), index, to(s.entry("a"))) // may go or stay
				if err := errors.Join(err, errGet, errOwn); err != nil || got.Value == nil {
					t.Errorf("got %q and %v", got.Value, err)
				}
			}
		})
	}
	total := deleteIndex(t, s.Store, index)
	for _, key := range before {
		wantMissing(t, s.Store, key)
	}
	wg.Wait()
	total += deleteIndex(t, s.Store, index)
	if want := len(before) + workers*each; total != want {
		t.Errorf("DeleteIndex: deleted %d in all, want %d", total, want)
	}
	wantDeleted(t, s.Store, other, workers*each)
}

// testIndexCallerLeaves: a DeleteIndex whose caller leaves can be called again.
func testIndexCallerLeaves(t *testing.T, s Subject) {
	index, keys := rand.Text(), s.newKeys(100)
	for _, key := range keys {
		set(t, s.Store, key, index, s.entry("a"))
	}
	for n := range 20 {
		ctx, leave := context.WithTimeout(t.Context(), time.Duration(n)*20*time.Microsecond)
		deleted, err := s.Store.DeleteIndex(ctx, index)
		leave()
		ended := errors.Is(err, tokens.ErrUnavailable) && errors.Is(err, context.DeadlineExceeded)
		if err != nil && (deleted != 0 || !ended) {
			t.Errorf("DeleteIndex: got %d and %v, want 0, ErrUnavailable and context.DeadlineExceeded", deleted, err)
		}
	}
	deleteIndex(t, s.Store, index)
	for _, key := range keys {
		wantMissing(t, s.Store, key)
	}
	wantDeleted(t, s.Store, index, 0)
}

func (s Subject) newKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = s.newKey()
	}
	return keys
}

func deleteIndex(t *testing.T, s tokens.Store, index string) int {
	t.Helper()
	n, err := s.DeleteIndex(t.Context(), index)
	if err != nil {
		t.Fatalf("DeleteIndex(%q): %v", index, err)
	}
	return n
}

func wantDeleted(t *testing.T, s tokens.Store, index string, want int) {
	t.Helper()
	if n := deleteIndex(t, s, index); n != want {
		t.Fatalf("DeleteIndex(%q): deleted %d, want %d", index, n, want)
	}
}
