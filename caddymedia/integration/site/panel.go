package site

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// PanelBlock is a site with the service and its panel. The users admin and viewer have the password
// of the accounts, and only admin is an editor.
const PanelBlock = `media
handle /media-admin* {
	basic_auth argon2id {
		admin ` + CheapHash + `
		viewer ` + CheapHash + `
	}
	media_admin {
		editors admin
	}
}
`

// UploaderBlock is PanelBlock with the user carla, who is an uploader of the aliases "content".
var UploaderBlock = strings.NewReplacer("viewer", "carla "+CheapHash+"\n\t\tviewer",
	"editors admin", "editors admin\n\t\tuploaders carla {\n\t\t\taliases content\n\t\t}").Replace(PanelBlock)

// Panel is a site with a panel, and the user of the next requests.
type Panel struct {
	*Site
	User  string
	Admin string    // the global option of the admin endpoint
	Seen  *[]*Reply // all answers so far
}

// StartPanel runs a site with a panel and an admin endpoint on a loopback address.
func StartPanel(t *testing.T, media string) *Panel {
	t.Helper()
	return StartPanelConfig(t, Config{Media: media, Site: PanelBlock, Global: "admin " + servers.FreeAddress(t)})
}

// StartPanelConfig is StartPanel with a configuration, whose Global is the option admin.
func StartPanelConfig(t *testing.T, config Config) *Panel {
	t.Helper()
	s := StartConfig(t, config)
	return &Panel{Site: s, User: "admin", Admin: config.Global, Seen: new([]*Reply)}
}

// As returns the panel as seen by another user.
func (p *Panel) As(user string) *Panel {
	other := *p
	other.User = user
	return &other
}

// JSON is the media type of the API of the panel.
const JSON = "application/json"

// Call requests a route of the panel's API. After a change it waits until the site is ready again.
func (p *Panel) Call(t *testing.T, method, route string, body any, header ...string) *Reply {
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
	h := Headers(header...)
	if text != "" && h.Get("Content-Type") == "" {
		h.Set("Content-Type", JSON)
	}
	r := p.Request(t, method, "/media-admin/api/"+route, h, strings.NewReader(text))
	if p.User != "" {
		r.SetBasicAuth(p.User, Password)
	}
	answer := p.Send(t, p.Client, r)
	*p.Seen = append(*p.Seen, answer)
	if method != http.MethodGet && strings.HasPrefix(route, "config/") {
		p.AwaitSwitch(t)
	}
	return answer
}

// Must is Call, but fails the test unless the answer has the status.
func (p *Panel) Must(t *testing.T, status int, method, route string, body any, header ...string) *Reply {
	t.Helper()
	r := p.Call(t, method, route, body, header...)
	if r.Status != status {
		t.Fatalf("%s %s: %d %s, want %d", method, route, r.Status, r.Body, status)
	}
	return r
}

// Entry is an entry as the panel returns it.
type Entry struct {
	Section, Name string
	Implicit      bool
	Value         map[string]any
	Secrets       []string
	Tag           string
}

// Entry fetches an entry of the configuration with its entity tag.
func (p *Panel) Entry(t *testing.T, route string) Entry {
	t.Helper()
	r := p.Must(t, http.StatusOK, http.MethodGet, "config/"+route, nil)
	e := Entry{Tag: r.Header.Get("Etag")}
	r.Decode(t, &e)
	return e
}

// Put changes or creates an entry, based on its current state.
func (p *Panel) Put(t *testing.T, status int, route string, body any) *Reply {
	t.Helper()
	now := p.Call(t, http.MethodGet, "config/"+route, nil)
	if now.Status == http.StatusNotFound {
		return p.Must(t, status, http.MethodPut, "config/"+route, body, "If-None-Match", "*")
	}
	return p.Must(t, status, http.MethodPut, "config/"+route, body, "If-Match", now.Header.Get("Etag"))
}

// Remove removes an entry, based on its current state.
func (p *Panel) Remove(t *testing.T, status int, route string) *Reply {
	t.Helper()
	return p.Must(t, status, http.MethodDelete, "config/"+route, nil, "If-Match", p.Entry(t, route).Tag)
}

// Running returns the configuration of the app from the admin endpoint.
func (p *Panel) Running(t *testing.T) string {
	t.Helper()
	address := strings.Fields(p.Admin)[1]
	var body []byte
	Eventually(t, "the admin endpoint answers", func() bool {
		r, err := AdminClient.Get("http://" + address + "/config/apps/media")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		body, err = io.ReadAll(r.Body)
		return err == nil
	})
	return strings.TrimSpace(string(body))
}

// LocalStorage returns the body of a request for a local storage.
func LocalStorage(folder string) map[string]any {
	return map[string]any{"value": map[string]any{"driver": map[string]any{"name": "local", "root": folder}}}
}

// LoginBlock is a site with the service and a panel with its own login.
const LoginBlock = `media
media_admin {
	login {
		admin ` + CheapHash + `
		viewer ` + CheapHash + `
	}
	editors admin
}
`

// PanelSession logs a user in on the login page at address. It returns the cookie of the session.
func PanelSession(t *testing.T, client *http.Client, address, user string) *http.Cookie {
	t.Helper()
	still := *client
	still.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	answer, err := still.PostForm(address, url.Values{"user": {user}, "password": {Password}})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther || len(answer.Cookies()) != 1 {
		t.Fatalf("login of %s: %d %v", user, answer.StatusCode, answer.Header)
	}
	return answer.Cookies()[0]
}
