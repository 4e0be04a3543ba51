package integration

import (
	"net/http"
	"strings"
	"testing"
)

// logFilter is the one of Caddyfile.example, as TestExampleIsTidy checks.
const logFilter = `format filter {
	request>headers>Http_service_api_key delete
	request>headers>Http_service_access_token delete
	request>headers>Service-Api-Key delete
	request>headers>Service-Access-Token delete
	request>headers>Authorization delete
}
`

// TestLogsHaveNoSecrets: with the filter of Caddyfile.example no log, not even the debug log,
// contains a password or a token. Keys appear only in records of changes of items.
func TestLogsHaveNoSecrets(t *testing.T) {
	for name, drop := range map[string]bool{"option set": false, "option missing": true} {
		t.Run(name, func(t *testing.T) {
			s := startSiteConfig(t, siteConfig{
				Media: basic, Site: "log\nmedia\nroute /broken {\nerror 500\n}", Log: logFilter, DropUnderscores: drop,
			})
			token := s.token(t, apiKey)
			const wrong = "wrong-guess-of-a-password"
			s.login(t, apiKey, wrong)
			s.login(t, "unknown-key-of-nobody", wrong)
			spellings := []http.Header{
				documented(apiKey, token),
				headers("http_service_api_key", apiKey, "http_service_access_token", token),
				headers("Service-Api-Key", apiKey, "Service-Access-Token", token),
				headers("Authorization", "Bearer "+token),
				merged(documented(apiKey, token), documented(apiKey, token)),
				merged(documented(apiKey, token), headers("Service-Access-Token", "x"+token)),
			}
			for _, header := range spellings {
				for _, request := range []struct{ method, path, body string }{
					{http.MethodPost, "/api/upload/image", form(file("a.gif", gifOf(t)))},
					{http.MethodPost, "/api/upload/image", form(file("a.gif", "no picture"))},
					{http.MethodPost, "/api/upload/image", form()},
					{http.MethodGet, "/static/img/content/none.gif", ""},
					{http.MethodGet, "/broken", ""},
				} {
					s.do(t, request.method, request.path, merged(header, formType), request.body)
				}
			}
			s.get(t, "/last-request")
			s.waitForLog(t, "/last-request")
			log := s.logged(t)
			if !strings.Contains(log, `"logger":"http.log.access`) || !strings.Contains(log, `"logger":"http.log.error`) {
				t.Fatalf("the log lacks accesses or errors:\n%s", log)
			}
			for line := range strings.Lines(log) {
				for _, secret := range []string{token, password, wrong, cheapHash} {
					if strings.Contains(line, secret) {
						t.Errorf("%q is logged: %s", secret, line)
					}
				}
				if namesKey(line, apiKey) {
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

// TestErrorsHaveNoInternals: answers contain no path and no secret.
func TestErrorsHaveNoInternals(t *testing.T) {
	s := startSite(t, basic, "media")
	token := s.token(t, apiKey)
	picture := gifOf(t)
	for _, parts := range [][]formPart{
		{file("../../etc/passwd.gif", picture)},
		{file("a.php", picture)},
		{file("a.gif", "no picture")},
		{field("sub_folder", "../x"), file("a.gif", picture)},
		{field("alias", "{env.HOME}"), file("a.gif", picture)},
		{field("alias", "none"), file("a.gif", picture)},
		{field("sub_folder", "{file./etc/passwd}"), file("{file./etc/passwd}.txt", picture)},
	} {
		r := s.upload(t, "/api/upload/image", parts...)
		for _, internal := range []string{s.root, token, apiKey, cheapHash, "/tmp", "root:", "/home", ".go:"} {
			if strings.Contains(r.body, internal) {
				t.Errorf("%q is in the answer %s", internal, r.body)
			}
		}
	}
}
