package panel

import (
	"net/http"
	"strings"
	"testing"
)

// TestStranger: without users, the page and the error show how to set up `login`. They do not
// suggest basic_auth, which limits neither guesses nor memory.
func TestStranger(t *testing.T) {
	t.Parallel()
	s := newLoginSite(t, nil)
	s.panel.login, s.panel.User = nil, defaultUser
	for _, path := range []string{"/", "/api/session"} {
		answer := s.do(t, browser(t), http.MethodGet, path, "")
		if answer.StatusCode != http.StatusForbidden || !strings.Contains(answer.text, "No user is logged in") ||
			!strings.Contains(answer.text, "login {") || strings.Contains(answer.text, "basic_auth") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, answer.text)
		}
	}
}
