//go:build unix

package faults_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// onRedis returns a configuration with tokens in a Redis.
func onRedis(r *site.Redis) string { return "tokens redis redis://" + r.Address + "\n" + site.OnBolt }

// away is the longest wait for an answer while Redis is unavailable.
const away = 20 * time.Second

// TestRedisAway makes Redis unavailable in two ways. Answers soon report this, and everything works
// when it is back.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	redis := site.NewRedis(t)
	c := site.NewChild(t)
	c.Start(onRedis(redis))
	client := c.HTTP1()
	token := client.MustLogin(t)
	wantUpload(t, client, token, http.StatusOK)

	redis.Signal(syscall.SIGSTOP) // half-open: it accepts connections and does not answer
	wantUnavailable(t, client, redis, token)
	if status, _ := client.Fetch(t, "content", "small.bin"); status != http.StatusOK {
		t.Errorf("a download needs no Redis and answers %d", status)
	}
	redis.Signal(syscall.SIGCONT)
	wantUploadSoon(t, client, token)

	redis.Stop()
	wantUnavailable(t, client, redis, token)
	redis.Start() // it has forgotten the token
	site.Eventually(t, "a token is given again", func() bool {
		return client.Login(t, site.Password).Status == http.StatusOK
	})
	wantUpload(t, client, token, http.StatusUnauthorized)
	wantUpload(t, client, client.MustLogin(t), http.StatusOK)

	redis.Stop()
	c.Stop()
	c.Start(onRedis(redis)) // an unavailable Redis prevents no start
	wantUnavailable(t, client, redis, token)
	redis.Start()
	site.Eventually(t, "a token is given again", func() bool {
		return client.Login(t, site.Password).Status == http.StatusOK
	})
}

// wantUnavailable expects that logins and uploads are answered soon, with a request to retry.
func wantUnavailable(t *testing.T, c *site.Client, redis *site.Redis, token string) {
	t.Helper()
	for range 2 {
		start := time.Now()
		r := c.Login(t, site.Password)
		if took := time.Since(start); r.Status != http.StatusServiceUnavailable || took > away {
			t.Errorf("without Redis a login is answered after %v with %v", took, r)
		}
		wantNoDetail(t, r, redis.Address, "redis", "Redis")
		start = time.Now()
		r = wantUpload(t, c, token, http.StatusServiceUnavailable)
		if took := time.Since(start); took > away {
			t.Errorf("without Redis an upload is answered after %v", took)
		}
		wantNoDetail(t, r, redis.Address, "redis", "Redis")
	}
}

func wantUploadSoon(t *testing.T, c *site.Client, token string) {
	t.Helper()
	site.Eventually(t, "an upload succeeds again", func() bool {
		r, _ := c.Put(t, token, "content", "small.bin", []byte("x"))
		return r.Status == http.StatusOK
	})
}
