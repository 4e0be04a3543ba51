package panel

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
)

// itemsSite is a panel of a service, with the users alice and bob, who have the password "secret".
// Only alice is an editor.
type itemsSite struct {
	*loginSite

	site *testservice.Site
}

var itemUsers = map[string]string{"alice": "secret", "bob": "secret"}

// newItemsSite returns a site with some items below the keys of the aliases.
func newItemsSite(t *testing.T, keys ...string) *itemsSite {
	t.Helper()
	s := &itemsSite{loginSite: newLoginSite(t, itemUsers, "alice"), site: testservice.Default(t)}
	s.panel.gate = s.site.Gate
	s.provision(t, s.panel)
	for _, key := range keys {
		s.site.Put(t, "file/"+key, "old")
	}
	return s
}

// provision makes a panel the one of the running configuration, until the end of the test.
func (s *itemsSite) provision(t *testing.T, p *Panel) {
	t.Helper()
	provisioned.Store(p, service.Of(s.site.First))
	t.Cleanup(func() { provisioned.Delete(p) })
}

// browser returns the browser of a logged-in user.
func (s *itemsSite) browser(t *testing.T, user string) *http.Client {
	t.Helper()
	b := browser(t)
	if answer := s.logIn(t, b, user, "secret"); answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("logging in: %d %s", answer.StatusCode, answer.text)
	}
	return b
}

// change is a request that changes items.
type change struct{ method, route, body string }

// itemChanges are requests that succeed with the items of changed.
var (
	itemChanges = []change{
		{http.MethodDelete, "file/one/a.txt", ""},
		{http.MethodPost, "file/one/a.txt", "to=b.txt"},
		{http.MethodPost, "file/one/a.txt", "copy_to=b.txt&to_alias=two"},
		{http.MethodPost, "file/one", "action=delete&filename=a.txt"},
		{http.MethodPost, "file/one", "action=delete&folder=sub"},
		{http.MethodPut, "file/replacing/a.txt", "new"},
	}
	changed = []string{"one/a.txt", "one/sub/a.txt", "two/a.txt", "replacing/a.txt"}
)

// send sends a change of any item.
func (s *itemsSite) send(t *testing.T, b *http.Client, c change, header ...string) seen {
	t.Helper()
	return s.do(t, b, c.method, "/api/items/"+c.route, c.body, append(header, "If-Match", "*")...)
}

// TestItems: an editor changes items of all aliases by the requests of clients, below any address.
func TestItems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mount, base string }{{"", "/media-admin"}, {"/in/side", "/media-admin"}, {"", ""}, {"/in", ""}} {
		for _, change := range itemChanges {
			t.Run(fmt.Sprint(c, change), func(t *testing.T) {
				t.Parallel()
				s := newItemsSite(t, changed...)
				time.Sleep(time.Millisecond) // items that are stored in the same moment are not deleted with their folder
				s.mount, s.panel.base, s.panel.login.base = c.mount, c.base, c.base
				b := s.browser(t, "alice")
				before := s.site.Objects(t)
				answer := s.send(t, b, change, "Origin", s.URL, "Sec-Fetch-Site", "same-origin")
				if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.text, `{"success":true`) {
					t.Errorf("%d %s", answer.StatusCode, answer.text)
				}
				if strings.Contains(answer.text, "full_path") && !strings.Contains(answer.text, `"full_path":"`+s.URL+"/static/file/") {
					t.Errorf("address: %s", answer.text)
				}
				if maps.Equal(s.site.Objects(t), before) {
					t.Error("nothing is changed")
				}
				if answer.Header.Get("Content-Security-Policy") != policy || answer.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("header %v", answer.Header)
				}
				s.Close() // it logs after the answer
				logged := s.logs.FilterMessage("change in the panel").All()
				if len(logged) != 1 || logged[0].ContextMap()["name"] != change.route || logged[0].ContextMap()["user"] != "alice" {
					t.Errorf("logged %v", logged)
				}
			})
		}
	}
}

