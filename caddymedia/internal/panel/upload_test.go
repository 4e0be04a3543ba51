package panel

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/service"
)

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
