package faults_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// wantUpload expects the status for an upload with a token.
func wantUpload(t *testing.T, c *site.Client, token string, status int) site.Answer {
	t.Helper()
	r, _ := c.Put(t, token, "content", "small.bin", []byte("x"))
	if r.Status != status {
		t.Errorf("the upload is answered with %v, want %d", r, status)
	}
	return r
}

// TestTokensSurvive: tokens that are stored on the disk survive a restart.
func TestTokensSurvive(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	client := c.HTTP1()
	c.Start(site.OnBolt)
	token := client.MustLogin(t)
	wantUpload(t, client, token, http.StatusOK)
	c.Stop()
	c.Start(site.OnBolt)
	wantUpload(t, client, token, http.StatusOK)
	second := client.MustLogin(t)
	c.Kill()
	c.Start(site.OnBolt)
	wantUpload(t, client, token, http.StatusOK)
	wantUpload(t, client, second, http.StatusOK)
	c.MustLoad(site.InMemory) // another store does not know them
	wantUpload(t, client, token, http.StatusUnauthorized)
	c.MustLoad(site.OnBolt)
	wantUpload(t, client, token, http.StatusOK)
}

// TestTokensEnd: a change of their account over the admin API revokes tokens.
func TestTokensEnd(t *testing.T) {
	t.Parallel()
	const accounts = "accounts"
	other := `{"` + site.OtherKey + `": {"password_hash": "` + site.CheapHash + `"}}`
	for name, change := range map[string][3]string{
		"removed with the others":     {http.MethodPatch, accounts, other},
		"removed":                     {http.MethodDelete, accounts + "/" + site.APIKey, ""},
		"with another password":       {http.MethodPatch, accounts + "/" + site.APIKey, `{"password_hash": "` + site.ChangedHash + `"}`},
		"with another password alone": {http.MethodPatch, accounts + "/" + site.APIKey + "/password_hash", `"` + site.ChangedHash + `"`},
		"with other aliases":          {http.MethodPut, accounts + "/" + site.APIKey + "/aliases", `["content"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := site.NewChild(t)
			c.Start(site.OnBolt)
			client := c.HTTP1()
			token := client.MustLogin(t)
			wantUpload(t, client, token, http.StatusOK)
			if status, answer := c.Change(change[0], change[1], change[2]); status != http.StatusOK {
				t.Fatalf("the change is refused: %d %s", status, answer)
			}
			wantUpload(t, client, token, http.StatusUnauthorized)
			if r := client.Login(t, "changed"); (r.Status == http.StatusOK) != strings.Contains(name, "password") {
				t.Errorf("a login with the other password: %v", r)
			}
		})
	}
}

// TestTokenFileOfTwo: two Caddys are configured with one token file. The second reports an error
// while the first works. The second works when the first has ended.
func TestTokenFileOfTwo(t *testing.T) {
	t.Parallel()
	first, second := site.NewChild(t), site.NewChild(t)
	shared := "tokens bolt " + filepath.Join(first.Home, "shared.db") + "\n" + site.OnBolt
	first.Start(shared)
	token := first.HTTP1().MustLogin(t)
	second.Start(shared)
	client := second.HTTP1()
	if r := client.Login(t, site.Password); r.Status != http.StatusServiceUnavailable {
		t.Errorf("a login at the second: %v", r)
	} else {
		wantNoDetail(t, r, first.Home, "shared.db", "bolt")
	}
	wantNoDetail(t, wantUpload(t, client, token, http.StatusServiceUnavailable), first.Home, "shared.db", "bolt")
	wantUpload(t, first.HTTP1(), token, http.StatusOK)
	wantUpload(t, first.HTTP1(), first.HTTP1().MustLogin(t), http.StatusOK)
	first.Stop()
	site.Eventually(t, "the second has the file", func() bool {
		return client.Login(t, site.Password).Status == http.StatusOK
	})
	wantUpload(t, client, token, http.StatusOK)
	if !strings.Contains(second.Output(), "another process has the file locked") {
		t.Error("the log of the second does not say why")
	}
}

// wantNoDetail expects an answer with a message, but without internals.
func wantNoDetail(t *testing.T, r site.Answer, details ...string) {
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