// TestItemsOfOthers: strangers, users who are no editors, and pages of other sites in the browser
// of an editor change nothing.
func TestItemsOfOthers(t *testing.T) {
	t.Parallel()
	s := newItemsSite(t, changed...)
	before := s.site.Objects(t)
	editor, viewer := s.browser(t, "alice"), s.browser(t, "bob")
	check := func(what string, status int, text string, b *http.Client, header ...string) {
		t.Helper()
		for _, c := range itemChanges {
			if answer := s.send(t, b, c, header...); answer.StatusCode != status || !strings.Contains(answer.text, text) {
				t.Errorf("%s: %s %s: %d %s, want %d", what, c.method, c.route, answer.StatusCode, answer.text, status)
			}
		}
	}
	check("stranger", http.StatusUnauthorized, "logged out", browser(t))
	check("viewer", http.StatusForbidden, "not an editor", viewer)
	for _, route := range []string{"file/one", "file/one/a.txt"} { // which changes nothing
		if answer := s.do(t, viewer, http.MethodGet, "/api/items/"+route, ""); answer.StatusCode != http.StatusOK || !strings.Contains(answer.text, `"filename":"a.txt"`) {
			t.Errorf("%s: %d %s", route, answer.StatusCode, answer.text)
		}
	}
	for what, header := range map[string][]string{
		"another origin":           {"Origin", "https://evil.example"},
		"no origin":                {"Origin", "null"},
		"another site":             {"Sec-Fetch-Site", "cross-site"},
		"the same site":            {"Sec-Fetch-Site", "same-site"},
		"another origin that lies": {"Origin", s.URL, "Sec-Fetch-Site", "cross-site"},
	} {
		check(what, http.StatusForbidden, otherSite, editor, header...)
		check(what+", multipart", http.StatusForbidden, otherSite, editor, append(header, "Content-Type", "multipart/form-data; boundary=x")...)
	}
	s.panel.login.sessions.end(cookieOf(t, s, editor))
	check("session that has ended", http.StatusUnauthorized, "logged out", editor)
	if after := s.site.Objects(t); !maps.Equal(after, before) {
		t.Errorf("changed to %v", after)
	}
}

// cookieOf returns the secret of a session.
func cookieOf(t *testing.T, s *itemsSite, b *http.Client) string {
	t.Helper()
	for _, cookie := range b.Jar.Cookies(mustURL(t, s.URL+s.mount+s.panel.base+"/")) {
		if cookie.Name == cookieName {
			return cookie.Value
		}
	}
	t.Fatal("no session")
	return ""
}

// TestItemsUnderWay: a change whose session ends, or whose user is no longer an editor, while its
// body is read is refused. One that outlasts its configuration is not.
func TestItemsUnderWay(t *testing.T) {
	t.Parallel()
	reload := func(t *testing.T, s *itemsSite, users map[string]string, editors ...string) {
		t.Helper()
		next := newLoginSite(t, users, editors...)
		s.provision(t, next.panel)
		provisioned.Delete(s.panel)
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, s *itemsSite, secret string)
		status int
	}{
		{"nothing", func(*testing.T, *itemsSite, string) {}, http.StatusOK},
		{"a reload", func(t *testing.T, s *itemsSite, _ string) { reload(t, s, itemUsers, "alice") }, http.StatusOK},
		{"logged out", func(_ *testing.T, s *itemsSite, secret string) { s.panel.login.sessions.end(secret) }, http.StatusUnauthorized},
		{"no editor", func(t *testing.T, s *itemsSite, _ string) { reload(t, s, itemUsers, "bob") }, http.StatusUnauthorized},
		{"another password", func(t *testing.T, s *itemsSite, _ string) {
			reload(t, s, map[string]string{"alice": "new", "bob": "secret"}, "alice")
		}, http.StatusUnauthorized},
	} {
		for _, request := range []change{itemChanges[1], itemChanges[5]} {
			t.Run(fmt.Sprint(c.name, request), func(t *testing.T) {
				t.Parallel()
				s := newItemsSite(t, changed...)
				time.Sleep(time.Millisecond) // as above
				before := s.site.Objects(t)
				secret := cookieOf(t, s, s.browser(t, "alice"))
				r := httptest.NewRequestWithContext(t.Context(), request.method, "/media-admin/api/items/"+request.route, testservice.Meanwhile(request.body, func() { c.change(t, s, secret) }))
				r.AddCookie(&http.Cookie{Name: cookieName, Value: secret})
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Header.Set("If-Match", "*")
				w := httptest.NewRecorder()
				s.Config.Handler.ServeHTTP(w, r)
				if w.Code != c.status {
					t.Errorf("%d %s, want %d", w.Code, w.Body, c.status)
				}
				if isChanged := !maps.Equal(s.site.Objects(t), before); isChanged != (c.status == http.StatusOK) {
					t.Errorf("changed: %t", isChanged)
				}
			})
		}
	}
}

