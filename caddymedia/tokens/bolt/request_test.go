package bolt

import (
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/tokentest"
)

// keysOf returns the number of keys in the buckets of requests.
func keysOf(t *testing.T, s *Store) (n int) {
	t.Helper()
	f, err := s.opened()
	if err == nil {
		err = f.db.View(func(tx *bbolt.Tx) error {
			for _, name := range [][]byte{bucketRequests, bucketOldest, bucketExpiries} {
				n += tx.Bucket(name).Stats().KeyN
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestForget: a request that is forgotten leaves nothing in the file, however it is forgotten.
func TestForget(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(*Store, *tokentest.Clock, tokens.Request) error{
		"itself": func(s *Store, _ *tokentest.Clock, r tokens.Request) error { return s.ForgetRequest(t.Context(), r) },
		"with its account": func(s *Store, _ *tokentest.Clock, r tokens.Request) error {
			_, err := s.DeleteAccount(t.Context(), r.Account)
			return err
		},
		"expired": func(s *Store, clock *tokentest.Clock, _ tokens.Request) error {
			clock.Advance(tokens.RequestLifetime + time.Second)
			return s.Check(t.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := new(tokentest.Clock)
			s := New(filepath.Join(t.TempDir(), "tokens.db"), nil, clock.Now)
			defer s.Close()
			for _, account := range []string{"a", "b"} {
				r := tokens.Request{ID: tokens.IDOf(account), Account: account, Holder: "h", Most: 10, MostBytes: 1000}
				if _, err := s.BeginRequest(t.Context(), r, time.Hour); err != nil {
					t.Fatal(err)
				}
				if err := s.ClaimRequest(t.Context(), r, "a", nil); err != nil {
					t.Fatal(err)
				}
				if err := forget(s, clock, r); err != nil {
					t.Fatal(err)
				}
				if n := keysOf(t, s); n > 0 {
					t.Errorf("%d keys are left", n)
				}
			}
		})
	}
}

// TestNoWrites: a request that claims nothing writes nothing.
func TestNoWrites(t *testing.T) {
	t.Parallel()
	clock := new(tokentest.Clock)
	s := New(filepath.Join(t.TempDir(), "tokens.db"), nil, clock.Now)
	defer s.Close()
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := s.opened()
	if err != nil {
		t.Fatal(err)
	}
	before := f.db.Stats()
	r := tokens.Request{Account: "a", Holder: "h"}
	for _, end := range []func() error{
		func() error { return s.EndRequest(t.Context(), r, nil) },
		func() error { return s.ForgetRequest(t.Context(), r) },
	} {
		if _, err := s.BeginRequest(t.Context(), r, time.Minute); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			clock.Advance(time.Minute / 2)
			if err := s.ExtendRequest(t.Context(), r, time.Minute); err != nil {
				t.Error(err)
			}
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	after := f.db.Stats()
	if writes := after.TxStats.GetWrite() - before.TxStats.GetWrite(); writes > 0 {
		t.Errorf("%d writes", writes)
	}
}
