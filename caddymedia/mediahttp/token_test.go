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

// TestTokenForms: the body is a form of either type.
func TestTokenForms(t *testing.T) {
	t.Parallel()
	good := login(someKey, password).Body
	key, word := field("api_key", someKey), field("password", password)
	fields := form(key, word)
	post := func(name, header, body string, status int, has string) httpCase {
		return httpCase{Name: name, Method: http.MethodPost, Target: tokenPath, Header: header, Body: body, Status: status, Has: has}
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
		{Name: "query", Method: http.MethodPost, Target: tokenPath + "?" + good, Header: urlencoded, Status: 400},
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
		wrong.Status, wrong.Has = http.StatusUnauthorized, `{"success":false,"message":"`
		c := login(pair[0], pair[1])
		c.Status, c.Text = http.StatusUnauthorized, wrong.Check(t, s).Body
		c.Check(t, s)
		c.Check(t, none)
	}
	s := aSite(t)
	s.Store.Fails.Store(true)
	c := login(someKey, password)
	c.Status, c.Want, c.Has = http.StatusServiceUnavailable, "Retry-After: 1", `{"success":false,"message":"`
	c.Check(t, s)
}

// TestMethodsOfEndpoints: an endpoint accepts only POST.
func TestMethodsOfEndpoints(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		for _, path := range []string{tokenPath, ticketPath, signPath, imagePath, filePath} {
			httpCase{
				Name: method + path, Method: method, Target: path, Header: bearer, Status: http.StatusMethodNotAllowed, Want: "Allow: POST",
			}.Run(t, aSite)
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
			uploadCase{Header: header, Parts: []part{file("a.txt", "x")}, Want: []string{"file/content/a.txt"}}.Check(t, aSite(t))
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
				Target: filePath, Header: multipart + header, Body: form(file("a.txt", "x")), Status: 401, Want: "WWW-Authenticate: Bearer",
			}.Check(t, s)
			r.Refused(t, 401, "", "")
		})
	}
	t.Run("query and form", func(t *testing.T) {
		t.Parallel()
		s := aSite(t)
		token := s.Token(t)
		r := s.Do(t, http.MethodPost, filePath+"?access_token="+token+"&HTTP_SERVICE_ACCESS_TOKEN="+token+"&api_key="+someKey, multipart,
			form(field("access_token", token), field("HTTP_SERVICE_ACCESS_TOKEN", token), file("a.txt", "x")))
		r.Refused(t, 401, "", "")
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
		{Name: "allowed", Parts: []part{text, alias("one")}, Want: stored},
		{Name: "allowed in the query", Target: "?alias=one", Parts: []part{text}, Want: stored},
		{Name: "after the file", Parts: []part{text, alias("two")}, Status: 403, Want: nothing},
		{Name: "before the file", Parts: []part{alias("two"), text}, Status: 403, Want: nothing},
		{Name: "none", Parts: []part{text}, Status: 403, Want: nothing},
		{Name: "query", Target: "?alias=two", Parts: []part{text}, Status: 403, Want: nothing},
		{Name: "form over query", Target: "?alias=one", Parts: []part{text, alias("two")}, Status: 403, Want: nothing},
		{Name: "longer", Parts: []part{alias("one2"), text}, Status: 403, Want: nothing},
		{Name: "shorter", Parts: []part{alias("on"), text}, Status: 403, Want: nothing},
		{Name: "slash", Parts: []part{alias("one/"), text}, Status: 400, Want: nothing},
		uploadCase{Name: "other kind", Parts: []part{file("a.gif", gifPicture)}, Status: 403, Want: nothing}.Image(),
	})
}
