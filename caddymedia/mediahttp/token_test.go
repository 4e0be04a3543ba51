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

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/options"
)

// login returns the case of a login.
func login(key, word string) httpCase {
	return httpCase{
		target: tokenPath, header: urlencoded, status: http.StatusOK,
		body: url.Values{"api_key": {key}, "password": {word}}.Encode(),
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.TokenLifetime = options.Duration(90 * time.Minute) })
	exact := regexp.MustCompile(`^{"success":true,"token":"([A-Za-z0-9_-]{43})","expires_at":` +
		strconv.FormatInt(noon.Add(90*time.Minute).Unix(), 10) + `}\n?$`)
	var issued [2]string
	for i := range issued {
		r := login(someKey, password).check(t, s)
		found := exact.FindStringSubmatch(r.body)
		if found == nil {
			t.Fatalf("response %s, want %s", r.body, exact)
		}
		issued[i] = found[1]
	}
	if issued[0] == issued[1] {
		t.Error("two logins return one token")
	}
	s.vars = []string{"$ISSUED", issued[0]}
	upload := httpCase{target: filePath, header: multipart + "Authorization: Bearer $ISSUED", body: form(file("a.txt", "x")), status: 200}
	upload.check(t, s)
	s.passed.Store(int64(90 * time.Minute))
	upload.status, upload.want = http.StatusUnauthorized, "WWW-Authenticate: Bearer"
	upload.check(t, s)
}

// TestTokenForms: the body is a form of either type.
func TestTokenForms(t *testing.T) {
	t.Parallel()
	good := login(someKey, password).body
	key, word := field("api_key", someKey), field("password", password)
	fields := form(key, word)
	post := func(name, header, body string, status int, has string) httpCase {
		return httpCase{name: name, method: http.MethodPost, target: tokenPath, header: header, body: body, status: status, has: has}
	}
	run(t, aSite, []httpCase{
		post("urlencoded", urlencoded, good, 200, `{"success":true,"token":"`),
		post("charset", "Content-Type: application/x-www-form-urlencoded; charset=UTF-8", good, 200, ""),
		post("multipart", multipart, fields, 200, `{"success":true,"token":"`),
		post("further fields", urlencoded, good+"&remember=1", 200, ""),
		post("encoded", urlencoded, "api_key=site%2Done&password=%63orrect+horse", 200, ""),
		post("no fields", urlencoded, "", 400, `{"success":false,"message":"`),
		post("no key", urlencoded, "password=x", 400, "api_key"),
		post("no password", urlencoded, "api_key=x", 400, "password"),
		post("empty password", urlencoded, "api_key=x&password=", 400, "password"),
		post("key twice", urlencoded, good+"&api_key=x", 400, "twice"),
		post("password twice", multipart, form(key, word, word), 400, "twice"),
		post("malformed", urlencoded, "api_key=%zz&password=x", 400, "malformed"),
		post("cut short", multipart, fields[:len(fields)-8], 400, "malformed"),
		post("no boundary", "Content-Type: multipart/form-data", fields, 400, "malformed"),
		post("json", "Content-Type: application/json", `{"api_key":"x","password":"x"}`, 415, ""),
		post("no type", "", good, 415, ""),
		post("too large", urlencoded, good+"&x="+strings.Repeat("x", 64<<10), 413, "64 KiB"),
		post("multipart too large", multipart, form(field("x", strings.Repeat("x", 64<<10))), 413, "64 KiB"),
		post("many parts", multipart, strings.Repeat(strings.TrimSuffix(form(field("", "")), "--x--\r\n"), 1300), 400, "fields"),
		{name: "query", method: http.MethodPost, target: tokenPath + "?" + good, header: urlencoded, status: 400},
	})
}