// TestItemsAddresses: a name is decoded once, and an address that no page makes is refused.
func TestItemsAddresses(t *testing.T) {
	t.Parallel()
	for _, mount := range []string{"", "/in"} {
		s := newItemsSite(t, "exact/sub/č/a b%2F.txt", "one/stays.txt")
		s.mount = mount
		b := s.browser(t, "alice")
		for route, status := range map[string]int{
			"file/exact/sub/%C4%8D/a%20b%252F.txt": 200, "file/one/sub%2Fstays.txt": 400, "file%2Fone/stays.txt": 404, "file/one/": 400,
			"file/two/../one/stays.txt": 400, "file/two/%2e%2e/one/stays.txt": 400, "": 404, "file": 404, "other/one/stays.txt": 404,
			"../items/file/one/stays.txt": 404, "file/one/none.txt": 404, "file/one": 405, "%66ile/one/stays.txt": 404,
		} {
			if answer := s.send(t, b, change{method: http.MethodDelete, route: route}); answer.StatusCode != status {
				t.Errorf("%q: %d %s, want %d", route, answer.StatusCode, answer.text, status)
			}
		}
		if left := s.site.Keys(t, ""); !slices.Equal(left, []string{"file/one/stays.txt"}) {
			t.Errorf("left are %q", left)
		}
	}
}

// TestUploadConfirmed: an upload is confirmed only if its session and its user are still valid.
func TestUploadConfirmed(t *testing.T) {
	t.Parallel()
	users := map[string]string{"alice": "secret", "bob": "other"}
	for _, test := range []struct {
		name   string
		change func(s *loginSite, secret string) (next *loginSite)
		want   bool
	}{
		{"nothing", func(s *loginSite, _ string) *loginSite { return s }, true},
		{"a reload", func(*loginSite, string) *loginSite { return newLoginSite(t, users, "alice") }, true},
		{"all edit", func(*loginSite, string) *loginSite { return newLoginSite(t, users) }, true},
		{"no editor", func(*loginSite, string) *loginSite { return newLoginSite(t, users, "bob") }, false},
		{"removed", func(*loginSite, string) *loginSite {
			return newLoginSite(t, map[string]string{"bob": "other"})
		}, false},
		{"another hash", func(*loginSite, string) *loginSite {
			return newLoginSite(t, map[string]string{"alice": "new"})
		}, false},
		{"no login", func(*loginSite, string) *loginSite {
			s := newLoginSite(t, nil)
			s.panel.login = nil
			return s
		}, false},
		{"no panel", func(*loginSite, string) *loginSite { return nil }, false},
		{"logged out", func(s *loginSite, secret string) *loginSite { s.panel.login.sessions.end(secret); return s }, false},
		{"after 2 hours", func(s *loginSite, _ string) *loginSite {
			s.time = s.time.Add(2 * time.Hour)
			s.panel.login.sessions.begin("bob", "", s.panel.login.limits, s.time)
			return s
		}, true},
		{"after the longest time", func(s *loginSite, _ string) *loginSite { s.time = s.time.Add(12 * time.Hour); return s }, false},
	} {
		s := newLoginSite(t, users, "alice")
		before, running := new(service.Service), new(service.Service)
		provisioned.Store(s.panel, before)
		r := httptest.NewRequest(http.MethodPost, "/media-admin/api/upload/file", nil)
		l := s.panel.login
		secret := l.sessions.begin("alice", l.fingerprints["alice"], l.limits, s.time)
		r.AddCookie(&http.Cookie{Name: l.cookieName(r), Value: secret})
		confirm, ended := s.panel.uploadSession(r, visitor{name: "alice", editor: true})
		if !confirm(before) {
			t.Errorf("%s: refused before", test.name)
		}
		next := test.change(s, secret)
		if next != nil {
			provisioned.Store(next.panel, running)
		}
		if got := confirm(running); got != test.want {
			t.Errorf("%s: confirmed %t, want %t", test.name, got, test.want)
		}
		ended()
		s.time = s.time.Add(time.Hour)
		if l.sessions.lasts(secret, l.fingerprints["alice"], s.time) {
			t.Errorf("%s: the session is not idle after the upload", test.name)
		}
		provisioned.Delete(s.panel)
		if next != nil {
			provisioned.Delete(next.panel)
		}
		if confirm(before) || confirm(running) {
			t.Errorf("%s: confirmed by a panel that is gone", test.name)
		}
	}
}

