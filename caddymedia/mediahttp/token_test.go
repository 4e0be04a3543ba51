package mediahttp_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// login returns the case of a login.
func login(key, word string) httpCase {
	return httpCase{
		Target: tokenPath, Header: urlencoded, Status: http.StatusOK,
		Body: url.Values{"api_key": {key}, "password": {word}}.Encode(),
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.TokenLifetime = options.Duration(90 * time.Minute) })
	exact := regexp.MustCompile(`^{"success":true,"token":"([A-Za-z0-9_-]{43})","expires_at":` +
		strconv.FormatInt(noon.Add(90*time.Minute).Unix(), 10) + `}\n?$`)
	var issued [2]string
	for i := range issued {
		r := login(someKey, password).Check(t, s)
		found := exact.FindStringSubmatch(r.Body)
		if found == nil {
			t.Fatalf("response %s, want %s", r.Body, exact)
		}
		issued[i] = found[1]
	}
	if issued[0] == issued[1] {
		t.Error("two logins return one token")
	}
	s.Vars = []string{"$ISSUED", issued[0]}
	upload := httpCase{Target: filePath, Header: multipart + "Authorization: Bearer $ISSUED", Body: form(file("a.txt", "x")), Status: 200}
	upload.Check(t, s)
	s.Passed.Store(int64(90 * time.Minute))
	upload.Status, upload.Want = http.StatusUnauthorized, "WWW-Authenticate: Bearer"
	upload.Check(t, s)
}

// TestTokenForms: the body is a form of either type, and the query does not count. Package caller
// tests the rules of small forms.
func TestTokenForms(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	good := login(someKey, password).Body
	post := func(target, header, body string, status int, has string) {
		t.Helper()
		httpCase{Method: http.MethodPost, Target: target, Header: header, Body: body, Status: status, Has: has}.Check(t, s)
	}
	post(tokenPath, urlencoded, good+"&remember=1", 200, `{"success":true,"token":"`)
	post(tokenPath, multipart, form(field("api_key", someKey), field("password", password)), 200, `{"success":true,"token":"`)
	post(tokenPath, urlencoded, "password=x", 400, `{"success":false,"message":"the field api_key is missing"}`)
	post(tokenPath, urlencoded, "api_key=x", 400, `{"success":false,"message":"the field password is missing"}`)
	post(tokenPath+"?"+good, urlencoded, "", 400, "api_key")
}

// TestTokenRefused: unknown keys and wrong passwords have the same response.
func TestTokenRefused(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	wrong := login(someKey, "guess")
	wrong.Status, wrong.Has = http.StatusUnauthorized, `{"success":false,"message":"`
	text := wrong.Check(t, s).Body
	none := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Accounts = nil })
	for _, pair := range [][2]string{{"nobody", password}, {otherKey, "guess"}, {"\x00", "x"}, {strings.ToUpper(someKey), password}} {
		c := login(pair[0], pair[1])
		c.Status, c.Text = http.StatusUnauthorized, text
		c.Check(t, s)
		c.Check(t, none)
	}
	s.Store.Fails.Store(true)
	c := login(someKey, password)
	c.Status, c.Want, c.Has = http.StatusServiceUnavailable, "Retry-After: 1", `{"success":false,"message":"`
	c.Check(t, s)
}

// TestMethodsOfEndpoints: an endpoint accepts only POST.
func TestMethodsOfEndpoints(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		for _, path := range []string{tokenPath, ticketPath, signPath, imagePath, filePath} {
			httpCase{Method: method, Target: path, Header: bearer, Status: http.StatusMethodNotAllowed, Want: "Allow: POST"}.Check(t, s)
		}
	}
}

// TestThrottle: after some failures a client is refused, even with the right password and whatever
// its requests claim. Successful logins do not count.
func TestThrottle(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{LoginFailures: 3})
	for range 10 {
		login(someKey, password).Check(t, s)
	}
	s = newSite(t, media.Limits{LoginFailures: 3})
	for i := range 6 {
		c := login(fmt.Sprint("guess-", i), "x")
		c.Target += fmt.Sprintf("?api_key=other-%d", i)
		c.Body += fmt.Sprintf("&email=%d&client=10.0.0.%d", i, i)
		c.Header += fmt.Sprintf("X-Forwarded-For: 10.0.0.%d\nForwarded: for=10.0.1.%d\nX-Real-Ip: 10.0.2.%d", i, i, i)
		if c.Status = http.StatusUnauthorized; i >= 3 {
			c.Status = http.StatusTooManyRequests
		}
		c.Check(t, s)
	}
	c := login(someKey, password)
	c.Status, c.Has = http.StatusTooManyRequests, `{"success":false,"message":"`
	r := c.Check(t, s)
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 60 {
		t.Errorf("Retry-After %q, want 1 to 60 seconds", r.Header.Get("Retry-After"))
	}
}

// TestPublicPassword: the password of Caddyfile.example logs in from this machine alone.
func TestPublicPassword(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.Accounts["try-out"] = &media.Account{PasswordHash: access.PublicHash} // which is compared as a text here
	})
	for _, c := range []struct {
		key, remote, header string
		status              int
	}{
		{"try-out", "127.0.0.1:1", "", http.StatusOK},
		{"try-out", "192.0.2.1:1", "", http.StatusForbidden},
		{"try-out", "127.0.0.1:1", "X-Forwarded-For: 127.0.0.1", http.StatusForbidden},
		{someKey, "192.0.2.1:1", "X-Forwarded-For: 127.0.0.1", http.StatusOK},
	} {
		word := map[string]string{"try-out": access.PublicHash, someKey: password}[c.key]
		r := s.Request(t, http.MethodPost, tokenPath, urlencoded+c.header, login(c.key, word).Body)
		r.RemoteAddr = c.remote
		if got := s.Send(t, r); got.Status != c.status || strings.Contains(got.Body, `"token"`) != (c.status == http.StatusOK) {
			t.Errorf("%s from %s with %q: %d %s", c.key, c.remote, c.header, got.Status, got.Body)
		}
	}
}
