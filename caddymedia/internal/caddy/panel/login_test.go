package panel

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddymedia/media/admin/web"
	"github.com/caddymedia/media/caddymedia/internal/caddy/adminapi"
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/tokens"
)

func TestLoginStranger(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, map[string]string{"alice": "secret"})
	c := browser(t)
	assets := "/assets/" + s.panel.pages.version + "/"
	for _, test := range []struct {
		method, path string
		status       int
		location     string
	}{
		{http.MethodGet, "", http.StatusSeeOther, "/media-admin/login"},
		{http.MethodHead, "/", http.StatusSeeOther, "/media-admin/login"},
		{http.MethodGet, "/login", http.StatusOK, ""},
		{http.MethodHead, "/login", http.StatusOK, ""},
		{http.MethodPut, "/login", http.StatusMethodNotAllowed, ""},
		{http.MethodGet, assets + "login.js", http.StatusOK, ""},
		{http.MethodGet, assets + "style.css", http.StatusOK, ""},
		{http.MethodPost, assets + "style.css", http.StatusUnauthorized, ""},
		{http.MethodGet, assets + "app.js", http.StatusUnauthorized, ""},
		{http.MethodGet, assets + "login.html", http.StatusUnauthorized, ""},
		{http.MethodGet, "/index.html", http.StatusUnauthorized, ""},
		{http.MethodGet, "/api/session", http.StatusUnauthorized, ""},
		{http.MethodDelete, "/api/session", http.StatusUnauthorized, ""},
		{http.MethodGet, "/api/config", http.StatusUnauthorized, ""},
		{http.MethodPut, "/api/config/accounts/x", http.StatusUnauthorized, ""},
		{http.MethodPost, "/", http.StatusUnauthorized, ""},
	} {
		answer := s.do(t, c, test.method, test.path, "")
		if answer.StatusCode != test.status || answer.Header.Get("Location") != test.location {
			t.Errorf("%s %s: %d to %q", test.method, test.path, answer.StatusCode, answer.Header.Get("Location"))
		}
		if test.status == http.StatusUnauthorized && answer.text != `{"error":"You are logged out."}`+"\n" {
			t.Errorf("%s %s: %s", test.method, test.path, answer.text)
		}
	}
	page := s.do(t, c, http.MethodGet, "/login", "")
	for _, want := range []string{"default-src 'none'", "form-action 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"} {
		if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	if page.Header.Get("Cache-Control") != "no-store" || !strings.Contains(page.text, `autocomplete="current-password"`) {
		t.Errorf("%v %s", page.Header, page.text)
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, map[string]string{"alice": "secret", "bob": "other"}, "alice")
	c := browser(t)
	for _, pair := range [][2]string{{"alice", "other"}, {`<b>"x"`, "secret"}} {
		answer := s.logIn(t, c, pair[0], pair[1])
		if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(answer.text, "Wrong user or password.") ||
			strings.Contains(answer.text, "<b>") || len(answer.Cookies()) > 0 {
			t.Errorf("%s: %d %s", pair[0], answer.StatusCode, answer.text)
		}
	}
	s.wantUser(t, c, "before", "")
	answer := s.logIn(t, c, "alice", "secret")
	if answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/media-admin/" || len(answer.Cookies()) != 1 {
		t.Fatalf("%d %v %s", answer.StatusCode, answer.Header, answer.text)
	}
	first := answer.Cookies()[0]
	if first.Name != "media-admin" || first.Path != "/media-admin/" || !first.HttpOnly || first.SameSite != http.SameSiteStrictMode || len(first.Value) < 50 {
		t.Errorf("cookie %v", first)
	}
	s.wantUser(t, c, "logged in", "alice")
	if page := s.do(t, c, http.MethodGet, "/", ""); page.StatusCode != http.StatusOK || !strings.Contains(page.text, "app.js") {
		t.Errorf("the panel: %d %s", page.StatusCode, page.text)
	}
	if page := s.do(t, c, http.MethodGet, "/login", ""); page.StatusCode != http.StatusSeeOther {
		t.Errorf("the login page of one who is logged in: %d", page.StatusCode)
	}
	// Another login in the same browser ends the previous session. This user may only read and log
	// out.
	s.logIn(t, c, "bob", "other")
	s.wantUser(t, c, "logged in again", "bob")
	if n := len(s.panel.login.sessions.byID); n != 1 {
		t.Errorf("%d sessions", n)
	}
	if r := s.do(t, c, http.MethodPut, "/api/config/accounts/x", "{}"); r.StatusCode != http.StatusForbidden {
		t.Errorf("a change: %d %s", r.StatusCode, r.text)
	}
	if r := s.do(t, c, http.MethodDelete, "/api/session", "", "Origin", "https://evil.example"); r.StatusCode != http.StatusForbidden {
		t.Errorf("log out from another site: %d %s", r.StatusCode, r.text)
	}
	kept := c.Jar.Cookies(mustURL(t, s.URL+"/media-admin/"))
	if r := s.do(t, c, http.MethodDelete, "/api/session", ""); r.StatusCode != http.StatusNoContent || r.Cookies()[0].MaxAge >= 0 {
		t.Errorf("log out: %d %v", r.StatusCode, r.Header)
	}
	c.Jar.SetCookies(mustURL(t, s.URL+"/media-admin/"), kept)
	s.wantUser(t, c, "with the cookie of an ended session", "")
	logged := ""
	for _, entry := range s.logs.FilterMessage("login to the panel").All() {
		logged += fmt.Sprintf("%q %s, ", entry.ContextMap()["user"], entry.ContextMap()["result"])
	}
	if want := `"alice" refused, "" refused, "alice" ok, "bob" ok, "bob" logged out, `; logged != want {
		t.Errorf("logged %s, want %s", logged, want)
	}
}

