package bolt

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/tokentest"
)

// lockHolder is the environment variable that makes the test binary the other process of
// TestLockedByProcess.
const lockHolder = "MEDIA_TEST_BOLT_LOCK"

func TestMain(m *testing.M) {
	if path := os.Getenv(lockHolder); path != "" {
		holdLock(path)
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

func TestConformance(t *testing.T) {
	t.Parallel()
	tokentest.Run(t, func(t *testing.T) tokentest.Subject {
		clock := new(tokentest.Clock)
		path := filepath.Join(t.TempDir(), "tokens.db")
		s := New(path, nil, clock.Now)
		return tokentest.Subject{
			Store: s, Now: clock.Now, Advance: clock.Advance,
			Reopen: func(t *testing.T) tokens.Store {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				return New(path, nil, clock.Now)
			},
		}
	})
}

// TestLazy: no file is created before the first use, and only the owner can access it.
func TestLazy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "tokens.db")
	s := New(path, nil, nil)
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("folder before the first use: %v", err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantMode(t, path, 0o600)
	wantMode(t, filepath.Dir(path), 0o700|fs.ModeDir)
	wantMode(t, filepath.Dir(filepath.Dir(path)), 0o700|fs.ModeDir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != want {
		t.Errorf("%s: mode %v, want %v", path, info.Mode(), want)
	}
}

// TestClosedUnused closes a store that never opened a file.
func TestClosedUnused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.db")
	s := New(path, nil, nil)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file exists: %v", err)
	}
}

// TestSweep: of many expiring entries, only valid ones take space.
func TestSweep(t *testing.T) {
	t.Parallel()
	s, clock := newStore(t)
	var wg sync.WaitGroup
	for range 500 {
		wg.Go(func() { putNew(t, s, clock.Now().Add(time.Minute)) })
	}
	wg.Wait()
	putNew(t, s, clock.Now().Add(time.Hour))
	wantKeys(t, s, 501)
	clock.Advance(2 * time.Minute)
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, s, 501-sweepPerWrite)
	for range 500/sweepPerWrite + 1 {
		if err := s.Check(t.Context()); err != nil { // sweeps too
			t.Fatal(err)
		}
	}
	wantKeys(t, s, 1)
}

// TestRemoved: an entry that is gone leaves nothing in the file, however it goes.
func TestRemoved(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*Store, *tokentest.Clock) error{
		"removed": func(s *Store, _ *tokentest.Clock) error {
			return s.Update(t.Context(), "key", "", to(tokens.Entry{}))
		},
		"replaced by an expired one": func(s *Store, clock *tokentest.Clock) error {
			return s.Update(t.Context(), "key", "index", to(tokens.Entry{Value: []byte{}, Expires: clock.Now()}))
		},
		"with its index": func(s *Store, _ *tokentest.Clock) error {
			_, err := s.DeleteIndex(t.Context(), "index")
			return err
		},
		"expired": func(s *Store, clock *tokentest.Clock) error {
			clock.Advance(time.Hour)
			return s.Check(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, clock := newStore(t)
			for _, lifetime := range []time.Duration{time.Minute, time.Hour} {
				e := tokens.Entry{Value: []byte{}, Expires: clock.Now().Add(lifetime)}
				if err := s.Update(t.Context(), "key", "index", to(e)); err != nil {
					t.Fatal(err)
				}
				wantKeys(t, s, 1)
			}
			if err := remove(s, clock); err != nil {
				t.Fatal(err)
			}
			wantKeys(t, s, 0)
		})
	}
}

// TestNoWrites: reads, and all calls for volatile entries but those of an index, write nothing.
func TestNoWrites(t *testing.T) {
	t.Parallel()
	s, clock := newStore(t)
	key, volatile := putNew(t, s, clock.Now().Add(time.Hour)), tokens.Volatile+"a"
	f, err := s.opened()
	if err != nil {
		t.Fatal(err)
	}
	before := f.db.Stats()
	for range 3 {
		clock.Advance(time.Minute)
		e := tokens.Entry{Value: []byte{1}, Expires: clock.Now().Add(2 * time.Minute)}
		err := s.Update(t.Context(), volatile, "index", to(e))
		got, errGet := s.Get(t.Context(), volatile)
		_, errKey := s.Get(t.Context(), key)
		if err := errors.Join(err, errGet, errKey); err != nil || got.Value == nil {
			t.Errorf("got %q and %v", got.Value, err)
		}
	}
	if err := s.Update(t.Context(), volatile, "", to(tokens.Entry{})); err != nil {
		t.Error(err)
	}
	after := f.db.Stats()
	if writes := after.TxStats.GetWrite() - before.TxStats.GetWrite(); writes > 0 {
		t.Errorf("%d writes", writes)
	}
	wantKeys(t, s, 1)
}

// TestMalformed: an entry that cannot be decoded is an error for its own callers only. It can be
// removed with its index.
func TestMalformed(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	key := putNew(t, s, time.Time{})
	f, err := s.opened()
	if err != nil {
		t.Fatal(err)
	}
	for _, malformed := range [][]byte{{}, make([]byte, headerSize-1), bytes.Repeat([]byte{1}, headerSize+10)} {
		err := f.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketEntries).Put([]byte(key), malformed) })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), key); !errors.Is(err, tokens.ErrUnavailable) {
			t.Errorf("Get: %v", err)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				err := s.Update(t.Context(), key, "a", to(tokens.Entry{}))
				if !errors.Is(err, tokens.ErrUnavailable) {
					t.Errorf("Update: %v", err)
				}
			})
			wg.Go(func() { putNew(t, s, time.Time{}) })
		}
		wg.Wait()
	}
	if _, err := s.DeleteIndex(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	wantKeys(t, s, 0)
}

// newStore returns a store with a clock. It is closed at the end of the test.
func newStore(t *testing.T) (*Store, *tokentest.Clock) {
	t.Helper()
	clock := new(tokentest.Clock)
	s := New(filepath.Join(t.TempDir(), "tokens.db"), nil, clock.Now)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, clock
}

// to returns the change of any entry to e.
func to(e tokens.Entry) func(tokens.Entry) (tokens.Entry, error) {
	return func(tokens.Entry) (tokens.Entry, error) { return e, nil }
}

// putNew stores an entry of index "a" and returns its key.
func putNew(t testing.TB, s *Store, expires time.Time) (key string) {
	t.Helper()
	key = rand.Text()
	if err := s.Update(t.Context(), key, "a", to(tokens.Entry{Value: make([]byte, 100), Expires: expires})); err != nil {
		t.Error(err)
	}
	return key
}

// wantKeys checks the number of keys in each bucket, for entries that all expire and have an index.
func wantKeys(t *testing.T, s *Store, want int) {
	t.Helper()
	f, err := s.opened()
	if err != nil {
		t.Fatal(err)
	}
	err = f.db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			if n := b.Stats().KeyN; n != want {
				t.Errorf("%d keys in %q, want %d", n, name, want)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkGet(b *testing.B) {
	s := New(filepath.Join(b.TempDir(), "tokens.db"), nil, nil)
	defer s.Close()
	key := putNew(b, s, time.Now().Add(time.Hour))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Get(b.Context(), key); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	s := New(filepath.Join(b.TempDir(), "tokens.db"), nil, nil)
	defer s.Close()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			putNew(b, s, time.Now().Add(time.Hour))
		}
	})
}
