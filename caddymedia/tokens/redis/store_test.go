package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/tokentest"
	"github.com/caddymedia/media/storagedrivers/options"
)

// TestMain fails for goroutines that stay. A client that was closed while its server was
// unreachable notices that up to a second later.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

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

// entry returns an entry that is valid during the test.
func entry(value string) tokens.Entry {
	return tokens.Entry{Value: []byte(value), Expires: time.Now().Add(time.Hour)}
}

// set stores an entry, or removes the zero Entry.
func set(t *testing.T, s tokens.Store, key, index string, e tokens.Entry) {
	t.Helper()
	err := s.Update(t.Context(), key, index, func(tokens.Entry) (tokens.Entry, error) { return e, nil })
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
}

// wantDeleted deletes an index with a number of entries.
func wantDeleted(t *testing.T, s tokens.Store, index string, want int) {
	t.Helper()
	if n, err := s.DeleteIndex(t.Context(), index); n != want || err != nil {
		t.Errorf("DeleteIndex: deleted %d, want %d: %v", n, want, err)
	}
}

// find returns an error unless there is an entry "key".
func find(t *testing.T, s tokens.Store) error {
	t.Helper()
	e, err := s.Get(t.Context(), "key")
	if err == nil && e.Value == nil {
		err = errors.New("missing")
	}
	return err
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
			Share: openIt,
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

// TestStored: Redis has an entry for as long as it is valid.
func TestStored(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	s := open(t, Config{URL: "redis://" + server.Addr(), KeyPrefix: "x:"})
	set(t, s, "key", "", entry("value"))
	set(t, s, "never", "", tokens.Entry{Value: []byte("value")})
	if keys := server.Keys(); !slices.Equal(keys, []string{"x:entry:key", "x:entry:never"}) {
		t.Fatalf("keys: %q", keys)
	}
	if ttl := server.TTL("x:entry:key"); ttl < 59*time.Minute || ttl > time.Hour+time.Second {
		t.Errorf("TTL: %v", ttl)
	}
	if ttl := server.TTL("x:entry:never"); ttl != 0 {
		t.Errorf("TTL of an entry that never expires: %v", ttl)
	}
	set(t, s, "key", "", tokens.Entry{})
	set(t, s, "never", "", tokens.Entry{Value: []byte("value"), Expires: time.Now()})
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("removed, but there are %q", keys)
	}
	server.Set("x:entry:key", "something else")
	_, errGet := s.Get(t.Context(), "key")
	errUpdate := s.Update(t.Context(), "key", "", func(e tokens.Entry) (tokens.Entry, error) { return e, nil })
	if !errors.Is(errGet, tokens.ErrUnavailable) || !errors.Is(errUpdate, tokens.ErrUnavailable) {
		t.Errorf("unreadable entry: %v and %v", errGet, errUpdate)
	}
}

// TestIndexStored: an index lives as long as its last entry, and loses the members of expired ones.
func TestIndexStored(t *testing.T) {
	t.Parallel()
	server, clock := miniredis.RunT(t), new(tokentest.Clock)
	s := open(t, Config{URL: "redis://" + server.Addr(), KeyPrefix: "x:"})
	s.now = clock.Now
	store := func(key string, lifetime time.Duration) {
		t.Helper()
		e := tokens.Entry{Value: []byte{}}
		if lifetime > 0 {
			e.Expires = clock.Now().Add(lifetime)
		}
		set(t, s, key, "a", e)
	}
	want := func(lifetime time.Duration, members int) {
		t.Helper()
		stored, _ := server.ZMembers("x:index:a")
		if ttl := server.TTL("x:index:a"); ttl != lifetime || len(stored) != members {
			t.Errorf("members %q for %v, want %d for %v", stored, ttl, members, lifetime)
		}
	}
	advance := func(d time.Duration) {
		clock.Advance(d)
		server.FastForward(d)
	}
	store("long", 10*time.Hour)
	store("short", time.Hour)
	want(10*time.Hour+slack, 2)
	advance(time.Hour + slack - time.Second)
	store("long", time.Hour)
	want(9*time.Hour+time.Second, 3) // the clock of another node may be late, for which short is valid
	advance(time.Second)
	store("other", time.Hour)
	want(9*time.Hour, 3)
	wantDeleted(t, s, "a", 2)
	want(0, 0)
	store("short", time.Hour)
	advance(time.Hour + slack)
	want(0, 0)
	store("never", 0)
	store("short", time.Hour)
	want(forever+slack, 2)
}

// TestOtherPrefix: entries and indexes of another prefix stay.
func TestOtherPrefix(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	own := open(t, Config{URL: "redis://" + server.Addr(), KeyPrefix: "a:"})
	other := open(t, Config{URL: "redis://" + server.Addr(), KeyPrefix: "a:b:"})
	for _, s := range []*store{own, other} {
		set(t, s, "key", "index", entry("value"))
	}
	wantDeleted(t, own, "index", 1)
	if err := find(t, other); err != nil {
		t.Error(err)
	}
	wantDeleted(t, other, "index", 1)
}