// TestUploadConfirmedWithoutLogin: an upload is refused once its user is no longer an editor. The
// user was authenticated in front of the panel.
func TestUploadConfirmedWithoutLogin(t *testing.T) {
	t.Parallel()
	app := new(service.Service)
	p := &Panel{User: defaultUser, Editors: []string{"alice"}}
	provisioned.Store(p, app)
	defer provisioned.Delete(p)
	confirm, ended := p.uploadSession(httptest.NewRequest(http.MethodPost, "/", nil), visitor{name: "alice", editor: true})
	defer ended()
	if !confirm(app) {
		t.Error("an editor is refused")
	}
	after, next := new(service.Service), &Panel{User: defaultUser, Editors: []string{"bob"}}
	provisioned.Store(next, after)
	defer provisioned.Delete(next)
	if confirm(after) {
		t.Error("confirmed for one who is no editor any more")
	}
}

// TestZipOfViewer: a viewer may download items, because that changes nothing. All other checks of a
// POST stay, and only changes are logged.
func TestZipOfViewer(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, map[string]string{"alice": "secret", "bob": "other"}, "alice")
	s.panel.routes = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	asJSON := []string{"Content-Type", "application/json"}
	for name, test := range map[string]struct {
		user, method, path string
		header             []string
		status             int
	}{
		"viewer":           {"bob", http.MethodPost, "/api/zip/img/photos", nil, http.StatusTeapot},
		"editor":           {"alice", http.MethodPost, "/api/zip/img/photos", nil, http.StatusTeapot},
		"another origin":   {"bob", http.MethodPost, "/api/zip/img/photos", []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		"no origin":        {"bob", http.MethodPost, "/api/zip/img/photos", []string{"Origin", "null"}, http.StatusForbidden},
		"another site":     {"bob", http.MethodPost, "/api/zip/img/photos", []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		"a change":         {"alice", http.MethodPut, "/api/zip/img/photos", asJSON, http.StatusTeapot},
		"another method":   {"bob", http.MethodPut, "/api/zip/img/photos", asJSON, http.StatusForbidden},
		"no kind":          {"bob", http.MethodPost, "/api/zip", nil, http.StatusForbidden},
		"a form of others": {"alice", http.MethodPost, "/api/probe", nil, http.StatusUnsupportedMediaType},
		"a page":           {"bob", http.MethodPost, "/zip/img/photos", nil, http.StatusForbidden},
		"logged out":       {"", http.MethodPost, "/api/zip/img/photos", nil, http.StatusUnauthorized},
	} {
		c := browser(t)
		if test.user != "" {
			s.logIn(t, c, test.user, map[string]string{"alice": "secret", "bob": "other"}[test.user])
		}
		if got := s.do(t, c, test.method, test.path, "filename=a.jpg", test.header...); got.StatusCode != test.status {
			t.Errorf("%s: %d %s, want %d", name, got.StatusCode, got.text, test.status)
		}
	}
	if n := s.logs.FilterMessage("change in the panel").Len(); n != 2 { // with the refused probe
		t.Errorf("%d changes are logged: %+v", n, s.logs.FilterMessage("change in the panel").All())
	}
}
