//go:build unix

package lifecycle_test

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
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
		site.Skip(t, "no redis-server: %v", err)
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
	site.Eventually(r.t, "Redis answers", func() bool {
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
	return "tokens redis redis://" + r.address + "\n" + site.OnBolt
}

// TestTokensShared: two Caddys share tokens, also over a restart.
func TestTokensShared(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	one, two := site.NewChild(t), site.NewChild(t)
	one.Start(redis.config())
	two.Start(redis.config())
	token := one.HTTP1().MustLogin(t)
	wantUpload(t, two.HTTP1(), token, http.StatusOK)
	one.Stop()
	one.Start(redis.config())
	wantUpload(t, one.HTTP1(), token, http.StatusOK)
	one.MustLoad(strings.ReplaceAll(redis.config(), site.CheapHash, site.ChangedHash))
	wantUpload(t, one.HTTP1(), token, http.StatusUnauthorized)
	wantUpload(t, two.HTTP1(), token, http.StatusOK) // there the account is unchanged
	if r := one.HTTP1().Login(t, "changed"); r.Status != http.StatusOK {
		t.Errorf("a login with the other password: %v", r)
	} else {
		wantUpload(t, two.HTTP1(), r.Token, http.StatusUnauthorized)
	}
}

// away is the longest wait for an answer while Redis is unavailable.
const away = 20 * time.Second

// TestRedisAway makes Redis unavailable in two ways. Answers soon report this, and everything works
// when it is back.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	c := site.NewChild(t)
	c.Start(redis.config())
	client := c.HTTP1()
	token := client.MustLogin(t)
	wantUpload(t, client, token, http.StatusOK)

	redis.signal(syscall.SIGSTOP) // half-open: it accepts connections and does not answer
	wantUnavailable(t, client, redis, token)
	if status, _ := client.Fetch(t, "content", "small.bin"); status != http.StatusOK {
		t.Errorf("a download needs no Redis and answers %d", status)
	}
	redis.signal(syscall.SIGCONT)
	wantUploadSoon(t, client, token)

	redis.stop()
	wantUnavailable(t, client, redis, token)
	redis.start() // it has forgotten the token
	site.Eventually(t, "a token is given again", func() bool {
		return client.Login(t, site.Password).Status == http.StatusOK
	})
	wantUpload(t, client, token, http.StatusUnauthorized)
	wantUpload(t, client, client.MustLogin(t), http.StatusOK)

	redis.stop()
	c.Stop()
	c.Start(redis.config()) // an unavailable Redis prevents no start
	wantUnavailable(t, client, redis, token)
	redis.start()
	site.Eventually(t, "a token is given again", func() bool {
		return client.Login(t, site.Password).Status == http.StatusOK
	})
}

// wantUnavailable expects that logins and uploads are answered soon, with a request to retry.
func wantUnavailable(t *testing.T, c *site.Client, redis *redisServer, token string) {
	t.Helper()
	for range 2 {
		start := time.Now()
		r := c.Login(t, site.Password)
		if took := time.Since(start); r.Status != http.StatusServiceUnavailable || took > away {
			t.Errorf("without Redis a login is answered after %v with %v", took, r)
		}
		wantNoDetail(t, r, redis.address, "redis", "Redis")
		start = time.Now()
		r = wantUpload(t, c, token, http.StatusServiceUnavailable)
		if took := time.Since(start); took > away {
			t.Errorf("without Redis an upload is answered after %v", took)
		}
		wantNoDetail(t, r, redis.address, "redis", "Redis")
	}
}

func wantUploadSoon(t *testing.T, c *site.Client, token string) {
	t.Helper()
	site.Eventually(t, "an upload succeeds again", func() bool {
		r, _ := c.Put(t, token, "content", "small.bin", []byte("x"))
		return r.Status == http.StatusOK
	})
}