// TestTokenRefused: unknown keys and wrong passwords have the same response.
func TestTokenRefused(t *testing.T) {
	t.Parallel()
	none := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Accounts = nil })
	for _, pair := range [][2]string{
		{"nobody", password},
		{"nobody", "guess"},
		{otherKey, "guess"},
		{"\x00", "x"},
		{strings.Repeat("k", 9999), "x"},
		{strings.ToUpper(someKey), password},
	} {
		s := aSite(t)
		wrong := login(someKey, "guess")
		wrong.status, wrong.has = http.StatusUnauthorized, `{"success":false,"message":"`
		c := login(pair[0], pair[1])
		c.status, c.text = http.StatusUnauthorized, wrong.check(t, s).body
		c.check(t, s)
		c.check(t, none)
	}
	s := aSite(t)
	s.store.fails.Store(true)
	c := login(someKey, password)
	c.status, c.want, c.has = http.StatusServiceUnavailable, "Retry-After: 1", `{"success":false,"message":"`
	c.check(t, s)
}

// TestMethodsOfEndpoints: an endpoint accepts only POST.
func TestMethodsOfEndpoints(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		for path := range answersJSON {
			httpCase{
				name: method + path, method: method, target: path, header: bearer, status: http.StatusMethodNotAllowed, want: "Allow: POST",
			}.run(t, aSite)
		}
	}
}

// TestThrottle: after some failures a client is refused, even with the right password and whatever
// its requests claim. Successful logins do not count.
func TestThrottle(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{LoginFailures: 3})
	for range 10 {
		login(someKey, password).check(t, s)
	}
	s = newSite(t, media.Limits{LoginFailures: 3})
	for i := range 6 {
		c := login(fmt.Sprint("guess-", i), "x")
		c.target += fmt.Sprintf("?api_key=other-%d", i)
		c.body += fmt.Sprintf("&email=%d&client=10.0.0.%d", i, i)
		c.header += fmt.Sprintf("X-Forwarded-For: 10.0.0.%d\nForwarded: for=10.0.1.%d\nX-Real-Ip: 10.0.2.%d", i, i, i)
		if c.status = http.StatusUnauthorized; i >= 3 {
			c.status = http.StatusTooManyRequests
		}
		c.check(t, s)
	}
	c := login(someKey, password)
	c.status, c.has = http.StatusTooManyRequests, `{"success":false,"message":"`
	r := c.check(t, s)
	if seconds, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 60 {
		t.Errorf("Retry-After %q, want 1 to 60 seconds", r.header.Get("Retry-After"))
	}
}

