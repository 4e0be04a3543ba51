package panel

import (
	"net/http"
	"testing"
)

// TestZipOfViewer: a viewer may download items, because that changes nothing. All other checks of a POST
// stay, and only changes are logged.
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
