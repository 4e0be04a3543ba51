package features_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// made is an answer of the panel with the password of an account.
type made struct {
	Section, Name, Password string
	APIKey                  string `json:"api_key"`
}

// TestPanelAccounts creates an account with a working password that is shown once, changes the
// password, limits the account and removes it. Each change revokes the tokens that it must.
func TestPanelAccounts(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	try := func(key, token string) int {
		t.Helper()
		return p.Do(t, http.MethodPost, "/api/upload/file", site.Merged(site.AuthHeader(key, token), site.FormType), site.Form(site.File("a.txt", "x"))).Status
	}
	login := func(password string, want int) string {
		t.Helper()
		r := p.Login(t, "new.site", password)
		if r.Status != want {
			t.Fatalf("a login answers %d %s, want %d", r.Status, r.Body, want)
		}
		var answer struct {
			Success   bool
			Token     string
			ExpiresAt int64 `json:"expires_at"`
			Message   string
		}
		r.Decode(t, &answer)
		return answer.Token
	}
	renew := func(status int) string {
		t.Helper()
		var answer made
		p.Put(t, status, "accounts/new.site", `{"value":{"aliases":["content"]},"new_password":true}`).Decode(t, &answer)
		if answer.APIKey != "new.site" || len(answer.Password) < 20 {
			t.Fatalf("%+v", answer)
		}
		return answer.Password
	}
	first := renew(http.StatusCreated)
	token := login(first, http.StatusOK)
	if status := try("new.site", token); status != http.StatusOK {
		t.Errorf("an upload with the new account: %d", status)
	}
	second := renew(http.StatusOK)
	if second == first {
		t.Error("the new password is the old one")
	}
	login(first, http.StatusUnauthorized)
	if status := try("new.site", token); status != http.StatusUnauthorized {
		t.Errorf("a token of the old password: %d, want 401", status)
	}
	login(second, http.StatusOK)

	// Another change keeps the password.
	saved := p.Put(t, http.StatusOK, "accounts/new.site", `{"value":{}}`)
	if strings.Contains(saved.Body, "password") {
		t.Errorf("a password is shown: %s", saved.Body)
	}
	token = login(second, http.StatusOK)

	// The tokens of an account end with it, also if it is created again unchanged.
	entry := p.Running(t)
	hash := entry[strings.Index(entry, `"new.site"`):]
	hash = hash[strings.Index(hash, "$argon2id"):]
	hash = hash[:strings.Index(hash, `"`)]
	p.Remove(t, http.StatusNoContent, "accounts/new.site")
	if status := try("new.site", token); status != http.StatusUnauthorized {
		t.Errorf("a token of an account that is gone: %d, want 401", status)
	}
	p.Put(t, http.StatusCreated, "accounts/new.site", map[string]any{
		"value": map[string]any{}, "secrets": map[string]string{"password_hash": hash},
	})
	if status := try("new.site", token); status != http.StatusUnauthorized {
		t.Errorf("a token of an account that was gone: %d, want 401", status)
	}
	login(second, http.StatusOK)
	for _, answer := range *p.Seen {
		if strings.Contains(answer.Body, "argon2id") {
			t.Errorf("a hash is shown: %s", answer.Body)
		}
	}
	if log := p.Logged(t); strings.Contains(log, first) || strings.Contains(log, second) || strings.Contains(log, hash) {
		t.Error("the log has a password or its hash")
	}
}

// TestPanelUsers creates an account for the users of another login. It gets no password, and the
// Caddyfile of the panel has it.
func TestPanelUsers(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	const value = `{"value":{"trust":"{http.auth.user.id}","sub_folder":"users/{http.auth.user.id}"}`
	var answer made
	p.Put(t, http.StatusCreated, "accounts/members", value+`}`).Decode(t, &answer)
	if answer.Password != "" {
		t.Errorf("it has the password %s", answer.Password)
	}
	p.Put(t, http.StatusBadRequest, "accounts/members", value+`,"new_password":true}`)
	p.Put(t, http.StatusBadRequest, "accounts/others", value+`}`)
	if r := p.Must(t, http.StatusOK, http.MethodGet, "config/caddyfile", nil); !strings.Contains(r.Body, `trust {http.auth.user.id}`) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}
