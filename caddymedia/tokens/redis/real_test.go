package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/tokentest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// conformance runs the suite on a server whose data outlives a client.
func conformance(t *testing.T, config Config) {
	t.Helper()
	config.Timeout = patient
	tokentest.Run(t, func(t *testing.T) tokentest.Subject {
		s := open(t, config)
		share := func(t *testing.T) tokens.Store { return open(t, config) }
		return tokentest.Subject{Store: s, Share: share, Reopen: func(t *testing.T) tokens.Store {
			s.Close()
			return open(t, config)
		}}
	})
}

func TestRealPlain(t *testing.T) {
	t.Parallel()
	conformance(t, Config{URL: "redis://" + startPlain(t).addr()})
}

// rights are those of the Redis user, without the ones for a cluster.
const rights = "+get +set +del +eval +evalsha +zadd +zrange +zrem +zremrangebyscore +pttl +pexpire"

// TestRights: the comment of Config and the documentation name the rights.
func TestRights(t *testing.T) {
	t.Parallel()
	names := strings.ToUpper(strings.ReplaceAll(strings.Replace(rights, "+", "", 1), " +", ", "))
	last := strings.LastIndex(names, ", ")
	names = names[:last] + " and" + names[last+1:]
	if !strings.Contains(strings.ReplaceAll(comments, "\n//", ""), names) {
		t.Errorf("no %q in the comment", names)
	}
	documentation, err := os.ReadFile("../../docs/tokens.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(documentation), "`"+rights+"`") {
		t.Errorf("no %q in the documentation", rights)
	}
}

