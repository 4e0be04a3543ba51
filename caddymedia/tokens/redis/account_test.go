package redis

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// TestAccountOfOtherPrefix: a prefix with the characters of a pattern matches only itself, and
// other keys stay.
func TestAccountOfOtherPrefix(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"mini": miniredis.RunT(t).Addr(), "real": startPlain(t).addr()} {
		for prefix, other := range map[string]string{
			"a*:": "ab:", "b?:": "bc:", "c[xy]:": "cx:", "d[^x]:": "dy:", `e\x:`: "ex:", `f\\x:`: `f\x:`, "g[x-z:": "gy:",
		} {
			t.Run(name+" "+prefix, func(t *testing.T) {
				t.Parallel()
				own, others := open(t, Config{URL: "redis://" + address}), open(t, Config{URL: "redis://" + address})
				own.prefix, others.prefix = prefix, other
				for n := range 3 {
					for _, s := range []*store{own, others} {
						if err := s.Save(t.Context(), tokens.ID{byte(n)}, record()); err != nil {
							t.Fatal(err)
						}
					}
				}
				if err := own.client.Set(t.Context(), own.key(tokens.ID{9}), "not a record", 0).Err(); err != nil {
					t.Fatal(err)
				}
				if err := own.Check(t.Context()); err != nil { // leaves a key of its own
					t.Fatal(err)
				}
				if n, err := own.DeleteAccount(t.Context(), "a"); n != 3 || err != nil {
					t.Errorf("deleted %d, want 3: %v", n, err)
				}
				for n := range 3 {
					if _, err := own.Load(t.Context(), tokens.ID{byte(n)}); !errors.Is(err, tokens.ErrUnknown) {
						t.Errorf("token %d: %v", n, err)
					}
					if _, err := others.Load(t.Context(), tokens.ID{byte(n)}); err != nil {
						t.Errorf("token %d of the other prefix: %v", n, err)
					}
				}
				if n := own.client.Exists(t.Context(), own.key(tokens.ID{9})).Val(); n != 1 {
					t.Error("a key that is no record is gone")
				}
			})
		}
	}
}

// TestRealAccountRights: without any one of its rights the user deletes nothing, and the error
// names the missing right.
func TestRealAccountRights(t *testing.T) {
	t.Parallel()
	acl := filepath.Join(t.TempDir(), "users.acl")
	users := "user default off\n"
	for _, missing := range []string{"none", "scan", "get", "del"} {
		rights := strings.ReplaceAll("+get +set +del +scan +eval +evalsha +hget +hset +hdel +pexpire +zrange", "+"+missing, "")
		users += "user no-" + missing + " on >hunter2 ~caddymedia:token:* " + rights + "\n"
	}
	if err := os.WriteFile(acl, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	address := startPlain(t, "--aclfile", acl).addr()
	as := func(missing string) *store {
		return open(t, Config{URL: "redis://no-" + missing + ":hunter2@" + address})
	}
	all, id := as("none"), tokens.IDOf("token")
	if err := all.Save(t.Context(), id, record()); err != nil {
		t.Fatal(err)
	}
	for _, missing := range []string{"scan", "get", "del"} {
		_, err := as(missing).DeleteAccount(t.Context(), "a")
		if !errors.Is(err, tokens.ErrUnavailable) || !strings.Contains(err.Error(), "permissions to run the '"+missing+"' command") {
			t.Errorf("without %s: %v", missing, err)
		}
		if _, err := all.Load(t.Context(), id); err != nil {
			t.Errorf("without %s: %v", missing, err)
		}
	}
	if n, err := all.DeleteAccount(t.Context(), "a"); n != 1 || err != nil {
		t.Errorf("deleted %d, want 1: %v", n, err)
	}
}

// TestRealTicketRights: without any one of the rights for tickets tokens work, and tickets fail.
func TestRealTicketRights(t *testing.T) {
	t.Parallel()
	acl := filepath.Join(t.TempDir(), "users.acl")
	users := "user default off\n"
	// EVAL is first: it is needed only for scripts that the server does not have yet.
	names := []string{"eval", "none", "evalsha", "hget", "hmget", "hset", "hdel", "pexpire"}
	for _, missing := range names {
		rights := strings.ReplaceAll("+get +set +del +scan +eval +evalsha +hget +hmget +hset +hdel +pexpire ", "+"+missing+" ", "")
		users += "user no-" + missing + " on >hunter2 ~caddymedia:token:* " + rights + "\n"
	}
	if err := os.WriteFile(acl, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	address := startPlain(t, "--aclfile", acl).addr()
	rec := record()
	rec.Ticket = &tokens.Ticket{MaxFiles: 1}
	for n, missing := range names {
		s, id := open(t, Config{URL: "redis://no-" + missing + ":hunter2@" + address}), tokens.ID{byte(n)}
		_, errLoad := s.Load(t.Context(), id)
		if err := errors.Join(s.Check(t.Context()), s.Save(t.Context(), id, record())); err != nil || !errors.Is(errLoad, tokens.ErrUnknown) {
			t.Errorf("without %s a token: %v, %v", missing, err, errLoad)
		}
		errSave := s.Save(t.Context(), id, rec)
		_, errLoad = s.Load(t.Context(), id)
		err := errors.Join(errSave, errLoad, s.Take(t.Context(), id, "a", 1, 1), s.GiveBack(t.Context(), id, "a"))
		switch {
		case missing == "none" && err != nil:
			t.Errorf("with all rights: %v", err)
		case missing != "none" && !errors.Is(err, tokens.ErrUnavailable):
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

// TestRealAccountFrozen: while the server is stopped the wait is bounded; deletion works when it
// continues.
func TestRealAccountFrozen(t *testing.T) {
	t.Parallel()
	server := startPlain(t)
	s := open(t, Config{URL: "redis://" + server.addr()})
	if err := s.Save(t.Context(), tokens.ID{}, record()); err != nil {
		t.Fatal(err)
	}
	if err := server.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err := s.DeleteAccount(t.Context(), "a")
	if !errors.Is(err, tokens.ErrUnavailable) || time.Since(began) > 30*time.Second {
		t.Errorf("frozen: %v after %v", err, time.Since(began))
	}
	if err := server.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() error {
		n, err := s.DeleteAccount(t.Context(), "a")
		if err == nil && n != 1 {
			err = errors.New("not counted")
		}
		return err
	})
}

// TestRealAccountOnePooled: a pool of one connection suffices.
func TestRealAccountOnePooled(t *testing.T) {
	t.Parallel()
	s := open(t, Config{URL: "redis://" + startPlain(t).addr(), PoolSize: 1})
	for range 3 {
		if err := s.Save(t.Context(), tokens.ID{}, record()); err != nil {
			t.Fatal(err)
		}
		if n, err := s.DeleteAccount(t.Context(), "a"); n != 1 || err != nil {
			t.Errorf("deleted %d, want 1: %v", n, err)
		}
	}
}
