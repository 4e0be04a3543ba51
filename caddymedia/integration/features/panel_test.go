package features_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/internal/testcaddy"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// panelRoutes are requests to every route, to test refusals on all of them.
var panelRoutes = []string{
	"", "/", "/assets/x/app.js", "/assets/", "/nothing", "/api", "/api/", "/api/session", "/api/kinds", "/api/storages", "/api/storages/default",
	"/api/storages/default/probe", "/api/probe", "/api/aliases", "/api/accounts", "/api/accounts/site-one/tokens",
	"/api/items/file/content", "/api/items/file/content/small.txt", "/api/health", "/api/usage", "/api/changes", "/api/config", "/api/config/storages/default",
	"/api/config/file_aliases/content", "/api/config/accounts/site-one", "/api/upload/file", "/api/upload/img?alias=content", "/api/upload/file/resumable", "/api/uploads",
	"/api/preview/img/content/a.png", "/api/%63onfig/storages/default", "/api//config", "/api/../api/session",
}

var allMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "PROPFIND",
}

// TestPanelNeedsAuthentication: without a login no route answers, whatever the site passes to the
// panel.
func TestPanelNeedsAuthentication(t *testing.T) {
	for name, options := range map[string]string{
		"no authentication": "",
		"an empty user":     "user {http.request.header.X-User}",
		"an unknown user":   "user {http.auth.nothing.like.this}",
	} {
		t.Run(name, func(t *testing.T) {
			p := site.StartPanelConfig(t, site.Config{
				Media: site.Basic, Site: "media\nmedia_admin {\n" + options + "\n}", Global: "admin " + servers.FreeAddress(t),
			})
			before := p.Running(t)
			for _, route := range panelRoutes {
				for _, method := range allMethods {
					r := p.Do(t, method, "/media-admin"+route, site.Headers("Content-Type", site.JSON, "If-None-Match", "*"), `{"value":{}}`)
					if r.Status != http.StatusForbidden {
						t.Errorf("%s %s: status %d, want 403", method, route, r.Status)
					}
					for _, name := range []string{`"default"`, "site-one", p.Root} {
						if strings.Contains(r.Body, name) {
							t.Errorf("%s %s shows %q: %s", method, route, name, r.Body)
						}
					}
					inJSON := strings.HasPrefix(route, "/api") || method != http.MethodGet && method != http.MethodHead
					if method != http.MethodHead && (r.Header.Get("Content-Type") == site.JSON) != inJSON {
						t.Errorf("%s %s: Content-Type %q", method, route, r.Header.Get("Content-Type"))
					}
					// basic_auth would limit neither guesses nor memory.
					if method == http.MethodGet && (!strings.Contains(r.Body, "No user is logged in") || !strings.Contains(r.Body, "login {") ||
						!strings.Contains(r.Body, "caddy hash-password") || strings.Contains(r.Body, "basic_auth")) {
						t.Errorf("%s does not explain how to log in: %s", route, r.Body)
					}
				}
			}
			if after := p.Running(t); after != before {
				t.Errorf("the configuration was changed to %s", after)
			}
		})
	}
}

