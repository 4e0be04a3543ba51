package features_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestPanelSecretsWithBraces: text in braces may be part of a secret. It is neither in answers nor
// in the log, including the messages of Caddy itself.
func TestPanelSecretsWithBraces(t *testing.T) {
	const part = "a-part-of-the-s3cret"
	p := site.StartPanel(t, site.Basic)
	for option, driver := range map[string]map[string]any{
		"secret_access_key": {"name": "s3", "bucket": "b", "region": "x", "access_key_id": "k"},
		"key":               {"name": "azblob", "container": "b", "account": "x"},
		"private_key":       {"name": "sftp", "address": "127.0.0.1:1", "user": "x", "insecure_skip_host_key": true},
		"password":          {"name": "ftp", "address": "127.0.0.1:1", "user": "x"},
	} {
		for _, secret := range []string{"x{" + part + "}", "{" + part + "}", "{env." + part + "}x", "{a}{" + part} {
			secrets := map[string]string{"driver." + option: secret}
			body := map[string]any{"value": map[string]any{"driver": driver}, "secrets": secrets}
			p.Must(t, http.StatusBadRequest, http.MethodPut, "config/storages/x", body, "If-None-Match", "*")
			p.Must(t, http.StatusBadRequest, http.MethodPost, "probe", map[string]any{"driver": driver, "secrets": secrets})
		}
	}
	for _, answer := range *p.Seen {
		if strings.Contains(answer.Body, part) {
			t.Errorf("answered: %s", answer.Body)
		}
	}
	p.WaitForLog(t, "change in the panel")
	for line := range strings.Lines(p.Logged(t)) {
		if strings.Contains(line, part) {
			t.Errorf("logged: %s", line)
		}
	}
}

// TestPanelRefusesFixedUsers: a constant user name, for example because a brace is missing, is
// refused. It would open the panel to everyone.
func TestPanelRefusesFixedUsers(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	for _, user := range []string{"admin", "{http.auth.user.id", `"\{http.auth.user.id\}"`, "http.auth.user.id}", `"{"`, "{system.os}", "{env.PATH}"} {
		err := s.TryLoad(t, site.Config{Media: site.Basic, Site: "media_admin {\nuser " + user + "\n}"})
		if err == nil || !strings.Contains(err.Error(), "no placeholder") {
			t.Errorf("user %s: error %v", user, err)
		}
	}
}

// TestPanelNeedsAuthenticationHoweverSpelled: without a login, every spelling of a panel address is
// refused, below every base.
func TestPanelNeedsAuthenticationHoweverSpelled(t *testing.T) {
	rests := []string{
		"", "/", "//", "/api/session", "//api/session", "/./api/session", "/api/../api/session", "/%61pi/session", "/api%2fsession", "%2fapi/session",
		"/api/session/", "/API/session", "/api/session.", "/api\\session", "/api/config/storages%2fdefault", "/api/storages?x", "/;x", ".", "%20", "%00",
	}
	for name, c := range map[string]struct{ block, base string }{
		"alone":                       {"media_admin", "/media-admin"},
		"with a matcher":              {"media_admin /media-admin/*", "/media-admin"},
		"on a site of its own":        {"media_admin /", ""},
		"with handle_path":            {"handle_path /media-admin/* {\nmedia_admin /\n}", "/media-admin"},
		"with handle_path, no slash":  {"handle_path /media-admin* {\nmedia_admin /\n}", "/media-admin"},
		"with handle_path and a base": {"handle_path /x/* {\nmedia_admin\n}", "/x/media-admin"},
	} {
		t.Run(name, func(t *testing.T) {
			p := site.StartPanelConfig(t, site.Config{Media: site.Basic, Site: "media\n" + c.block, Global: "admin " + servers.FreeAddress(t)})
			before, answered := p.Running(t), 0
			for _, rest := range rests {
				for _, base := range []string{c.base, "/" + c.base, "/." + c.base, "/x/.." + c.base, strings.ToUpper(c.base)} {
					for _, method := range allMethods {
						if !strings.HasPrefix(base+rest, "/") {
							continue
						}
						r := p.Do(t, method, base+rest, site.Headers("Content-Type", site.JSON, "If-None-Match", "*"), `{"value":{}}`)
						if r.Header.Get("Content-Security-Policy") == "" {
							if r.Body != "" { // that of no other handler either
								t.Errorf("%s %s: %d %s", method, base+rest, r.Status, r.Body)
							}
							continue // not the panel's
						}
						answered++
						if r.Status != http.StatusForbidden {
							t.Errorf("%s %s: status %d, want 403", method, base+rest, r.Status)
						}
					}
				}
			}
			if answered == 0 || p.Running(t) != before {
				t.Errorf("%d answers, the configuration is %s", answered, p.Running(t))
			}
			t.Logf("%d answers of the panel", answered)
		})
	}
}
