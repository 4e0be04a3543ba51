package panel

import (
	"net/http"
	"testing"
)

// TestZipOfViewer: a viewer may select items to download, because that changes nothing. All other
// checks of a POST stay, and only changes are logged.
func TestZipOfViewer(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, map[string]string{"alice": "secret", "bob": "other"}, "alice")
	s.panel.routes = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	const body = `{"kind":"img","alias":"photos","filenames":["a.jpg"]}`
	asJSON := []string{"Content-Type", "application/json"}
	for name, test := range map[string]struct {
		user, method, path string
		header             []string
		status             int
	}{
		"viewer":             {"bob", http.MethodPost, "/api/zip", asJSON, http.StatusTeapot},
		"editor":             {"alice", http.MethodPost, "/api/zip", asJSON, http.StatusTeapot},
		"download":           {"bob", http.MethodGet, "/api/zip/id/photos.zip", nil, http.StatusTeapot},
		"length":             {"bob", http.MethodHead, "/api/zip/id/photos.zip", nil, http.StatusTeapot},
		"a form":             {"bob", http.MethodPost, "/api/zip", nil, http.StatusUnsupportedMediaType},
		"another origin":     {"bob", http.MethodPost, "/api/zip", append(asJSON, "Origin", "https://evil.example"), http.StatusForbidden},
		"another site":       {"bob", http.MethodPost, "/api/zip", append(asJSON, "Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"a change":           {"alice", http.MethodPut, "/api/zip", asJSON, http.StatusTeapot},
		"another method":     {"bob", http.MethodPut, "/api/zip", asJSON, http.StatusForbidden},
		"a route below":      {"bob", http.MethodPost, "/api/zip/id/photos.zip", asJSON, http.StatusForbidden},
		"a slash at the end": {"bob", http.MethodPost, "/api/zip/", asJSON, http.StatusForbidden},
		"a page":             {"bob", http.MethodPost, "/zip", asJSON, http.StatusForbidden},
		"logged out":         {"", http.MethodPost, "/api/zip", asJSON, http.StatusUnauthorized},
	} {
		c := browser(t)
		if test.user != "" {
			s.logIn(t, c, test.user, map[string]string{"alice": "secret", "bob": "other"}[test.user])
		}
		if got := s.do(t, c, test.method, test.path, body, test.header...); got.StatusCode != test.status {
			t.Errorf("%s: %d %s, want %d", name, got.StatusCode, got.text, test.status)
		}
	}
	if n := s.logs.FilterMessage("change in the panel").Len(); n != 1 {
		t.Errorf("%d changes are logged: %+v", n, s.logs.FilterMessage("change in the panel").All())
	}
}