// TestPanelPages: the page and its parts are served, with a policy that allows nothing else.
func TestPanelPages(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	get := func(path string) *site.Reply {
		t.Helper()
		r := p.Request(t, http.MethodGet, path, nil, nil)
		r.SetBasicAuth("viewer", site.Password)
		return p.Send(t, p.Client, r)
	}
	if r := get("/media-admin"); r.Status != http.StatusPermanentRedirect || r.Header.Get("Location") != "/media-admin/" {
		t.Errorf("the base: %d to %q", r.Status, r.Header.Get("Location"))
	}
	page := get("/media-admin/")
	if page.Status != http.StatusOK || strings.Contains(page.Body, "{{") || page.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page: %d %v", page.Status, page.Header)
	}
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
		if policy := page.Header.Get("Content-Security-Policy"); !strings.Contains(policy, want) {
			t.Errorf("the policy %q lacks %q", policy, want)
		}
	}
	parts := 0
	for piece := range strings.SplitSeq(page.Body, `"`) {
		if !strings.HasPrefix(piece, "assets/") {
			continue
		}
		parts++
		part := get("/media-admin/" + piece)
		if part.Status != http.StatusOK || !strings.Contains(part.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %q", piece, part.Status, part.Header.Get("Cache-Control"))
		}
	}
	if parts == 0 {
		t.Error("the page has no parts")
	}
	write := p.Request(t, http.MethodPost, "/media-admin/", nil, nil)
	write.SetBasicAuth("admin", site.Password)
	if r := p.Send(t, p.Client, write); r.Status != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("a write to the page: %d %v", r.Status, r.Header)
	}
	for _, path := range []string{"/media-admin/nothing", "/media-admin/assets/old/app.js", "/media-admin/web.go", "/media-admin/index.html"} {
		if r := get(path); r.Status != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, r.Status)
		}
	}
	if r := get("/media-adminother"); r.Status == http.StatusOK && r.Body != "" {
		t.Errorf("beside the panel: %d %s", r.Status, r.Body)
	}
}

// TestPanelRefusesOtherSites: a page of another site, in the browser of a logged-in user, cannot
// change anything.
func TestPanelRefusesOtherSites(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	p.User = "admin"
	if r := p.UploadFile(t, site.File("small.txt", "x")); r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	before := p.Running(t)
	stored := fmt.Sprint(site.Files(t, p.Root))
	tag := p.Entry(t, "file_aliases/content").Tag
	requests := []struct{ method, route, body string }{
		{http.MethodPut, "config/file_aliases/new", `{"value":{"prefix":"x"}}`},
		{http.MethodPut, "config/accounts/new", `{"value":{},"new_password":true}`},
		{http.MethodDelete, "config/file_aliases/content", ""},
		{http.MethodDelete, "accounts/site-one/tokens", ""},
		{http.MethodPost, "storages/default/probe", "{}"},
		{http.MethodPost, "probe", `{"driver":{"name":"local","root":"` + filepath.Join(p.Root, "x") + `"}}`},
		{http.MethodPost, "upload/file", site.Form(site.File("evil.txt", "x"))},
		{http.MethodPost, "upload/file/resumable", ""},
		{http.MethodPatch, "upload/file/resumable/x", ""},
		{http.MethodDelete, "uploads/default/x", ""},
		{http.MethodDelete, "items/file/content/small.txt", ""},
		{http.MethodPost, "items/file/content/small.txt", "to=evil.txt"},
		{http.MethodPost, "items/file/content", "action=delete&folder=&everything=yes"},
		{http.MethodPatch, "session", ""},
	}
	foreign := map[string][]string{
		"another origin":           {"Origin", "https://evil.example"},
		"no origin":                {"Origin", "null"},
		"another site":             {"Sec-Fetch-Site", "cross-site"},
		"the same site":            {"Sec-Fetch-Site", "same-site"},
		"another origin that lies": {"Origin", p.URL, "Sec-Fetch-Site", "cross-site"},
	}
	for name, header := range foreign {
		for _, c := range requests {
			kind := site.JSON
			switch {
			case strings.HasPrefix(c.route, "upload"):
				kind = site.FormType.Get("Content-Type")
			case strings.HasPrefix(c.route, "items"): // a form of any site can be sent so
				kind = "application/x-www-form-urlencoded"
			}
			r := p.Call(t, c.method, c.route, c.body, append(header, "Content-Type", kind, "If-Match", tag)...)
			if r.Status != http.StatusForbidden {
				t.Errorf("%s: %s %s: %d %s, want 403", name, c.method, c.route, r.Status, r.Body)
			}
		}
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", site.FormType.Get("Content-Type"), "x"} {
		r := p.Call(t, http.MethodPut, "config/file_aliases/new", `{"value":{"prefix":"x"}}`, "Content-Type", kind, "If-None-Match", "*")
		if r.Status != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %d %s, want 415", kind, r.Status, r.Body)
		}
		r = p.Call(t, http.MethodPost, "probe", `{"driver":{}}`, "Content-Type", kind)
		if r.Status != http.StatusUnsupportedMediaType {
			t.Errorf("probe as %s: %d %s, want 415", kind, r.Status, r.Body)
		}
	}
	if after := p.Running(t); after != before || fmt.Sprint(site.Files(t, p.Root)) != stored {
		t.Errorf("something was changed: %s", after)
	}
	// The same request from the site itself is accepted.
	p.Must(t, http.StatusCreated, http.MethodPut, "config/file_aliases/new", `{"value":{"prefix":"x"}}`,
		"Origin", p.URL, "Sec-Fetch-Site", "same-origin", "If-None-Match", "*")
}

