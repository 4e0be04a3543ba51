package http_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

var urlencoded = site.Headers("Content-Type", "application/x-www-form-urlencoded")

func TestTokenAnswer(t *testing.T) {
	s := site.Start(t, site.Basic+"token_lifetime 90m", "media")
	before := time.Now()
	r := s.Login(t, site.APIKey, site.Password)
	if r.Status != http.StatusOK {
		t.Fatalf("status %d: %s", r.Status, r.Body)
	}
	if got := r.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q, want no-store", got)
	}
	var answer map[string]any
	r.Decode(t, &answer)
	if len(answer) != 3 || answer["success"] != true {
		t.Errorf("answer %s, want success, token and expires_at alone", r.Body)
	}
	token, _ := answer["token"].(string)
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`).MatchString(token) {
		t.Errorf("token %q, want 32 bytes in base64url", token)
	}
	expires, _ := answer["expires_at"].(float64)
	if in := time.Unix(int64(expires), 0).Sub(before); in < 89*time.Minute || in > 91*time.Minute {
		t.Errorf("the token expires in %v, want 90m", in)
	}
	if again := s.Token(t, site.APIKey); again == token {
		t.Error("two logins got the same token")
	}
}

// TestTokenForms: the token endpoint accepts the documented body, and the one that PHP's curl sends
// for an array.
func TestTokenForms(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	good := "api_key=" + site.APIKey + "&password=" + site.Password
	fields := site.Form(site.Field("api_key", site.APIKey), site.Field("password", site.Password))
	post := func(name string, header http.Header, body string, status int, in ...string) site.Case {
		return site.Case{
			Name: name, Method: http.MethodPost, Path: site.TokenPath, Header: header, Body: body,
			WantStatus: status, WantInBody: in,
			WantHeader: map[string]string{"Cache-Control": "no-store", "Content-Type": "application/json"},
		}
	}
	multipartOf := func(parts ...site.Part) string { return site.Form(parts...) }
	site.CheckAll(t, s, []site.Case{
		post("urlencoded", urlencoded, good, 200, `"success":true`, `"token":"`),
		post("urlencoded with charset", site.Headers("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8"), good, 200),
		post("multipart", site.FormType, fields, 200, `"success":true`, `"token":"`),
		post("further fields", urlencoded, good+"&remember=1", 200),
		post("password encoded", urlencoded, "api_key=site%2Done&password=%73ecret", 200),
		post("no fields", urlencoded, "", 400, `"success":false`, "api_key"),
		post("no key", urlencoded, "password="+site.Password, 400, "api_key"),
		post("no password", urlencoded, "api_key="+site.APIKey, 400, "password"),
		post("empty password", urlencoded, "api_key="+site.APIKey+"&password=", 400, "password"),
		post("key twice", urlencoded, good+"&api_key="+site.APIKey, 400, "twice"),
		post("password twice", site.FormType, multipartOf(site.Field("api_key", site.APIKey), site.Field("password", site.Password), site.Field("password", "x")), 400, "twice"),
		post("fields in the query", urlencoded, "", 400),
		post("malformed", urlencoded, "api_key=%zz&password=x", 400, "malformed"),
		post("multipart cut short", site.FormType, fields[:len(fields)-len(site.FormBoundary)-10], 400, "malformed"),
		post("multipart without boundary", site.Headers("Content-Type", "multipart/form-data"), fields, 400, "malformed"),
		post("json", site.Headers("Content-Type", "application/json"), `{"api_key":"site-one","password":"secret"}`, 415),
		post("no type", nil, good, 415),
		post("too large", urlencoded, good+"&x="+strings.Repeat("x", 64<<10), 413, "64 KiB"),
		post("multipart too large", site.FormType, multipartOf(site.Field("x", strings.Repeat("x", 64<<10))), 413, "64 KiB"),
	})
}

// TestTokenWrongCredentials: the answers to an unknown key and to a wrong password are equal.
func TestTokenWrongCredentials(t *testing.T) {
	s := site.Start(t, site.TwoAccounts+site.LocalDefault+"image_alias content", "media")
	wrong := s.Login(t, site.APIKey, "guess")
	if wrong.Status != http.StatusUnauthorized {
		t.Fatalf("wrong password: %d %s", wrong.Status, wrong.Body)
	}
	var failure map[string]any
	wrong.Decode(t, &failure)
	if len(failure) != 2 || failure["success"] != false || failure["message"] == "" {
		t.Errorf("answer %s, want success and message alone", wrong.Body)
	}
	for _, pair := range [][2]string{{"nobody", site.Password}, {"nobody", "guess"}, {"\x00", "x"}, {strings.Repeat("k", 9999), "x"}} {
		r := s.Login(t, pair[0], pair[1])
		if r.Status != wrong.Status || r.Body != wrong.Body {
			t.Errorf("login as %.20q: %d %s, want that of a wrong password: %s", pair[0], r.Status, r.Body, wrong.Body)
		}
	}
}

func TestTokenMethods(t *testing.T) {
	s := site.Start(t, site.Basic, "media\nrespond \"next\"")
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		for _, path := range []string{site.TokenPath, "/api/upload/image", "/api/upload/file"} {
			t.Run(method+path, func(t *testing.T) {
				site.Case{
					Method: method, Path: path, WantStatus: http.StatusMethodNotAllowed,
					WantHeader: map[string]string{"Allow": "POST", "Cache-Control": "no-store"},
				}.Check(t, s)
			})
		}
	}
	site.CheckAll(t, s, []site.Case{
		{Name: "slash at the end", Method: "POST", Path: site.TokenPath + "/", WantStatus: 200, WantBody: "next"},
		{Name: "other case", Method: "POST", Path: "/api/auth/generatetoken", WantStatus: 200, WantBody: "next"},
		{Name: "other path", Method: "POST", Path: "/api/auth", WantStatus: 200, WantBody: "next"},
	})
}

// TestTokenThrottle: after too many failures a client is refused, even with the right password.
func TestTokenThrottle(t *testing.T) {
	s := site.Start(t, site.Basic+"limits {\nlogin_failures 3\n}", "media")
	for i := range 3 {
		if r := s.Login(t, site.APIKey, fmt.Sprint("guess", i)); r.Status != http.StatusUnauthorized {
			t.Fatalf("guess %d: %d %s", i, r.Status, r.Body)
		}
	}
	for _, word := range []string{"guess", site.Password} {
		r := s.Login(t, site.APIKey, word)
		if r.Status != http.StatusTooManyRequests {
			t.Fatalf("after the failures: %d %s", r.Status, r.Body)
		}
		if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 60 {
			t.Errorf("Retry-After %q, want 1 to 60 seconds", r.Header.Get("Retry-After"))
		}
		var failure struct{ Message string }
		if err := json.Unmarshal([]byte(r.Body), &failure); err != nil || failure.Message == "" {
			t.Errorf("answer %s has no message", r.Body)
		}
	}
}

// TestTokenThrottleSuccess logs in three times as often as an account may fail to.
func TestTokenThrottleSuccess(t *testing.T) {
	s := site.Start(t, site.Basic+"limits {\nlogin_failures 4\n}", "media") // other limits than above share no counters
	for range 12 {
		s.Token(t, site.APIKey)
	}
}
