//go:build unix

package integration

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// redisServer is the test's own Redis, which may be stopped and started again.
type redisServer struct {
	t       *testing.T
	address string
	dir     string
	cmd     *exec.Cmd // nil while it does not run
}

func newRedis(t *testing.T) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		skip(t, "no redis-server: %v", err)
	}
	r := &redisServer{t: t, address: servers.FreeAddress(t), dir: t.TempDir()}
	t.Cleanup(r.stop)
	r.start()
	return r
}

func (r *redisServer) start() {
	r.t.Helper()
	host, port, err := net.SplitHostPort(r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.cmd = exec.Command("redis-server", "--port", port, "--bind", host, "--dir", r.dir, "--save", "")
	if err := r.cmd.Start(); err != nil {
		r.cmd = nil
		r.t.Fatal(err)
	}
	eventually(r.t, "Redis answers", func() bool {
		conn, err := net.Dial("tcp", r.address)
		if err != nil {
			return false
		}
		defer conn.Close()
		answer := make([]byte, len("+PONG"))
		_, err = fmt.Fprint(conn, "PING\r\n")
		if err == nil {
			_, err = conn.Read(answer)
		}
		return err == nil && string(answer) == "+PONG"
	})
}

func (r *redisServer) stop() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Kill() // it may have ended by itself
	_ = r.cmd.Wait()
	r.cmd = nil
}

func (r *redisServer) signal(signal syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		r.t.Fatal(err)
	}
}

// config returns the configuration with tokens in this Redis.
func (r *redisServer) config() string {
	return "tokens redis redis://" + r.address + "\n" + onBolt
}

// TestTokensShared: two Caddys share tokens, also over a restart.
func TestTokensShared(t *testing.T) {
	redis := newRedis(t)
	one, two := newChild(t), newChild(t)
	one.start(redis.config())
	two.start(redis.config())
	token := one.http1().mustLogin(t)
	two.http1().wantUpload(t, token, http.StatusOK)
	one.stop()
	one.start(redis.config())
	one.http1().wantUpload(t, token, http.StatusOK)
	one.mustLoad(strings.ReplaceAll(redis.config(), cheapHash, changedHash))
	one.http1().wantUpload(t, token, http.StatusUnauthorized)
	two.http1().wantUpload(t, token, http.StatusOK) // there the account is unchanged
	if r := one.http1().login(t, "changed"); r.status != http.StatusOK {
		t.Errorf("a login with the other password: %v", r)
	} else {
		two.http1().wantUpload(t, r.Token, http.StatusUnauthorized)
	}
}

// away is the longest wait for an answer while Redis is unavailable.
const away = 20 * time.Second

// TestRedisAway makes Redis unavailable in two ways. Answers soon report this, and everything works
// when it is back.
func TestRedisAway(t *testing.T) {
	redis := newRedis(t)
	c := newChild(t)
	c.start(redis.config())
	client := c.http1()
	token := client.mustLogin(t)
	client.wantUpload(t, token, http.StatusOK)

	redis.signal(syscall.SIGSTOP) // half-open: it accepts connections and does not answer
	client.wantUnavailable(t, redis, token)
	if status, _ := client.fetch(t, "content", "small.bin"); status != http.StatusOK {
		t.Errorf("a download needs no Redis and answers %d", status)
	}
	redis.signal(syscall.SIGCONT)
	client.wantUploadSoon(t, token)

	redis.stop()
	client.wantUnavailable(t, redis, token)
	redis.start() // it has forgotten the token
	eventually(t, "a token is given again", func() bool {
		return client.login(t, password).status == http.StatusOK
	})
	client.wantUpload(t, token, http.StatusUnauthorized)
	client.wantUpload(t, client.mustLogin(t), http.StatusOK)

	redis.stop()
	c.stop()
	c.start(redis.config()) // an unavailable Redis prevents no start
	client.wantUnavailable(t, redis, token)
	redis.start()
	eventually(t, "a token is given again", func() bool {
		return client.login(t, password).status == http.StatusOK
	})
}

// wantUnavailable expects that logins and uploads are answered soon, with a request to retry.
func (c *childClient) wantUnavailable(t *testing.T, redis *redisServer, token string) {
	t.Helper()
	for range 2 {
		start := time.Now()
		r := c.login(t, password)
		if took := time.Since(start); r.status != http.StatusServiceUnavailable || took > away {
			t.Errorf("without Redis a login is answered after %v with %v", took, r)
		}
		wantNoDetail(t, r, redis.address, "redis", "Redis")
		start = time.Now()
		r = c.wantUpload(t, token, http.StatusServiceUnavailable)
		if took := time.Since(start); took > away {
			t.Errorf("without Redis an upload is answered after %v", took)
		}
		wantNoDetail(t, r, redis.address, "redis", "Redis")
	}
}

func (c *childClient) wantUploadSoon(t *testing.T, token string) {
	t.Helper()
	eventually(t, "an upload succeeds again", func() bool {
		r, _ := c.put(t, token, "content", "small.bin", []byte("x"))
		return r.status == http.StatusOK
	})
}