// TestPanelViewer: a viewer sees everything and changes nothing.
func TestPanelViewer(t *testing.T) {
	p := site.StartPanel(t, site.Basic).As("viewer")
	before := p.Running(t)
	for _, route := range []string{"session", "kinds", "storages", "aliases", "accounts", "health", "usage", "changes", "items/file/content", "config", "config/storages/default"} {
		p.Must(t, http.StatusOK, http.MethodGet, route, nil)
	}
	for _, c := range []struct{ method, route, body string }{
		{http.MethodPut, "config/file_aliases/new", `{"value":{"prefix":"x"}}`},
		{http.MethodDelete, "config/file_aliases/content", ""},
		{http.MethodDelete, "accounts/site-one/tokens", ""},
		{http.MethodDelete, "items/file/content/a.txt", ""},
		{http.MethodPost, "items/file/content/a.txt", "to=b.txt"},
		{http.MethodPut, "items/file/content/a.txt", "x"},
		{http.MethodPost, "items/file/content", "action=delete&folder=a"},
		{http.MethodPost, "storages/default/probe", "{}"},
		{http.MethodPost, "probe", `{"driver":{"name":"local","root":"x"}}`},
		{http.MethodPost, "usage", ""},
		{http.MethodPost, "upload/file", "x"},
		{http.MethodPost, "upload/file/resumable", ""},
		{http.MethodHead, "upload/file/resumable/x", ""},
		{http.MethodGet, "upload/file/resumable/x", ""},
		{http.MethodDelete, "uploads/default/x", ""},
		{http.MethodOptions, "session", ""},
	} {
		if r := p.Call(t, c.method, c.route, c.body, "If-Match", "*"); r.Status != http.StatusForbidden {
			t.Errorf("%s %s: %d %s, want 403", c.method, c.route, r.Status, r.Body)
		}
	}
	var session struct {
		User, WhyNot string
		Editor       bool
	}
	if err := json.Unmarshal([]byte(strings.Replace(p.Call(t, http.MethodGet, "session", nil).Body, "why_not", "WhyNot", 1)), &session); err != nil {
		t.Fatal(err)
	}
	if session.User != "viewer" || session.Editor || session.WhyNot == "" {
		t.Errorf("session %+v", session)
	}
	if after := p.Running(t); after != before {
		t.Errorf("the configuration was changed to %s", after)
	}
}

// TestPanelUserIsData: a name is never expanded, and must equal the whole name of an editor.
func TestPanelUserIsData(t *testing.T) {
	p := site.StartPanelConfig(t, site.Config{
		Media: site.Basic, Global: "admin " + servers.FreeAddress(t),
		Site: "media\nmedia_admin {\nuser {http.request.header.X-User}\neditors admin\n}",
	})
	for _, name := range []string{"{env.HOME}", "{http.request.host}", "admin2", "Admin", `<b>"x"`} {
		r := p.Get(t, "/media-admin/api/session", "X-User", name)
		var session struct {
			User   string
			Editor bool
		}
		if err := json.Unmarshal([]byte(r.Body), &session); err != nil || session.User != name || session.Editor {
			t.Errorf("%s: %d %s", name, r.Status, r.Body)
		}
	}
}

