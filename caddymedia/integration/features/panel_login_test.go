package features_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestPanelLogin: a change of the configuration in the panel is a reload, and sessions survive it.
// They end with their user. Failed logins at the panel and at the token endpoint share one limit.
func TestPanelLogin(t *testing.T) {
	p := site.StartPanelConfig(t, site.Config{Media: site.Basic, Site: site.LoginBlock, Global: "admin " + servers.FreeAddress(t)})
	p.User = ""
	admin := site.PanelSession(t, p.Client, p.URL+"/media-admin/login", "admin")
	viewer := site.PanelSession(t, p.Client, p.URL+"/media-admin/login", "viewer")
	session := func(c *http.Cookie) []string { return []string{"Cookie", c.Name + "=" + c.Value} }
	for _, prefix := range []string{"one", "two", "three"} {
		now := p.Call(t, http.MethodGet, "config/file_aliases/content", nil, session(admin)...)
		p.Must(t, http.StatusOK, http.MethodPut, "config/file_aliases/content", `{"value":{"prefix":"`+prefix+`"}}`,
			append(session(admin), "If-Match", now.Header.Get("Etag"))...)
	}
	p.Must(t, http.StatusForbidden, http.MethodPut, "config/file_aliases/x", `{"value":{}}`, append(session(viewer), "If-None-Match", "*")...)
	p.Must(t, http.StatusOK, http.MethodGet, "session", nil, session(viewer)...)
	if !strings.Contains(p.Running(t), `"prefix":"three"`) {
		t.Errorf("the configuration is %s", p.Running(t))
	}
	other := strings.Replace(site.LoginBlock, "viewer "+site.CheapHash+"\n", "", 1)
	p.Load(t, site.Config{Media: site.Basic, Site: other, Global: p.Admin})
	p.Must(t, http.StatusUnauthorized, http.MethodGet, "session", nil, session(viewer)...)
	p.Must(t, http.StatusOK, http.MethodGet, "session", nil, session(admin)...)
	p.Must(t, http.StatusNoContent, http.MethodDelete, "session", nil, session(admin)...)
	p.Must(t, http.StatusUnauthorized, http.MethodGet, "session", nil, session(admin)...)
}

// TestPanelAddressIsLogged: the log says at the start where the panel is.
func TestPanelAddressIsLogged(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	p.WaitForLog(t, `"serving the panel","addresses":["`+p.URL+`/media-admin/"]`)
}