// TestRealChangedMeanwhile: change is called again with what another node has stored meanwhile.
func TestRealChangedMeanwhile(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"mini": miniredis.RunT(t).Addr(), "real": startPlain(t).addr()} {
		one := open(t, Config{URL: "redis://" + address, Timeout: patient})
		two := open(t, Config{URL: "redis://" + address, Timeout: patient})
		meanwhile := []tokens.Entry{entry("b"), {}, entry("c"), entry("d"), {Value: []byte{}}}
		var seen []string
		err := one.Update(t.Context(), "key", "", func(old tokens.Entry) (tokens.Entry, error) {
			seen = append(seen, fmt.Sprintf("%q", old.Value))
			if n := len(seen); n <= len(meanwhile) {
				set(t, two, "key", "", meanwhile[n-1])
			}
			return entry("a"), nil
		})
		if want := `"" "b" "" "c" "d" ""`; err != nil || strings.Join(seen, " ") != want {
			t.Errorf("%s: change saw %s, want %s: %v", name, seen, want, err)
		}
		if e, err := two.Get(t.Context(), "key"); string(e.Value) != "a" || err != nil {
			t.Errorf("%s: got %q: %v", name, e.Value, err)
		}
	}
}

// beforeCommand calls f before each command of a name.
type beforeCommand struct {
	name string
	f    func()
}

func (beforeCommand) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (beforeCommand) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (b beforeCommand) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if cmd.Name() == b.name {
			b.f()
		}
		return next(ctx, cmd)
	}
}

// TestStoredMeanwhile: an entry that is stored while its index is deleted is gone after the next
// deletion, wherever they meet.
func TestStoredMeanwhile(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	one := open(t, Config{URL: "redis://" + server.Addr(), Timeout: patient})
	two := open(t, Config{URL: "redis://" + server.Addr(), Timeout: patient})
	set(t, one, "key", "index", entry("old"))
	one.client.AddHook(beforeCommand{"zrem", func() { set(t, two, "key", "index", entry("new")) }})
	wantDeleted(t, one, "index", 1)
	wantDeleted(t, two, "index", 1)

	updating := open(t, Config{URL: "redis://" + server.Addr(), Timeout: patient})
	updating.client.AddHook(beforeCommand{"evalsha", func() {
		if _, err := two.DeleteIndex(t.Context(), "index"); err != nil {
			t.Error(err)
		}
	}})
	set(t, two, "key", "index", entry("old"))
	set(t, updating, "key", "index", entry("new"))
	if _, err := two.DeleteIndex(t.Context(), "index"); err != nil {
		t.Error(err)
	}
	if err := find(t, two); err == nil {
		t.Error("the entry is in no index")
	}
}

// TestLostAnswer: the answer to a script is lost, and the client repeats it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	proxy, lost := losingAnswers(t, server.Addr(), "evalsha")
	s := open(t, Config{URL: "redis://" + proxy, Timeout: patient})
	set(t, s, "other", "index", entry("value")) // the server has the scripts now
	lost.Store(true)
	var seen []string
	err := s.Update(t.Context(), "key", "index", func(old tokens.Entry) (tokens.Entry, error) {
		seen = append(seen, string(old.Value))
		return entry("own"), nil
	})
	if err != nil || !slices.Equal(seen, []string{"", "own"}) || lost.Load() {
		t.Errorf("change saw %q: %v", seen, err)
	}
	wantDeleted(t, s, "index", 2)
}

// losingAnswers returns the address of a proxy. While lost is true, it breaks the connection in
// place of the next answer to a command.
func losingAnswers(t *testing.T, address, command string) (proxy string, lost *atomic.Bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lost = new(atomic.Bool)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				client.Close()
				return
			}
			var isLost atomic.Bool
			flow := func(to, from net.Conn, check func(data []byte) (goOn bool)) {
				defer to.Close()
				defer from.Close()
				buffer := make([]byte, 64<<10)
				for {
					n, err := from.Read(buffer)
					if err != nil || !check(buffer[:n]) {
						return
					}
					if _, err := to.Write(buffer[:n]); err != nil {
						return
					}
				}
			}
			conns.Go(func() {
				flow(server, client, func(data []byte) bool {
					if bytes.Contains(data, []byte(command)) && lost.CompareAndSwap(true, false) {
						isLost.Store(true)
					}
					return true
				})
			})
			conns.Go(func() { flow(client, server, func([]byte) bool { return !isLost.Load() }) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		conns.Wait()
	})
	return listener.Addr().String(), lost
}

// TestRealFull: a full server still returns entries and removes them, but stores no other one.
func TestRealFull(t *testing.T) {
	t.Parallel()
	s := open(t, Config{URL: "redis://" + startPlain(t).addr(), Timeout: patient})
	set(t, s, "key", "index", entry("value"))
	set(t, s, "other", "index", entry("value"))
	if err := s.client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if err := find(t, s); err != nil {
		t.Error(err)
	}
	err := s.Update(t.Context(), "new", "", func(tokens.Entry) (tokens.Entry, error) { return entry("a"), nil })
	if !errors.Is(err, tokens.ErrUnavailable) || !errors.Is(s.Check(t.Context()), tokens.ErrUnavailable) {
		t.Errorf("stored in a full server: %v", err)
	}
	set(t, s, "other", "", tokens.Entry{})
	wantDeleted(t, s, "index", 1)
}

// TestDead: while the server is stopped calls fail in time; after its restart they work again.
func TestDead(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	s := open(t, Config{URL: "redis://" + server.Addr()})
	set(t, s, "key", "", entry("value"))
	server.Close()
	for range 5 {
		start := time.Now()
		if _, err := s.Get(t.Context(), "key"); !errors.Is(err, tokens.ErrUnavailable) {
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
		return find(t, s)
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
		if err := s.Check(ctx); !errors.Is(err, tokens.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
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
		if _, err := s.Get(t.Context(), "key"); !errors.Is(err, tokens.ErrUnavailable) {
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