// TestPanelThroughAdmin: an alias is changed through each type of admin endpoint.
func TestPanelThroughAdmin(t *testing.T) {
	socket := filepath.Join(testcaddy.SocketFolder(t), "admin.sock")
	for name, admin := range map[string]string{
		"loopback":       "admin " + servers.FreeAddress(t),
		"unix socket":    "admin unix/" + socket,
		"socket rights":  "admin unix/" + socket + "2|0600",
		"enforce_origin": "admin " + servers.FreeAddress(t) + " {\nenforce_origin\n}",
		"all interfaces": "admin :" + portOf(servers.FreeAddress(t)),
	} {
		t.Run(name, func(t *testing.T) {
			p := site.StartPanelConfig(t, site.Config{Media: site.Basic, Site: site.PanelBlock, Global: admin})
			p.Put(t, http.StatusCreated, "file_aliases/one", `{"value":{"prefix":"one"}}`)
			p.Put(t, http.StatusOK, "file_aliases/one", `{"value":{"prefix":"two"}}`)
			if got := p.Entry(t, "file_aliases/one").Value["prefix"]; got != "two" {
				t.Errorf("the prefix is %v", got)
			}
			p.Remove(t, http.StatusNoContent, "file_aliases/one")
			r := p.Must(t, http.StatusOK, http.MethodGet, "session", nil)
			if !strings.Contains(r.Body, `"why_not":""`) || !strings.Contains(r.Body, `"lasting":false`) || !strings.Contains(r.Body, "--resume") {
				t.Errorf("session %s", r.Body)
			}
		})
	}
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// TestPanelWithoutAdmin: the panel shows everything, and why the configuration cannot be changed.
func TestPanelWithoutAdmin(t *testing.T) {
	for name, c := range map[string]struct{ block, why string }{
		"switched off": {site.PanelBlock, "switched off"},
		"unreachable":  {strings.Replace(site.PanelBlock, "media_admin {", "media_admin {\nadmin "+servers.FreeAddress(t), 1), "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			p := site.StartPanelConfig(t, site.Config{Media: site.Basic, Site: c.block, Global: ""})
			if r := p.Must(t, http.StatusOK, http.MethodGet, "session", nil); !strings.Contains(r.Body, c.why) {
				t.Errorf("session %s", r.Body)
			}
			p.Must(t, http.StatusOK, http.MethodGet, "storages", nil)
			r := p.Must(t, http.StatusBadGateway, http.MethodPut, "config/file_aliases/new", `{"value":{}}`, "If-None-Match", "*")
			if !strings.Contains(r.Body, c.why) {
				t.Errorf("a change: %s", r.Body)
			}
			upload := p.Call(t, http.MethodPost, "upload/file", site.Form(site.File("a.txt", "x")), "Content-Type", site.FormType.Get("Content-Type"))
			if upload.Status != http.StatusOK {
				t.Errorf("an upload: %d %s", upload.Status, upload.Body)
			}
		})
	}
}

// TestPanelRefusesConfigurations: errors in the options of a panel are named.
func TestPanelRefusesConfigurations(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	for want, block := range map[string]string{
		"another host":      "media_admin {\nadmin example.com:2019\n}",
		"MEDIA_NOT_SET":     "media_admin {\nadmin {env.MEDIA_NOT_SET}\n}",
		"a name is empty":   "media_admin {\neditors admin \"\"\n}",
		`path "media"`:      "media_admin * media",
		`path "/a//b"`:      "media_admin * /a//b",
		"no single TCP add": "media_admin {\nadmin localhost:1-9\n}",
	} {
		if err := s.TryLoad(t, site.Config{Media: site.Basic, Site: block}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", block, err, want)
		}
	}
}