func TestLoginFromOtherSites(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, map[string]string{"alice": "secret"})
	for name, header := range map[string][]string{
		"another origin": {"Origin", "https://evil.example"}, "no origin": {"Origin", "null"}, "another site": {"Sec-Fetch-Site", "cross-site"},
	} {
		r := s.do(t, browser(t), http.MethodPost, "/login", "user=alice&password=secret", header...)
		if r.StatusCode != http.StatusForbidden || len(r.Cookies()) > 0 {
			t.Errorf("%s: %d %v", name, r.StatusCode, r.Header)
		}
	}
}

func TestLoginThrottled(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, map[string]string{"alice": "secret"})
	c := browser(t)
	for range 10 {
		s.logIn(t, c, "alice", "wrong")
	}
	r := s.logIn(t, c, "alice", "secret")
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); r.StatusCode != http.StatusTooManyRequests || err != nil || seconds < 1 ||
		!strings.Contains(r.text, "Too many attempts") || len(r.Cookies()) > 0 {
		t.Errorf("%d %v %s", r.StatusCode, r.Header, r.text)
	}
}

func TestSessionTimes(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, map[string]string{"alice": "secret"})
	c := browser(t)
	s.logIn(t, c, "alice", "secret")
	for range 14 { // 11 h 40 min
		s.time = s.time.Add(50 * time.Minute)
		s.wantUser(t, c, "with a request in 50 minutes", "alice")
	}
	s.time = s.time.Add(20 * time.Minute)
	s.wantUser(t, c, "after 12 hours", "")

	s.logIn(t, c, "alice", "secret")
	s.time = s.time.Add(50 * time.Minute)
	if r := s.do(t, c, http.MethodGet, "/api/session", "", adminapi.BackgroundHeader, "1"); r.StatusCode != http.StatusOK {
		t.Errorf("a request of the page itself: %d", r.StatusCode)
	}
	s.time = s.time.Add(10 * time.Minute)
	s.wantUser(t, c, "an hour after the last request of the user", "")
	if n := len(s.panel.login.sessions.byID); n != 0 {
		t.Errorf("%d sessions are kept", n)
	}
}

// TestSessionConfigured: a session ends for good when its user is removed or gets another password,
// and in no other case.
func TestSessionConfigured(t *testing.T) {
	t.Parallel()
	users := map[string]string{"alice": "secret", "bob": "other"}
	for name, changed := range map[string]map[string]string{
		"removed":          {"bob": "other"},
		"another password": {"alice": "new", "bob": "other"},
		"the one of bob":   {"alice": "other", "bob": "secret"},
	} {
		s := newLoginSite(t, users)
		alice, bob := browser(t), browser(t)
		s.logIn(t, alice, "alice", "secret")
		s.logIn(t, bob, "bob", "other")
		s.configure(users)
		s.wantUser(t, alice, name+": a reload", "alice")
		s.configure(changed)
		s.wantUser(t, alice, name, "")
		if changed["bob"] == "other" {
			s.wantUser(t, bob, name, "bob")
		}
		s.configure(users)
		s.wantUser(t, alice, name+": as before again", "")
	}
}

