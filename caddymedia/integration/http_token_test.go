package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

const tokenPath = "/api/auth/generateToken"

var urlencoded = headers("Content-Type", "application/x-www-form-urlencoded")

func TestTokenAnswer(t *testing.T) {
	s := startSite(t, basic+"token_lifetime 90m", "media")
	before := time.Now()
	r := s.login(t, apiKey, password)
	if r.status != http.StatusOK {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	if got := r.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q, want no-store", got)
	}
	var answer map[string]any
	r.decode(t, &answer)
	if len(answer) != 3 || answer["success"] != true {
		t.Errorf("answer %s, want success, token and expires_at alone", r.body)
	}
	token, _ := answer["token"].(string)
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`).MatchString(token) {
		t.Errorf("token %q, want 32 bytes in base64url", token)
	}
	expires, _ := answer["expires_at"].(float64)
	if in := time.Unix(int64(expires), 0).Sub(before); in < 89*time.Minute || in > 91*time.Minute {
		t.Errorf("the token expires in %v, want 90m", in)
	}
	if again := s.token(t, apiKey); again == token {
		t.Error("two logins got the same token")
	}
}

// TestTokenForms: the token endpoint accepts the documented body, and the one that PHP's curl sends
// for an array.
func TestTokenForms(t *testing.T) {
	s := startSite(t, basic, "media")
	good := "api_key=" + apiKey + "&password=" + password
	fields := form(field("api_key", apiKey), field("password", password))
	post := func(name string, header http.Header, body string, status int, in ...string) httpCase {
		return httpCase{
			name: name, method: http.MethodPost, path: tokenPath, header: header, body: body,
			wantStatus: status, wantInBody: in,
			wantHeader: map[string]string{"Cache-Control": "no-store", "Content-Type": "application/json"},
		}
	}
	multipartOf := func(parts ...formPart) string { return form(parts...) }
	checkAll(t, s, []httpCase{
		post("urlencoded", urlencoded, good, 200, `"success":true`, `"token":"`),
		post("urlencoded with charset", headers("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8"), good, 200),
		post("multipart", formType, fields, 200, `"success":true`, `"token":"`),
		post("further fields", urlencoded, good+"&remember=1", 200),
		post("password encoded", urlencoded, "api_key=site%2Done&password=%73ecret", 200),
		post("no fields", urlencoded, "", 400, `"success":false`, "api_key"),
		post("no key", urlencoded, "password="+password, 400, "api_key"),
		post("no password", urlencoded, "api_key="+apiKey, 400, "password"),
		post("empty password", urlencoded, "api_key="+apiKey+"&password=", 400, "password"),
		post("key twice", urlencoded, good+"&api_key="+apiKey, 400, "twice"),
		post("password twice", formType, multipartOf(field("api_key", apiKey), field("password", password), field("password", "x")), 400, "twice"),
		post("fields in the query", urlencoded, "", 400),
		post("malformed", urlencoded, "api_key=%zz&password=x", 400, "malformed"),
		post("multipart cut short", formType, fields[:len(fields)-len(formBoundary)-10], 400, "malformed"),
		post("multipart without boundary", headers("Content-Type", "multipart/form-data"), fields, 400, "malformed"),
		post("json", headers("Content-Type", "application/json"), `{"api_key":"site-one","password":"secret"}`, 415),
		post("no type", nil, good, 415),
		post("too large", urlencoded, good+"&x="+strings.Repeat("x", 64<<10), 413, "64 KiB"),
		post("multipart too large", formType, multipartOf(field("x", strings.Repeat("x", 64<<10))), 413, "64 KiB"),
	})
}

// TestTokenWrongCredentials: the answers to an unknown key and to a wrong password are equal.
func TestTokenWrongCredentials(t *testing.T) {
	s := startSite(t, twoAccount+localDefault+"image_alias content", "media")
	wrong := s.login(t, apiKey, "guess")
	if wrong.status != http.StatusUnauthorized {
		t.Fatalf("wrong password: %d %s", wrong.status, wrong.body)
	}
	var failure map[string]any
	wrong.decode(t, &failure)
	if len(failure) != 2 || failure["success"] != false || failure["message"] == "" {
		t.Errorf("answer %s, want success and message alone", wrong.body)
	}
	for _, pair := range [][2]string{{"nobody", password}, {"nobody", "guess"}, {"\x00", "x"}, {strings.Repeat("k", 9999), "x"}} {
		r := s.login(t, pair[0], pair[1])
		if r.status != wrong.status || r.body != wrong.body {
			t.Errorf("login as %.20q: %d %s, want that of a wrong password: %s", pair[0], r.status, r.body, wrong.body)
		}
	}
}

func TestTokenMethods(t *testing.T) {
	s := startSite(t, basic, "media\nrespond \"next\"")
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		for _, path := range []string{tokenPath, "/api/upload/image", "/api/upload/file"} {
			t.Run(method+path, func(t *testing.T) {
				httpCase{
					method: method, path: path, wantStatus: http.StatusMethodNotAllowed,
					wantHeader: map[string]string{"Allow": "POST", "Cache-Control": "no-store"},
				}.check(t, s)
			})
		}
	}
	checkAll(t, s, []httpCase{
		{name: "slash at the end", method: "POST", path: tokenPath + "/", wantStatus: 200, wantBody: "next"},
		{name: "other case", method: "POST", path: "/api/auth/generatetoken", wantStatus: 200, wantBody: "next"},
		{name: "other path", method: "POST", path: "/api/auth", wantStatus: 200, wantBody: "next"},
	})
}

// TestTokenThrottle: after too many failures a client is refused, even with the right password.
func TestTokenThrottle(t *testing.T) {
	s := startSite(t, basic+"limits {\nlogin_failures 3\n}", "media")
	for i := range 3 {
		if r := s.login(t, apiKey, fmt.Sprint("guess", i)); r.status != http.StatusUnauthorized {
			t.Fatalf("guess %d: %d %s", i, r.status, r.body)
		}
	}
	for _, word := range []string{"guess", password} {
		r := s.login(t, apiKey, word)
		if r.status != http.StatusTooManyRequests {
			t.Fatalf("after the failures: %d %s", r.status, r.body)
		}
		if seconds, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 60 {
			t.Errorf("Retry-After %q, want 1 to 60 seconds", r.header.Get("Retry-After"))
		}
		var failure struct{ Message string }
		if err := json.Unmarshal([]byte(r.body), &failure); err != nil || failure.Message == "" {
			t.Errorf("answer %s has no message", r.body)
		}
	}
}

// TestTokenThrottleSuccess logs in three times as often as an account may fail to.
func TestTokenThrottleSuccess(t *testing.T) {
	s := startSite(t, basic+"limits {\nlogin_failures 4\n}", "media") // other limits than above share no counters
	for range 12 {
		s.token(t, apiKey)
	}
}
