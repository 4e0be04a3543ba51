package mediahttp_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

// TestUnauthorized: the message names a mistake that the caller can see in his own headers, never
// whether an account or a token exists.
func TestUnauthorized(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{})
	token := s.Token(t)
	other := strings.Repeat("A", len(token))
	for _, c := range []struct{ name, header, value, want string }{
		{"none", "", "", "no token: send Authorization: Bearer <token>"},
		{"another name", "X-Token", token, "expected_underscore_headers"},
		{"another scheme", "Authorization", token, "no token: send"},
		{"key alone", "Service-Api-Key", someKey, "without a token"},
		{"token alone", "Service-Access-Token", token, "without its API key"},
		{"in quotes", "Authorization", `Bearer "` + token + `"`, "not of the form of tokens"},
		{"in brackets", "Authorization", "Bearer <" + token + ">", "not of the form of tokens"},
		{"password", "Authorization", "Bearer secret", "not of the form of tokens"},
		{"unknown", "Authorization", "Bearer " + other, "the token is wrong or has expired"},
		{"unknown with a key", "Authorization", "Bearer " + other + "\nService-Api-Key: " + someKey, "or belongs to another API key"},
		{"of another key", "Authorization", "Bearer " + token + "\nService-Api-Key: " + otherKey, "or belongs to another API key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := s.Request(t, http.MethodPost, filePath, c.header+": "+c.value, "x")
			w := httptest.NewRecorder()
			s.Handler.ServeHTTP(w, r)
			var got struct{ Errors []struct{ Message string } }
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != http.StatusUnauthorized || len(got.Errors) != 1 || !strings.Contains(got.Errors[0].Message, c.want) {
				t.Errorf("%d %s, want %q", w.Code, w.Body, c.want)
			}
			if w.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Error("there is no WWW-Authenticate")
			}
		})
	}
}
