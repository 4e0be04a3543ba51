package caller_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

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
