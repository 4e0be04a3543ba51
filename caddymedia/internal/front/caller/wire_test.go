package caller_test

import (
	"net/http"
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
	for name, c := range map[string]struct{ header, has string }{ // what the caller can see in its own headers
		"nothing":           {"", "no token: send Authorization: Bearer <token>"},
		"another name":      {"X-Token: $TOKEN\n", "expected_underscore_headers"},
		"another scheme":    {"Authorization: $TOKEN\n", "no token: send"},
		"key alone":         {key, "without a token"},
		"token alone":       {token, "without its API key"},
		"bearer disagrees":  {key + token + "Authorization: Bearer $OTHER\n", "twice"},
		"in brackets":       {"Authorization: Bearer <$TOKEN>\n", "not of the form of tokens"},
		"token with more":   {key + "HTTP_SERVICE_ACCESS_TOKEN: $TOKEN=", "not of the form of tokens"},
		"password":          {key + "HTTP_SERVICE_ACCESS_TOKEN: " + password, "not of the form of tokens"},
		"unknown token":     {"Authorization: Bearer " + unknown, "the token is wrong or has expired"},
		"unknown with key":  {key + "HTTP_SERVICE_ACCESS_TOKEN: " + unknown, "or belongs to another API key"},
		"another's token":   {key + "HTTP_SERVICE_ACCESS_TOKEN: $OTHER", "or belongs to another API key"},
		"another's key":     {"HTTP_SERVICE_API_KEY: " + otherKey + "\n" + token, "or belongs to another API key"},
		"longer key":        {"HTTP_SERVICE_API_KEY: " + someKey + "-2\n" + token, "or belongs to another API key"},
		"bearer of another": {"Authorization: Bearer $OTHER\n" + key, "or belongs to another API key"},
		"hyphens":           {"HTTP-SERVICE-API-KEY: " + someKey + "\nHTTP-SERVICE-ACCESS-TOKEN: $TOKEN\n", "no token"},
		"dots":              {"HTTP.SERVICE.API.KEY: " + someKey + "\nHTTP.SERVICE.ACCESS.TOKEN: $TOKEN\n", "no token"},
		"other underscores": {"Service_Api_Key: " + someKey + "\nService_Access_Token: $TOKEN\n", "no token"},
		"cookie":            {"Cookie: access_token=$TOKEN; HTTP_SERVICE_ACCESS_TOKEN=$TOKEN\n", "no token"},
	} {
		r := s.Do(t, http.MethodPost, filePath, multipart+c.header, body)
		if r.Refused(t, 401, c.has, ""); r.Header.Get("WWW-Authenticate") != "Bearer" {
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
