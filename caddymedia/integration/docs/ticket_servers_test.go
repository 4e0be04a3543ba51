package docs_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/integration/ticketserver"
)

// TestTicketServers: the documented programs answer logged-in users with tickets, renew a token that
// has ended, and hide the cause of a missing ticket.
func TestTicketServers(t *testing.T) {
	for name, start := range ticketserver.All {
		t.Run(name, func(t *testing.T) {
			s := site.Start(t, site.Basic, "media")
			env := append(os.Environ(), "MEDIA_SERVER="+s.URL, "MEDIA_API_KEY="+site.APIKey)
			address := "http://" + start(t, append(env, "MEDIA_PASSWORD="+site.Password))
			client, stranger := loggedIn(t, address), new(http.Client)

			status, answer := ask(t, stranger, http.MethodPost, address, "")
			if status != http.StatusForbidden || answer["message"] != "log in first" {
				t.Errorf("without a login: %d %v", status, answer)
			}
			if status, answer = ask(t, client, http.MethodGet, address, "anna"); status != http.StatusMethodNotAllowed {
				t.Errorf("GET: %d %v", status, answer)
			}
			for _, when := range []string{"at first", "with the token kept", "after the token has ended"} {
				if strings.HasPrefix(when, "after") {
					s.Load(t, site.Config{Media: site.Basic + "tokens bolt " + filepath.Join(t.TempDir(), "tokens.db") + "\n", Site: "media"}) // which has no tokens yet
				}
				status, answer = ask(t, client, http.MethodPost, address, "anna")
				ticket, _ := answer["ticket"].(string)
				expires, _ := answer["expires_at"].(float64)
				if status != http.StatusOK || len(ticket) < 40 || expires == 0 || len(answer) != 2 {
					t.Errorf("%s: %d %v", when, status, answer)
				}
			}

			address = "http://" + start(t, append(env, "MEDIA_PASSWORD=not this one"))
			status, answer = ask(t, loggedIn(t, address), http.MethodPost, address, "anna")
			if status != http.StatusBadGateway || answer["message"] != "uploads are not possible now" || len(answer) != 1 {
				t.Errorf("with a wrong password: %d %v", status, answer)
			}
		})
	}
}

// loggedIn returns a client with a session of the site.
func loggedIn(t *testing.T, address string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	r, err := client.Get(address + "/log-in")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return client
}

// ask requests a ticket in the name of a user; empty for a request without a login.
func ask(t *testing.T, client *http.Client, method, address, user string) (status int, answer map[string]any) {
	t.Helper()
	req, err := http.NewRequest(method, address+"/media-ticket", nil)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		req.Header.Set("Remote-User", user)
	}
	r, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%d %s: %v", r.StatusCode, body, err)
	}
	return r.StatusCode, answer
}