func TestLoginCookie(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		base, name, path string
		trusted          bool
		proto            string
	}{
		{"/media-admin", "media-admin", "/media-admin/", false, "https"},
		{"/media-admin", "__Secure-media-admin", "/media-admin/", true, "https"},
		{"/media-admin", "media-admin", "/media-admin/", true, "http"},
		{"", "__Host-media-admin", "/", true, "https"},
		{"", "media-admin", "/", false, ""},
	} {
		s := newLoginSite(t, map[string]string{"alice": "secret"})
		s.vars[caddyhttp.TrustedProxyVarKey] = test.trusted
		s.panel.login.base = test.base
		r := s.do(t, browser(t), http.MethodPost, "/login", "user=alice&password=secret", "X-Forwarded-Proto", test.proto)
		if len(r.Cookies()) != 1 {
			t.Fatalf("%+v: %d %v", test, r.StatusCode, r.Header)
		}
		if c := r.Cookies()[0]; c.Name != test.name || c.Path != test.path || c.Secure != strings.HasPrefix(test.name, "__") || c.Domain != "" {
			t.Errorf("%+v: %v", test, c)
		}
	}
}

// TestLoginBelowPrefix: redirects and the cookie stay below a prefix that is removed before the
// panel.
func TestLoginBelowPrefix(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "/media-admin"} {
		s := newLoginSite(t, map[string]string{"alice": "secret"})
		s.mount, s.panel.base, s.panel.login.base = "/admin", base, base
		s.vars[caddyhttp.TrustedProxyVarKey] = true
		c, below := browser(t), "/admin"+base
		if r := s.do(t, c, http.MethodGet, "/", ""); r.Header.Get("Location") != below+"/login" {
			t.Errorf("%s: %d to %q", below, r.StatusCode, r.Header.Get("Location"))
		}
		if r := s.logIn(t, c, "alice", "secret"); r.Header.Get("Location") != below+"/" || len(r.Cookies()) != 1 || r.Cookies()[0].Path != below+"/" {
			t.Errorf("%s: %d %v", below, r.StatusCode, r.Header)
		}
		s.wantUser(t, c, below, "alice")
		r := s.do(t, browser(t), http.MethodPost, "/login", "user=alice&password=secret", "X-Forwarded-Proto", "https")
		if len(r.Cookies()) != 1 || r.Cookies()[0].Name != "__Secure-media-admin" {
			t.Errorf("%s over TLS: %d %v", below, r.StatusCode, r.Header)
		}
		if r := s.do(t, c, http.MethodDelete, "/api/session", ""); r.StatusCode != http.StatusNoContent || r.Cookies()[0].Path != below+"/" {
			t.Errorf("%s, log out: %d %v", below, r.StatusCode, r.Header)
		}
		s.wantUser(t, c, below+", logged out", "")
	}
}

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

// TestLoginPublicPassword: the password of Caddyfile.example opens the panel to this machine alone.
func TestLoginPublicPassword(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, map[string]string{"admin": "public", "alice": "secret"})
	s.panel.login.public = []string{"admin"}
	s.panel.gate = caller.New[*service.Service](nil, caller.Options(plugin.HandlerOptions(nil)))
	for _, c := range []struct {
		client, form, header string
		status               int
	}{
		{"127.0.0.1", "user=admin&password=public", "Accept", http.StatusSeeOther},
		{"::1", "user=admin&password=public", "Accept", http.StatusSeeOther},
		{"::1", "user=admin&password=wrong", "Accept", http.StatusUnauthorized},
		{"192.0.2.1", "user=admin&password=public", "Accept", http.StatusForbidden},
		{"127.0.0.1", "user=admin&password=public", "X-Forwarded-For", http.StatusForbidden},
		{"192.0.2.1", "user=alice&password=secret", "X-Forwarded-For", http.StatusSeeOther},
	} {
		s.vars[caddyhttp.ClientIPVarKey] = c.client
		if r := s.do(t, browser(t), http.MethodPost, "/login", c.form, c.header, "x"); r.StatusCode != c.status {
			t.Errorf("%s from %s with %s: %d %s", c.form, c.client, c.header, r.StatusCode, r.text)
		}
	}
}
