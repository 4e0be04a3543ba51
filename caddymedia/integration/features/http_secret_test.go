package features_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// logFilter is the one of Caddyfile.example, as TestExampleIsTidy checks.
const logFilter = `format filter {
	request>headers>Http_service_api_key delete
	request>headers>Http_service_access_token delete
	request>headers>Service-Api-Key delete
	request>headers>Service-Access-Token delete
	request>headers>Authorization delete
	request>uri query {
		delete signature
	}
	request>headers>Referer query {
		delete signature
	}
	uri query {
		delete signature
	}
	resp_headers>Location delete
}
`

// TestLogsHaveNoSecrets: with the filter of Caddyfile.example no log, not even the debug log,
// contains a password, a token or the signature of an address. Keys appear only in records of
// changes of items.
func TestLogsHaveNoSecrets(t *testing.T) {
	for name, drop := range map[string]bool{"option set": false, "option missing": true} {
		t.Run(name, func(t *testing.T) {
			s := site.StartConfig(t, site.Config{
				Media: site.Basic, Site: "log\nrewrite /old* /new?{query}\nroute /broken {\nerror 500\n}\nredir /moved* https://bucket.example/?{query} 302\nmedia", Log: logFilter, DropUnderscores: drop,
			})
			token := s.Token(t, site.APIKey)
			const wrong, signature = "wrong-guess-of-a-password", "signature-of-an-address"
			s.Login(t, site.APIKey, wrong)
			s.Login(t, "unknown-key-of-nobody", wrong)
			referer := site.Headers("Referer", s.URL+"/static/file/content/a.pdf?expires=1&signature="+signature)
			spellings := []http.Header{
				site.AuthHeader(site.APIKey, token),
				site.Headers("http_service_api_key", site.APIKey, "http_service_access_token", token),
				site.Headers("Service-Api-Key", site.APIKey, "Service-Access-Token", token),
				site.Headers("Authorization", "Bearer "+token),
				site.Merged(site.AuthHeader(site.APIKey, token), site.AuthHeader(site.APIKey, token)),
				site.Merged(site.AuthHeader(site.APIKey, token), site.Headers("Service-Access-Token", "x"+token)),
			}
			for _, header := range spellings {
				for _, request := range []struct{ method, path, body string }{
					{http.MethodPost, "/api/upload/image", site.Form(site.File("a.gif", sample.GIF(t)))},
					{http.MethodPost, "/api/upload/image", site.Form(site.File("a.gif", "no image"))},
					{http.MethodPost, "/api/upload/image", site.Form()},
					{http.MethodGet, "/static/img/content/none.gif", ""},
					{http.MethodGet, "/static/file/content/none.txt?expires=1&signature=" + signature + "&v=1", ""},
					{http.MethodGet, "/broken?signature=" + signature, ""},
					{http.MethodGet, "/old?signature=" + signature, ""},
					{http.MethodGet, "/moved?signature=" + signature, ""},
				} {
					s.Do(t, request.method, request.path, site.Merged(header, site.FormType, referer), request.body)
				}
			}
			s.Get(t, "/last-request")
			s.WaitForLog(t, "/last-request")
			log := s.Logged(t)
			if !strings.Contains(log, `"logger":"http.log.access`) || !strings.Contains(log, `"logger":"http.log.error`) {
				t.Fatalf("the log lacks accesses or errors:\n%s", log)
			}
			for line := range strings.Lines(log) {
				for _, secret := range []string{token, site.Password, wrong, site.CheapHash, signature} {
					if strings.Contains(line, secret) {
						t.Errorf("%q is logged: %s", secret, line)
					}
				}
				if namesKey(line, site.APIKey) {
					t.Errorf("the key is logged: %s", line)
				}
			}
		})
	}
}

// namesKey reports whether a line of the log has an API key, except in the audit log and in events,
// which name the actor.
func namesKey(line, key string) bool {
	if strings.Contains(line, `"logger":"media.audit"`) || strings.Contains(line, `"logger":"events"`) {
		line = strings.Replace(line, `"account":"`+key+`"`, "", 1)
	}
	return strings.Contains(line, `"`+key+`"`) || strings.Contains(line, `[`+key)
}