// TestRealRights: without any one of the rights something fails, and the error says why.
func TestRealRights(t *testing.T) {
	t.Parallel()
	acl, users := filepath.Join(t.TempDir(), "users.acl"), "user default off\n"
	// EVAL is first: it is needed only for scripts that the server does not have yet.
	others := strings.ReplaceAll(strings.ReplaceAll(rights, "+eval ", ""), "+", "")
	names := append([]string{"eval", "none"}, strings.Fields(others)...)
	for _, missing := range names {
		users += "user no-" + missing + " on >hunter2 ~caddymedia:token:* " + strings.ReplaceAll(rights+" ", "+"+missing+" ", "") + "\n"
	}
	if err := os.WriteFile(acl, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	address := startPlain(t, "--aclfile", acl).addr()
	for _, missing := range names {
		s := open(t, Config{URL: "redis://no-" + missing + ":hunter2@" + address, Timeout: patient})
		errUpdate := s.Update(t.Context(), "key", "index", func(tokens.Entry) (tokens.Entry, error) { return entry("a"), nil })
		errRemove := s.Update(t.Context(), "other", "", func(tokens.Entry) (tokens.Entry, error) { return tokens.Entry{}, nil })
		_, errGet := s.Get(t.Context(), "key")
		_, errDelete := s.DeleteIndex(t.Context(), "index")
		err := errors.Join(errUpdate, errRemove, errGet, errDelete, s.Check(t.Context()))
		switch {
		case missing == "none" && err != nil:
			t.Errorf("with all rights: %v", err)
		case missing != "none" && (!errors.Is(err, tokens.ErrUnavailable) || !strings.Contains(err.Error(), "command")):
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

// TestRealOnePooled: a pool of one connection suffices.
func TestRealOnePooled(t *testing.T) {
	t.Parallel()
	s := open(t, Config{URL: "redis://" + startPlain(t).addr(), PoolSize: 1})
	for range 3 {
		set(t, s, "key", "index", entry("value"))
		wantDeleted(t, s, "index", 1)
	}
}

// TestRealRestart: a server that keeps its data is killed and restarted, and the same store
// continues.
func TestRealRestart(t *testing.T) {
	t.Parallel()
	port, dir := servers.FreePort(t), t.TempDir()
	args := []string{"--port", strconv.Itoa(port), "--dir", dir, "--appendonly", "yes", "--appendfsync", "always"}
	first := start(t, port, args...)
	s := open(t, Config{URL: "redis://" + first.addr()})
	set(t, s, "key", "index", entry("value"))
	first.kill()
	if _, err := s.Get(t.Context(), "key"); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("dead: %v", err)
	}
	start(t, port, args...)
	eventually(t, time.Minute, func() error {
		return find(t, s)
	})
}

// TestRealFrozen: a server is stopped with open connections, and continued. The wait for it is
// bounded.
func TestRealFrozen(t *testing.T) {
	t.Parallel()
	server := startPlain(t)
	s := open(t, Config{URL: "redis://" + server.addr()})
	set(t, s, "key", "index", entry("value"))
	if err := server.process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := s.Get(t.Context(), "key"); !errors.Is(err, tokens.ErrUnavailable) || time.Since(began) > 20*time.Second {
		t.Errorf("frozen: %v after %v", err, time.Since(began))
	}
	began = time.Now()
	if _, err := s.DeleteIndex(t.Context(), "index"); !errors.Is(err, tokens.ErrUnavailable) || time.Since(began) > 30*time.Second {
		t.Errorf("frozen, DeleteIndex: %v after %v", err, time.Since(began))
	}
	ctx, leave := context.WithTimeout(t.Context(), defaultTimeout*3/2) // ends during the second attempt
	defer leave()
	if _, err := s.Get(ctx, "key"); !errors.Is(err, tokens.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("frozen, with a short context: %v", err)
	}
	if err := server.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() error {
		_, err := s.DeleteIndex(t.Context(), "index")
		return err
	})
	if err := find(t, s); err == nil {
		t.Error("the entry is still there")
	}
}

// TestRealTLS: TLS with certificates on both sides, and a user with only the documented rights.
func TestRealTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	port := servers.FreePort(t)
	acl := filepath.Join(t.TempDir(), "users.acl")
	users := "user default off\nuser media on >hunter2 ~caddymedia:token:* " + rights + "\n"
	if err := os.WriteFile(acl, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, port, "--port", "0", "--tls-port", strconv.Itoa(port), "--save", "", "--aclfile", acl,
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)
	config := func(username, serverName, prefix string) Config {
		return Config{
			Addresses: []string{fmt.Sprintf("127.0.0.1:%d", port)}, Username: username, Password: "hunter2", KeyPrefix: prefix,
			TLS: true, TLSCAFile: cert, TLSCertFile: cert, TLSKeyFile: key, TLSServerName: serverName,
		}
	}
	conformance(t, config("media", "localhost", ""))
	for _, wrong := range []Config{
		config("mallory", "localhost", ""),
		config("media", "other.test", ""),
		{URL: fmt.Sprintf("rediss://media:hunter2@127.0.0.1:%d", port)}, // not trusted
		{URL: fmt.Sprintf("redis://media:hunter2@127.0.0.1:%d", port)},  // no TLS
		config("media", "localhost", "other:"),
	} {
		err := open(t, wrong).Check(t.Context())
		if !errors.Is(err, tokens.ErrUnavailable) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: got %v", wrong, err)
		}
	}
}

