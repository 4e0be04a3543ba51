package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// panelBlock is a site with the service and its panel. The users admin and viewer have the password
// of the accounts, and only admin is an editor.
const panelBlock = `media
handle /media-admin* {
	basic_auth argon2id {
		admin ` + cheapHash + `
		viewer ` + cheapHash + `
	}
	media_admin {
		editors admin
	}
}
`

// panel is a site with a panel, and the user of the next requests.
type panel struct {
	*site
	user  string
	admin string    // the global option of the admin endpoint
	seen  *[]*reply // all answers so far
}

// startPanel runs a site with a panel and an admin endpoint on a loopback address.
func startPanel(t *testing.T, media string) *panel {
	t.Helper()
	return startPanelConfig(t, siteConfig{Media: media, Site: panelBlock, Global: "admin " + servers.FreeAddress(t)})
}

func startPanelConfig(t *testing.T, config siteConfig) *panel {
	t.Helper()
	s := startSiteConfig(t, config)
	return &panel{site: s, user: "admin", admin: config.Global, seen: new([]*reply)}
}

// as returns the panel as seen by another user.
func (p *panel) as(user string) *panel {
	other := *p
	other.user = user
	return &other
}

const asJSON = "application/json"

// call requests a route of the panel's API. After a change it waits until the site is ready again.
func (p *panel) call(t *testing.T, method, route string, body any, header ...string) *reply {
	t.Helper()
	var text string
	switch body := body.(type) {
	case nil:
	case string:
		text = body
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		text = string(encoded)
	}
	h := headers(header...)
	if text != "" && h.Get("Content-Type") == "" {
		h.Set("Content-Type", asJSON)
	}
	r := p.request(t, method, "/media-admin/api/"+route, h, strings.NewReader(text))
	if p.user != "" {
		r.SetBasicAuth(p.user, password)
	}
	answer := p.send(t, p.client, r)
	*p.seen = append(*p.seen, answer)
	if method != http.MethodGet && strings.HasPrefix(route, "config/") {
		p.awaitSwitch(t)
	}
	return answer
}

// must is call, but fails the test unless the answer has the status.
func (p *panel) must(t *testing.T, status int, method, route string, body any, header ...string) *reply {
	t.Helper()
	r := p.call(t, method, route, body, header...)
	if r.status != status {
		t.Fatalf("%s %s: %d %s, want %d", method, route, r.status, r.body, status)
	}
	return r
}

// entry is an entry as the panel returns it.
type entry struct {
	Section, Name string
	Implicit      bool
	Value         map[string]any
	Secrets       []string
	tag           string
}

func (p *panel) entry(t *testing.T, route string) entry {
	t.Helper()
	r := p.must(t, http.StatusOK, http.MethodGet, "config/"+route, nil)
	e := entry{tag: r.header.Get("Etag")}
	r.decode(t, &e)
	return e
}

// put changes or creates an entry, based on its current state.
func (p *panel) put(t *testing.T, status int, route string, body any) *reply {
	t.Helper()
	now := p.call(t, http.MethodGet, "config/"+route, nil)
	if now.status == http.StatusNotFound {
		return p.must(t, status, http.MethodPut, "config/"+route, body, "If-None-Match", "*")
	}
	return p.must(t, status, http.MethodPut, "config/"+route, body, "If-Match", now.header.Get("Etag"))
}

func (p *panel) remove(t *testing.T, status int, route string) *reply {
	t.Helper()
	return p.must(t, status, http.MethodDelete, "config/"+route, nil, "If-Match", p.entry(t, route).tag)
}

// running returns the configuration of the app from the admin endpoint.
func (p *panel) running(t *testing.T) string {
	t.Helper()
	address := strings.Fields(p.admin)[1]
	var body []byte
	eventually(t, "the admin endpoint answers", func() bool {
		r, err := adminClient.Get("http://" + address + "/config/apps/media")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		body, err = io.ReadAll(r.Body)
		return err == nil
	})
	return strings.TrimSpace(string(body))
}

// local returns the body of a request for a local storage.
func local(folder string) map[string]any {
	return map[string]any{"value": map[string]any{"driver": map[string]any{"name": "local", "root": folder}}}
}
