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

// TestSecretReads: a secret that is stored is returned without a write, so that a full disk is no
// obstacle.
func TestSecretReads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens.db")
	s := New(path, nil, nil)
	defer s.Close()
	var before []byte
	for _, fresh := range []string{"secret", "another"} {
		secret, err := s.Secret(t.Context(), "a", []byte(fresh))
		if err != nil || string(secret) != "secret" {
			t.Fatalf("got %q and %v", secret, err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && !bytes.Equal(content, before) {
			t.Error("the second call has written")
		}
		before = content
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

// TestSweep: of many expiring tokens, only valid ones take space.
func TestSweep(t *testing.T) {
	t.Parallel()
	clock := new(tokentest.Clock)
	s := New(filepath.Join(t.TempDir(), "tokens.db"), nil, clock.Now)
	defer s.Close()
	var wg sync.WaitGroup
	for range 500 {
		wg.Go(func() { saveNew(t, s, clock.Now().Add(time.Minute)) })
	}
	wg.Wait()
	saveNew(t, s, clock.Now().Add(time.Hour))
	if records, expiries := count(t, s); records != 501 || expiries != 501 {
		t.Errorf("before: %d records, %d expiries, want 501", records, expiries)
	}
	clock.Advance(2 * time.Minute)
	for range 500/sweepPerSave + 1 {
		if err := s.Check(t.Context()); err != nil { // sweeps too
			t.Fatal(err)
		}
	}
	if records, expiries := count(t, s); records != 1 || expiries != 1 {
		t.Errorf("after: %d records, %d expiries, want 1", records, expiries)
	}
}

// TestSweepUses: the uses of a ticket are removed with it, and those of others stay.
func TestSweepUses(t *testing.T) {
	t.Parallel()
	clock := new(tokentest.Clock)
	s := New(filepath.Join(t.TempDir(), "tokens.db"), nil, clock.Now)
	defer s.Close()
	for _, lifetime := range []time.Duration{time.Minute, time.Hour} {
		id := tokens.IDOf(rand.Text())
		rec := tokens.Record{Account: "a", Expires: clock.Now().Add(lifetime), Ticket: &tokens.Ticket{MaxFiles: 9}}
		if err := s.Save(t.Context(), id, rec); err != nil {
			t.Fatal(err)
		}
		for _, use := range []string{"a", "b", "c"} {
			if err := s.Take(t.Context(), id, use, 2, 9); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := uses(t, s); n != 8 {
		t.Errorf("%d uses, want 8", n)
	}
	clock.Advance(2 * time.Minute)
	if err := s.Check(t.Context()); err != nil { // sweeps too
		t.Fatal(err)
	}
	if n := uses(t, s); n != 4 {
		t.Errorf("%d uses after the sweep, want 4", n)
	}
	if n, err := s.DeleteAccount(t.Context(), "a"); n != 1 || err != nil {
		t.Errorf("deleted %d: %v", n, err)
	}
	if n := uses(t, s); n != 0 {
		t.Errorf("%d uses after all, want 0", n)
	}
}

// uses returns the number of keys of the bucket of uses: one for each use, and one for their ticket.
func uses(t *testing.T, s *Store) (keys int) {
	t.Helper()
	f, err := s.opened()
	if err != nil {
		t.Fatal(err)
	}
	err = f.db.View(func(tx *bbolt.Tx) error {
		keys = tx.Bucket(bucketUses).Stats().KeyN
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func saveNew(t testing.TB, s *Store, expires time.Time) tokens.ID {
	t.Helper()
	id := tokens.IDOf(rand.Text())
	if err := s.Save(t.Context(), id, tokens.Record{Account: "a", Expires: expires}); err != nil {
		t.Error(err)
	}
	return id
}

func count(t *testing.T, s *Store) (records, expiries int) {
	t.Helper()
	f, err := s.opened()
	if err != nil {
		t.Fatal(err)
	}
	err = f.db.View(func(tx *bbolt.Tx) error {
		records = tx.Bucket(bucketRecords).Stats().KeyN
		expiries = tx.Bucket(bucketExpiries).Stats().KeyN
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return records, expiries
}

func BenchmarkLoad(b *testing.B) {
	s := New(filepath.Join(b.TempDir(), "tokens.db"), nil, nil)
	defer s.Close()
	id := saveNew(b, s, time.Now().Add(time.Hour))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Load(b.Context(), id); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkSave(b *testing.B) {
	s := New(filepath.Join(b.TempDir(), "tokens.db"), nil, nil)
	defer s.Close()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			saveNew(b, s, time.Now().Add(time.Hour))
		}
	})
}
