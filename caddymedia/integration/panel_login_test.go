package integration

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// loginBlock is a site with the service and a panel with its own login.
const loginBlock = `media
media_admin {
	login {
		admin ` + cheapHash + `
		viewer ` + cheapHash + `
	}
	editors admin
}
`

// panelSession logs a user in on the login page at address. It returns the cookie of the session.
func panelSession(t *testing.T, client *http.Client, address, user string) *http.Cookie {
	t.Helper()
	still := *client
	still.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := still.PostForm(address, url.Values{"user": {user}, "password": {password}})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		t.Fatalf("login of %s: %d %v", user, answer.StatusCode, answer.Header)
	}
	return answer.Cookies()[0]
}

// TestPanelLogin: a change of the configuration in the panel is a reload, and sessions survive it.
// They end with their user. Failed logins at the panel and at the token endpoint share one limit.
func TestPanelLogin(t *testing.T) {
	p := startPanelConfig(t, siteConfig{Media: basic, Site: loginBlock, Global: "admin " + servers.FreeAddress(t)})
	p.user = ""
	admin := panelSession(t, p.client, p.url+"/media-admin/login", "admin")
	viewer := panelSession(t, p.client, p.url+"/media-admin/login", "viewer")
	session := func(c *http.Cookie) []string { return []string{"Cookie", c.Name + "=" + c.Value} }
	for _, prefix := range []string{"one", "two", "three"} {
		now := p.call(t, http.MethodGet, "config/file_aliases/content", nil, session(admin)...)
		p.must(t, http.StatusOK, http.MethodPut, "config/file_aliases/content", `{"value":{"prefix":"`+prefix+`"}}`,
			append(session(admin), "If-Match", now.header.Get("Etag"))...)
	}
	p.must(t, http.StatusForbidden, http.MethodPut, "config/file_aliases/x", `{"value":{}}`, append(session(viewer), "If-None-Match", "*")...)
	p.must(t, http.StatusOK, http.MethodGet, "session", nil, session(viewer)...)
	if !strings.Contains(p.running(t), `"prefix":"three"`) {
		t.Errorf("the configuration is %s", p.running(t))
	}
	other := strings.Replace(loginBlock, "viewer "+cheapHash+"\n", "", 1)
	p.load(t, siteConfig{Media: basic, Site: other, Global: p.admin})
	p.must(t, http.StatusUnauthorized, http.MethodGet, "session", nil, session(viewer)...)
	p.must(t, http.StatusOK, http.MethodGet, "session", nil, session(admin)...)
	p.must(t, http.StatusNoContent, http.MethodDelete, "session", nil, session(admin)...)
	p.must(t, http.StatusUnauthorized, http.MethodGet, "session", nil, session(admin)...)
}