// TestRealSentinel: when the master is killed, its replica takes over with the tokens, and the same
// store continues.
func TestRealSentinel(t *testing.T) {
	t.Parallel()
	auth := []string{"--requirepass", "hunter2", "--masterauth", "hunter2"}
	master := startPlain(t, append(auth, "--repl-diskless-sync-delay", "0")...)
	replica := startPlain(t, append(auth, "--replicaof", "127.0.0.1 "+strconv.Itoa(master.port))...)
	eventually(t, time.Minute, func() error {
		info := admin(t, replica, "hunter2").Info(t.Context(), "replication").Val()
		if !strings.Contains(info, "master_link_status:up") {
			return errors.New(info)
		}
		return nil
	})
	port := servers.FreePort(t)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	lines := fmt.Sprintf("port %d\nrequirepass watch\nsentinel monitor media 127.0.0.1 %d 1\nsentinel auth-pass media hunter2\n"+
		"sentinel down-after-milliseconds media 500\nsentinel failover-timeout media 5000\n", port, master.port)
	if err := os.WriteFile(conf, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := start(t, port, conf, "--sentinel")
	eventually(t, time.Minute, func() error {
		found, err := admin(t, sentinel, "watch").Do(t.Context(), "sentinel", "replicas", "media").Slice()
		if err == nil && len(found) == 0 {
			err = errors.New("the sentinel knows no replica")
		}
		return err
	})
	config := Config{Addresses: []string{sentinel.addr()}, MasterName: "media", Password: "hunter2", SentinelPassword: "watch"}
	conformance(t, config)

	s := open(t, config)
	set(t, s, "key", "index", entry("value"))
	if n, err := admin(t, master, "hunter2").Wait(t.Context(), 1, time.Minute).Result(); n != 1 {
		t.Fatalf("the replica does not have it: %v", err)
	}
	master.kill()
	began := time.Now()
	if _, err := s.Get(t.Context(), "key"); !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("at once: %v", err)
	}
	eventually(t, 30*time.Second, func() error {
		asked := time.Now()
		err := find(t, s)
		if d := time.Since(asked); d > 20*time.Second {
			t.Errorf("one answer took %v", d)
		}
		return errors.Join(err, s.Check(t.Context()))
	})
	t.Logf("the replica took over after %v", time.Since(began))
}

// TestRealCluster: the tokens are spread over three masters.
func TestRealCluster(t *testing.T) {
	t.Parallel()
	nodes := make([]*server, 0, 3)
	for n := range 3 {
		bus := strconv.Itoa(servers.FreePort(t))
		node := startPlain(t, "--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "2000")
		c := admin(t, node, "")
		if err := c.ClusterAddSlotsRange(t.Context(), n*16384/3, (n+1)*16384/3-1).Err(); err != nil {
			t.Fatal(err)
		}
		for _, other := range nodes {
			if err := admin(t, other, "").Do(t.Context(), "cluster", "meet", "127.0.0.1", node.port, bus).Err(); err != nil {
				t.Fatal(err)
			}
		}
		nodes = append(nodes, node)
	}
	for _, node := range nodes {
		eventually(t, 30*time.Second, func() error {
			info := admin(t, node, "").ClusterInfo(t.Context()).Val()
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:3") {
				return errors.New(info)
			}
			return nil
		})
	}
	for _, node := range nodes {
		user := strings.Fields("acl setuser media on >hunter2 ~caddymedia:token:* +cluster|slots +ping " + rights)
		if err := admin(t, node, "").Do(t.Context(), anys(user)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	config := Config{Addresses: []string{nodes[0].addr(), nodes[1].addr()}, Cluster: true, Username: "media", Password: "hunter2"}
	conformance(t, config)
	s := open(t, config)
	spread := func() {
		for n := range 60 {
			set(t, s, fmt.Sprint("spread/", n), "spread", entry("value"))
		}
	}
	spread()
	for _, node := range nodes {
		if keys := admin(t, node, "").Keys(t.Context(), "*spread/*").Val(); len(keys) == 0 {
			t.Errorf("%s holds nothing", node.addr())
		}
	}
	wantDeleted(t, s, "spread", 60)
	spread()
	nodes[1].kill()
	if n, err := s.DeleteIndex(t.Context(), "spread"); n != 0 || !errors.Is(err, tokens.ErrUnavailable) {
		t.Errorf("without one of the masters: %d, %v", n, err)
	}
}

func anys(words []string) []any {
	values := make([]any, len(words))
	for i, word := range words {
		values[i] = word
	}
	return values
}

// admin is a plain connection to one server.
func admin(t *testing.T, s *server, password string) *goredis.Client {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{
		Addr: s.addr(), Password: password, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
	})
	t.Cleanup(func() { c.Close() })
	return c
}
