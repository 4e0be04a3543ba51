package redis

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/tokentest"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreCurrent()) }

// open returns a store that is closed when the test ends.
func open(t *testing.T, c Config) *store {
	t.Helper()
	if err := c.Complete(""); err != nil {
		t.Fatal(err)
	}
	s, err := c.NewStore(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(*store)
}

// record returns a record that is valid during the test.
func record() tokens.Record {
	return tokens.Record{Account: "a", Expires: time.Now().Add(time.Hour)}
}

// patient is a timeout for tests that are not about time, on a busy machine.
const patient = options.Duration(time.Minute)

func TestConformance(t *testing.T) {
	t.Parallel()
	tokentest.Run(t, func(t *testing.T) tokentest.Subject {
		clock, server := new(tokentest.Clock), miniredis.RunT(t)
		openIt := func(t *testing.T) tokens.Store {
			s := open(t, Config{URL: "redis://" + server.Addr(), Timeout: patient})
			s.now = clock.Now
			return s
		}
		s := openIt(t)
		return tokentest.Subject{
			Store: s,
			Now:   clock.Now,
			Advance: func(d time.Duration) {
				clock.Advance(d)
				server.FastForward(d)
			},
			Reopen: func(t *testing.T) tokens.Store {
				s.Close()
				return openIt(t)
			},
		}
	})
}

// TestSecretOfNodes: several nodes that offer a secret at once get the same one.
func TestSecretOfNodes(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	var nodes sync.WaitGroup
	var got [8]string
	for i := range got {
		s := open(t, Config{URL: "redis://" + server.Addr(), Timeout: patient})
		nodes.Go(func() {
			secret, err := s.Secret(t.Context(), "a", []byte{byte(i)})
			if err != nil {
				t.Error(err)
			}
			got[i] = string(secret)
		})
	}
	nodes.Wait()
	for _, secret := range got {
		if len(secret) != 1 || secret != got[0] {
			t.Fatalf("the secrets differ: %q", got)
		}
	}
}

// TestRealSecretFull: a full server still returns a secret, and stores no other one.
func TestRealSecretFull(t *testing.T) {
	t.Parallel()
	s := open(t, Config{URL: "redis://" + startPlain(t).addr(), Timeout: patient})
	if _, err := s.Secret(t.Context(), "a", []byte("secret")); err != nil {
		t.Fatal(err)
	}
	if err := s.client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if secret, err := s.Secret(t.Context(), "a", []byte("another")); string(secret) != "secret" || err != nil {
		t.Errorf("got %q and %v", secret, err)
	}
	if _, err := s.Secret(t.Context(), "b", []byte("another")); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("stored in a full server: %v", err)
	}
}

// TestStored: Redis has only a hash of the token, which expires.
func TestStored(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	s := open(t, Config{URL: "redis://" + server.Addr(), KeyPrefix: "x:"})
	if err := s.Save(t.Context(), tokens.IDOf("token"), record()); err != nil {
		t.Fatal(err)
	}
	keys := server.Keys()
	if len(keys) != 1 || !strings.HasPrefix(keys[0], "x:") || len(keys[0]) != 2+43 {
		t.Fatalf("keys: %q", keys)
	}
	if ttl := server.TTL(keys[0]); ttl < 59*time.Minute || ttl > time.Hour {
		t.Errorf("TTL: %v", ttl)
	}
	value, _ := server.Get(keys[0])
	var fields map[string]any
	if err := json.Unmarshal([]byte(value), &fields); err != nil || len(fields) != 3 {
		t.Errorf("value: %s, %v", value, err)
	}
	server.Set(keys[0], "something else")
	if _, err := s.Load(t.Context(), tokens.IDOf("token")); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("unreadable value: %v", err)
	}
}

// TestDead: while the server is stopped calls fail in time; after its restart they work again.
func TestDead(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	s := open(t, Config{URL: "redis://" + server.Addr()})
	id := tokens.IDOf("token")
	if err := s.Save(t.Context(), id, record()); err != nil {
		t.Fatal(err)
	}
	server.Close()
	for range 5 {
		start := time.Now()
		if _, err := s.Load(t.Context(), id); !errors.Is(err, tokens.ErrUnavailable) {
			t.Fatalf("dead: %v", err)
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("it failed after %v", d)
		}
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() error {
		_, err := s.Load(t.Context(), id)
		return err
	})
}

// TestSilent: with a server that never answers the wait is bounded, and a context can shorten it.
func TestSilent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := open(t, Config{URL: "redis://user:hunter2@" + listener.Addr().String()})
	start := time.Now()
	err = s.Check(t.Context())
	if !errors.Is(err, tokens.ErrUnavailable) {
		t.Fatalf("got %v, want ErrUnavailable", err)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("it failed after %v", d)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the password is in the error: %v", err)
	}
	fastest := time.Minute
	for range 5 { // a busy machine delays some
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		start = time.Now()
		if err := s.Check(ctx); !errors.Is(err, tokens.ErrUnavailable) {
			t.Errorf("with a short context: %v", err)
		}
		fastest = min(fastest, time.Since(start))
		cancel()
	}
	if fastest > 400*time.Millisecond {
		t.Errorf("with a short context the fastest check took %v", fastest)
	}
}

// TestRefused: the server answers with errors.
func TestRefused(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	s := open(t, Config{URL: "redis://" + server.Addr()})
	for _, answer := range []string{
		"LOADING Redis is loading the dataset in memory", "OOM command not allowed", "READONLY You can't write",
		"NOPERM this user has no permissions", "CLUSTERDOWN The cluster is down", "MOVED 1 127.0.0.1:1", "ERR",
	} {
		server.SetError(answer)
		if _, err := s.Load(t.Context(), tokens.ID{}); !errors.Is(err, tokens.ErrUnavailable) {
			t.Errorf("%s: %v", answer, err)
		}
	}
	server.SetError("")
	server.RequireAuth("secret")
	wrong := open(t, Config{URL: "redis://:wrong@" + server.Addr()})
	if err := wrong.Check(t.Context()); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("wrong password: %v", err)
	}
}

// eventually calls f until it succeeds.
func eventually(t *testing.T, within time.Duration, f func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	t.Fatalf("after %v still: %v", within, err)
}
