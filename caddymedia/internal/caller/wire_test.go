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
	)
	s := aSite(t)
	body := form(file("a.txt", "x"))
	for name, header := range map[string]string{
		"documented": key + token, "plain names": plainKey + plainToken, "bearer": bearer,
		"all agree": key + token + plainKey + plainToken + bearer, "basic of the site": plainKey + plainToken + "Authorization: Basic dTpw\n",
	} {
		if r := s.Do(t, http.MethodPost, filePath, multipart+header, body); r.Status != 200 {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
	for name, header := range map[string]string{
		"token alone": token, "bearer disagrees": key + token + "Authorization: Bearer $OTHER\n",
		"unknown token": key + "HTTP_SERVICE_ACCESS_TOKEN: " + unknown, "token with more": key + "HTTP_SERVICE_ACCESS_TOKEN: $TOKEN=",
		"password": key + "HTTP_SERVICE_ACCESS_TOKEN: " + password, "another's token": key + "HTTP_SERVICE_ACCESS_TOKEN: $OTHER",
		"another's key": "HTTP_SERVICE_API_KEY: " + otherKey + "\n" + token, "longer key": "HTTP_SERVICE_API_KEY: " + someKey + "-2\n" + token,
		"bearer of another": "Authorization: Bearer $OTHER\n" + key,
		"hyphens":           "HTTP-SERVICE-API-KEY: " + someKey + "\nHTTP-SERVICE-ACCESS-TOKEN: $TOKEN\n",
		"dots":              "HTTP.SERVICE.API.KEY: " + someKey + "\nHTTP.SERVICE.ACCESS.TOKEN: $TOKEN\n",
		"other underscores": "Service_Api_Key: " + someKey + "\nService_Access_Token: $TOKEN\n",
		"cookie":            "Cookie: access_token=$TOKEN; HTTP_SERVICE_ACCESS_TOKEN=$TOKEN\n",
	} {
		r := s.Do(t, http.MethodPost, filePath, multipart+header, body)
		if r.Refused(t, 401, "", ""); r.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: %v", name, r.Header)
		}
	}
	value := s.Token(t)
	s.Do(t, http.MethodPost, filePath+"?access_token="+value+"&HTTP_SERVICE_ACCESS_TOKEN="+value+"&api_key="+someKey, multipart,
		form(field("access_token", value), field("HTTP_SERVICE_ACCESS_TOKEN", value), file("a.txt", "x"))).Refused(t, 401, "", "")
}

// TestAccountOfSomeAliases: other aliases are forbidden, wherever they are named. An alias that
// begins with the name of an allowed one is another.
func TestAccountOfSomeAliases(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.Accounts = map[string]*media.Account{someKey: {PasswordHash: password, Aliases: []string{"one"}}}
		c.FileAliases["one2"], c.FileAliases["on"] = &media.FileAlias{AliasOptions: on("main")}, &media.FileAlias{AliasOptions: on("main")}
	})
	text := file("a.txt", "x")
	for _, c := range []uploadCase{
		{Parts: []part{text}},
		{Parts: []part{text, field("alias", "two")}},
		{Target: "?alias=two", Parts: []part{text}},
		{Target: "?alias=one", Parts: []part{field("alias", "two"), text}},
		{Parts: []part{field("alias", "one2"), text}},
		{Parts: []part{field("alias", "on"), text}},
		uploadCase{Parts: []part{file("a.gif", gifPicture)}}.Image(),
	} {
		c.Status, c.Want = 403, []string{""}
		c.Check(t, s)
	}
	uploadCase{Target: "?alias=two", Parts: []part{text, field("alias", "one")}, Want: []string{"file/one/a.txt"}}.Check(t, s)
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
