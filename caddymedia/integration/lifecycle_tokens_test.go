package integration

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// changedHash is the hash of the password "changed", made like cheapHash.
const changedHash = "$argon2id$v=19$m=64,t=1,p=1$RRW6iPHAV0pUhBupioU0wg$nSlkjWe/vXNGMKoe8hJrYFksvUnRsayfcYpWq352gic"

// wantUpload expects the status for an upload with a token.
func (c *childClient) wantUpload(t *testing.T, token string, status int) childReply {
	t.Helper()
	r, _ := c.put(t, token, "content", "small.bin", []byte("x"))
	if r.status != status {
		t.Errorf("the upload is answered with %v, want %d", r, status)
	}
	return r
}

// TestTokensSurvive: tokens that are stored on the disk survive a restart.
func TestTokensSurvive(t *testing.T) {
	c := newChild(t)
	client := c.http1()
	c.start(onBolt)
	token := client.mustLogin(t)
	client.wantUpload(t, token, http.StatusOK)
	c.stop()
	c.start(onBolt)
	client.wantUpload(t, token, http.StatusOK)
	second := client.mustLogin(t)
	c.kill()
	c.start(onBolt)
	client.wantUpload(t, token, http.StatusOK)
	client.wantUpload(t, second, http.StatusOK)
	c.mustLoad(inMemory) // another store does not know them
	client.wantUpload(t, token, http.StatusUnauthorized)
	c.mustLoad(onBolt)
	client.wantUpload(t, token, http.StatusOK)
}

// TestTokensEnd: a change of their account over the admin API revokes tokens.
func TestTokensEnd(t *testing.T) {
	const accounts = "accounts"
	other := `{"` + otherKey + `": {"password_hash": "` + cheapHash + `"}}`
	for name, change := range map[string][3]string{
		"removed with the others":     {http.MethodPatch, accounts, other},
		"removed":                     {http.MethodDelete, accounts + "/" + apiKey, ""},
		"with another password":       {http.MethodPatch, accounts + "/" + apiKey, `{"password_hash": "` + changedHash + `"}`},
		"with another password alone": {http.MethodPatch, accounts + "/" + apiKey + "/password_hash", `"` + changedHash + `"`},
		"with other aliases":          {http.MethodPut, accounts + "/" + apiKey + "/aliases", `["content"]`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChild(t)
			c.start(onBolt)
			client := c.http1()
			token := client.mustLogin(t)
			client.wantUpload(t, token, http.StatusOK)
			if status, answer := c.change(change[0], change[1], change[2]); status != http.StatusOK {
				t.Fatalf("the change is refused: %d %s", status, answer)
			}
			client.wantUpload(t, token, http.StatusUnauthorized)
			if r := client.login(t, "changed"); (r.status == http.StatusOK) != strings.Contains(name, "password") {
				t.Errorf("a login with the other password: %v", r)
			}
		})
	}
}

// TestTokensExpire: tokens expire after the configured time, and not before.
func TestTokensExpire(t *testing.T) {
	c := newChild(t)
	c.start(onBolt + "token_lifetime 1s")
	client := c.http1()
	r := client.login(t, password)
	expires := time.Unix(r.ExpiresAt, 0)
	if left := time.Until(expires); left > 2*time.Second {
		t.Errorf("the token expires in %v", left)
	}
	for {
		answer, _ := client.put(t, r.Token, "content", "small.bin", []byte("x"))
		now := time.Now()
		if answer.status == http.StatusUnauthorized {
			if now.Before(expires) {
				t.Errorf("the token ends %v too early", expires.Sub(now))
			}
			break
		}
		if answer.status != http.StatusOK {
			t.Fatalf("an upload is answered with %v", answer)
		}
		if now.After(expires.Add(patience)) {
			t.Fatal("the token never ends")
		}
		time.Sleep(20 * time.Millisecond)
	}
	eventually(t, "a new token serves", func() bool { // which may expire before it is used
		answer, _ := client.put(t, client.mustLogin(t), "content", "small.bin", []byte("x"))
		return answer.status == http.StatusOK
	})
}

// TestTokenFileOfTwo: two Caddys are configured with one token file. The second reports an error
// while the first works. The second works when the first has ended.
func TestTokenFileOfTwo(t *testing.T) {
	first, second := newChild(t), newChild(t)
	shared := "tokens bolt " + filepath.Join(first.home, "shared.db") + "\n" + onBolt
	first.start(shared)
	token := first.http1().mustLogin(t)
	second.start(shared)
	client := second.http1()
	if r := client.login(t, password); r.status != http.StatusServiceUnavailable {
		t.Errorf("a login at the second: %v", r)
	} else {
		wantNoDetail(t, r, first.home, "shared.db", "bolt")
	}
	wantNoDetail(t, client.wantUpload(t, token, http.StatusServiceUnavailable), first.home, "shared.db", "bolt")
	first.http1().wantUpload(t, token, http.StatusOK)
	first.http1().wantUpload(t, first.http1().mustLogin(t), http.StatusOK)
	first.stop()
	eventually(t, "the second has the file", func() bool {
		return client.login(t, password).status == http.StatusOK
	})
	client.wantUpload(t, token, http.StatusOK)
	if !strings.Contains(second.output(), "another process has the file locked") {
		t.Error("the log of the second does not say why")
	}
}

// wantNoDetail expects an answer with a message, but without internals.
func wantNoDetail(t *testing.T, r childReply, details ...string) {
	t.Helper()
	message := r.String()
	for _, detail := range details {
		if strings.Contains(message, detail) {
			t.Errorf("the answer shows %q: %s", detail, message)
		}
	}
	if r.Message == "" {
		t.Errorf("the answer says nothing: %s", message)
	}
}