// TestAuthentication: an upload needs one account's token, in headers that do not contradict each
// other; TestCredentials has more contradictions.
func TestAuthentication(t *testing.T) {
	t.Parallel()
	const (
		key, token = "HTTP_SERVICE_API_KEY: " + someKey + "\n", "HTTP_SERVICE_ACCESS_TOKEN: $TOKEN\n"
		plainKey   = "Service-Api-Key: " + someKey + "\n"
		plainToken = "Service-Access-Token: $TOKEN\n"
		unknown    = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
		noHeader   = "X: y\n"
	)
	for name, header := range map[string]string{
		"documented": key + token, "plain names": plainKey + plainToken, "one of each": key + plainToken,
		"in any case": "http_service_API_key: " + someKey + "\nservice-access-TOKEN: $TOKEN\n",
		"bearer":      bearer, "bearer in any case": "authorization: bEARER $TOKEN\n", "bearer and key": bearer + key,
		"all agree": key + token + plainKey + plainToken + bearer, "basic of the site": plainKey + plainToken + "Authorization: Basic dTpw\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			uploadCase{header: header, parts: []part{file("a.txt", "x")}, want: []string{"file/content/a.txt"}}.check(t, aSite(t))
		})
	}
	for name, header := range map[string]string{
		"nothing": noHeader, "token alone": token, "key twice": key + key + token, "bearer disagrees": key + token + "Authorization: Bearer $OTHER\n",
		"unknown token": key + "HTTP_SERVICE_ACCESS_TOKEN: " + unknown, "token with more": key + "HTTP_SERVICE_ACCESS_TOKEN: $TOKEN=",
		"password": key + "HTTP_SERVICE_ACCESS_TOKEN: " + password, "another's token": key + "HTTP_SERVICE_ACCESS_TOKEN: $OTHER",
		"another's key": "HTTP_SERVICE_API_KEY: " + otherKey + "\n" + token, "unknown key": "HTTP_SERVICE_API_KEY: nobody\n" + token,
		"longer key": "HTTP_SERVICE_API_KEY: " + someKey + "-2\n" + token, "key in capitals": "HTTP_SERVICE_API_KEY: " + strings.ToUpper(someKey) + "\n" + token,
		"bearer of another": "Authorization: Bearer $OTHER\n" + key, "bearer unknown": "Authorization: Bearer x\n",
		"hyphens":           "HTTP-SERVICE-API-KEY: " + someKey + "\nHTTP-SERVICE-ACCESS-TOKEN: $TOKEN\n",
		"dots":              "HTTP.SERVICE.API.KEY: " + someKey + "\nHTTP.SERVICE.ACCESS.TOKEN: $TOKEN\n",
		"other underscores": "Service_Api_Key: " + someKey + "\nService_Access_Token: $TOKEN\n",
		"cookie":            "Cookie: access_token=$TOKEN; HTTP_SERVICE_ACCESS_TOKEN=$TOKEN\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := aSite(t)
			r := httpCase{
				target: filePath, header: multipart + header, body: form(file("a.txt", "x")), status: 401, want: "WWW-Authenticate: Bearer",
			}.check(t, s)
			r.refused(t, 401, "", "")
		})
	}
	t.Run("query and form", func(t *testing.T) {
		t.Parallel()
		s := aSite(t)
		token := s.token(t)
		r := s.do(t, http.MethodPost, filePath+"?access_token="+token+"&HTTP_SERVICE_ACCESS_TOKEN="+token+"&api_key="+someKey, multipart,
			form(field("access_token", token), field("HTTP_SERVICE_ACCESS_TOKEN", token), file("a.txt", "x")))
		r.refused(t, 401, "", "")
	})
}

// TestAccountOfSomeAliases: other aliases are forbidden, wherever they are named. An alias that
// begins with the name of an allowed one is another.
func TestAccountOfSomeAliases(t *testing.T) {
	t.Parallel()
	few := func(t *testing.T) *site {
		t.Helper()
		return newSiteWith(t, media.Limits{}, func(c *media.Config) {
			c.Accounts = map[string]*media.Account{someKey: {PasswordHash: password, Aliases: []string{"one"}}}
			c.FileAliases["one2"], c.FileAliases["on"] = &media.FileAlias{AliasOptions: on("main")}, &media.FileAlias{AliasOptions: on("main")}
		})
	}
	text := file("a.txt", "x")
	alias := func(name string) part { return field("alias", name) }
	stored, nothing := []string{"file/one/a.txt"}, []string{""}
	runUploads(t, few, []uploadCase{
		{name: "allowed", parts: []part{text, alias("one")}, want: stored},
		{name: "allowed in the query", target: "?alias=one", parts: []part{text}, want: stored},
		{name: "after the file", parts: []part{text, alias("two")}, status: 403, want: nothing},
		{name: "before the file", parts: []part{alias("two"), text}, status: 403, want: nothing},
		{name: "none", parts: []part{text}, status: 403, want: nothing},
		{name: "query", target: "?alias=two", parts: []part{text}, status: 403, want: nothing},
		{name: "form over query", target: "?alias=one", parts: []part{text, alias("two")}, status: 403, want: nothing},
		{name: "longer", parts: []part{alias("one2"), text}, status: 403, want: nothing},
		{name: "shorter", parts: []part{alias("on"), text}, status: 403, want: nothing},
		{name: "slash", parts: []part{alias("one/"), text}, status: 400, want: nothing},
		uploadCase{name: "other kind", parts: []part{file("a.gif", gifPicture)}, status: 403, want: nothing}.image(),
	})
}
