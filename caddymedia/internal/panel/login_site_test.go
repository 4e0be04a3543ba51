package panel

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/admin/web"
	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/adminapi"
	"github.com/caddymedia/media/caddymedia/tokens"
)

// loginSite is a site with a panel that has its own login. The hash of a password is the password
// itself.
type loginSite struct {
	*httptest.Server
	panel *Panel
	mount string // prefix of the addresses that is removed before the panel
	time  time.Time
	vars  map[string]any // of every request
	logs  *observer.ObservedLogs
}

func newLoginSite(t *testing.T, users map[string]string, editors ...string) *loginSite {
	t.Helper()
	files, err := newPages(web.Files)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.DebugLevel)
	s := &loginSite{time: time.Unix(1_900_000_000, 0), logs: logs, vars: map[string]any{caddyhttp.ClientIPVarKey: "192.0.2.1"}}
	s.panel = &Panel{
		Editors: editors, base: "/media-admin", log: zap.New(core), pages: files, guard: http.NewCrossOriginProtection(), now: time.Now, api: newAPI(t, adminapi.Off),
		login: &login{
			base: "/media-admin", now: func() time.Time { return s.time }, sessions: &sessions{byID: map[access.ID]*loggedIn{}}, limits: sessionLimits{time.Hour, 12 * time.Hour},
		},
	}
	s.configure(users)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, new(caddyhttp.Server))
		maps.Copy(r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any), s.vars)
		r.URL.Path, r.URL.RawPath = strings.TrimPrefix(r.URL.Path, s.mount), strings.TrimPrefix(r.URL.RawPath, s.mount)
		if err := s.panel.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// configure replaces the users, as a reload does.
func (s *loginSite) configure(users map[string]string) {
	l := s.panel.login
	l.fingerprints = map[string]string{}
	for user, hash := range users {
		l.fingerprints[user] = access.Account{APIKey: user, PasswordHash: hash}.Fingerprint()
	}
	l.passwords = access.NewPasswords(access.PasswordsOptions{
		Realm: loginRealm, Hashes: users, Comparer: tokens.CompareFunc(func(hashed, plaintext []byte) (bool, error) {
			return slices.Equal(hashed, plaintext), nil
		}),
	})
}

// browser returns a client that keeps cookies and follows no redirect.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type seen struct {
	*http.Response
	text string
}

func (s *loginSite) do(t *testing.T, c *http.Client, method, path, body string, header ...string) seen {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+s.mount+s.panel.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return seen{answer, string(text)}
}

func (s *loginSite) logIn(t *testing.T, c *http.Client, user, password string) seen {
	t.Helper()
	return s.do(t, c, http.MethodPost, "/login", url.Values{"user": {user}, "password": {password}}.Encode())
}

// wantUser checks that a browser is logged in as user, or not at all if user is "".
func (s *loginSite) wantUser(t *testing.T, c *http.Client, what, user string) {
	t.Helper()
	answer := s.do(t, c, http.MethodGet, "/api/session", "")
	var session struct {
		User   string
		LogOut bool `json:"log_out"`
	}
	err := json.Unmarshal([]byte(answer.text), &session)
	if user == "" && answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("%s: %d %s, want 401", what, answer.StatusCode, answer.text)
	}
	if user != "" && (answer.StatusCode != http.StatusOK || err != nil || session.User != user || !session.LogOut) {
		t.Errorf("%s: %d %s, want the user %s", what, answer.StatusCode, answer.text, user)
	}
}

func mustURL(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
