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
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// panelRoutes are requests to every route, and other spellings of their addresses.
var panelRoutes = []string{
	"", "/", "/assets/x/app.js", "/assets/", "/nothing", "/api", "/api/", "/api/session", "/api/kinds", "/api/storages", "/api/storages/default",
	"/api/storages/default/probe", "/api/probe", "/api/aliases", "/api/accounts", "/api/accounts/site-one/tokens",
	"/api/items/file/content", "/api/items/file/content/small.txt", "/api/health", "/api/usage", "/api/changes", "/api/config", "/api/config/storages/default",
	"/api/config/file_aliases/content", "/api/config/accounts/site-one", "/api/upload/file", "/api/upload/img?alias=content", "/api/upload/file/resumable", "/api/uploads",
	"/api/preview/img/content/a.png", "/api/%63onfig/storages/default", "/api//config", "/api/../api/session",
}

// panelSpellings are spellings of addresses that may be those of the panel or of no handler.
var panelSpellings = []string{
	"", "/", "//", "/api/session", "//api/session", "/./api/session", "/api/../api/session", "/%61pi/session", "/api%2fsession", "%2fapi/session",
	"/api/session/", "/API/session", "/api/session.", "/api\\session", "/api/config/storages%2fdefault", "/api/storages?x", "/;x", ".", "%20", "%00",
}

// TestPanelNeedsAuthentication: without a login no route answers under any spelling, below every
// base, and whatever the site passes to the panel.
func TestPanelNeedsAuthentication(t *testing.T) {
	for name, c := range map[string]struct{ block, base string }{
		"no authentication":           {"media_admin", "/media-admin"},
		"an empty user":               {"media_admin {\nuser {http.request.header.X-User}\n}", "/media-admin"},
		"an unknown user":             {"media_admin {\nuser {http.auth.nothing.like.this}\n}", "/media-admin"},
		"with a matcher":              {"media_admin /media-admin/*", "/media-admin"},
		"on a site of its own":        {"media_admin /", ""},
		"with handle_path":            {"handle_path /media-admin/* {\nmedia_admin /\n}", "/media-admin"},
		"with handle_path, no slash":  {"handle_path /media-admin* {\nmedia_admin /\n}", "/media-admin"},
		"with handle_path and a base": {"handle_path /x/* {\nmedia_admin\n}", "/x/media-admin"},
	} {
		t.Run(name, func(t *testing.T) {
			p := site.StartPanelConfig(t, site.Config{Media: site.Basic, Site: c.block, Global: "admin " + servers.FreeAddress(t)})
			before, answered := p.Running(t), 0
			for _, route := range panelRoutes {
				answered += wantNoAnswer(t, p, c.base, route)
			}
			if all := len(panelRoutes) * len(allMethods); answered < all-len(allMethods) { // the base may be of no handler
				t.Errorf("the panel has answered %d of %d requests", answered, all)
			}
			for _, base := range []string{c.base, "/" + c.base, "/." + c.base, "/x/.." + c.base, strings.ToUpper(c.base)} {
				for _, spelling := range panelSpellings {
					wantNoAnswer(t, p, base, spelling)
				}
			}
			if after := p.Running(t); after != before {
				t.Errorf("the configuration was changed to %s", after)
			}
		})
	}
}

// wantNoAnswer sends a request of each method, and returns how many the panel has refused. It
// expects the others to be of no handler.
func wantNoAnswer(t *testing.T, p *site.Panel, base, route string) (refused int) {
	t.Helper()
	if !strings.HasPrefix(base+route, "/") {
		return 0
	}
	for _, method := range allMethods {
		r := p.Do(t, method, base+route, site.Headers("Content-Type", site.JSON, "If-None-Match", "*"), `{"value":{}}`)
		if r.Header.Get("Content-Security-Policy") == "" {
			if r.Body != "" {
				t.Errorf("%s %s: %d %s", method, base+route, r.Status, r.Body)
			}
			continue
		}
		refused++
		if r.Status != http.StatusForbidden {
			t.Errorf("%s %s: status %d, want 403", method, base+route, r.Status)
		}
		for _, name := range []string{`"default"`, "site-one", p.Root} {
			if strings.Contains(r.Body, name) {
				t.Errorf("%s %s shows %q: %s", method, base+route, name, r.Body)
			}
		}
		// basic_auth would limit neither guesses nor memory.
		if method == http.MethodGet && (!strings.Contains(r.Body, "No user is logged in") || !strings.Contains(r.Body, "login {") ||
			!strings.Contains(r.Body, "caddy hash-password") || strings.Contains(r.Body, "basic_auth")) {
			t.Errorf("%s does not explain how to log in: %s", base+route, r.Body)
		}
	}
	return refused
}

var allMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "PROPFIND",
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
		if part := get("/media-admin/" + piece); part.Status != http.StatusOK || !strings.Contains(part.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %q", piece, part.Status, part.Header.Get("Cache-Control"))
		}
	}
	if parts == 0 {
		t.Error("the page has no parts")
	}
	if r := get("/media-admin"); r.Status != http.StatusPermanentRedirect || r.Header.Get("Location") != "/media-admin/" {
		t.Errorf("the base: %d to %q", r.Status, r.Header.Get("Location"))
	}
	write := p.Request(t, http.MethodPost, "/media-admin/", nil, nil)
	write.SetBasicAuth("admin", site.Password)
	if r := p.Send(t, p.Client, write); r.Status != http.StatusMethodNotAllowed || r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("a write to the page: %d %v", r.Status, r.Header)
	}
	if r := get("/media-admin/nothing"); r.Status != http.StatusNotFound {
		t.Errorf("no page: status %d, want 404", r.Status)
	}
	if r := get("/media-adminother"); r.Status == http.StatusOK && r.Body != "" {
		t.Errorf("beside the panel: %d %s", r.Status, r.Body)
	}
}

// panelChanges are requests of each route that changes something.
var panelChanges = []struct{ method, route, body string }{
	{http.MethodPut, "config/file_aliases/new", `{"value":{"prefix":"x"}}`},
	{http.MethodPut, "config/accounts/new", `{"value":{},"new_password":true}`},
	{http.MethodDelete, "config/file_aliases/content", ""},
	{http.MethodDelete, "accounts/site-one/tokens", ""},
	{http.MethodPost, "storages/default/probe", "{}"},
	{http.MethodPost, "probe", `{"driver":{"name":"local","root":"x"}}`},
	{http.MethodPost, "usage", ""},
	{http.MethodPost, "upload/file", site.Form(site.File("evil.txt", "x"))},
	{http.MethodPost, "upload/file/resumable", ""},
	{http.MethodPatch, "upload/file/resumable/x", ""},
	{http.MethodDelete, "uploads/default/x", ""},
	{http.MethodDelete, "items/file/content/small.txt", ""},
	{http.MethodPost, "items/file/content/small.txt", "to=evil.txt"},
	{http.MethodPut, "items/file/content/small.txt", "x"},
	{http.MethodPost, "items/file/content", "action=delete&folder=&everything=yes"},
	{http.MethodPatch, "session", ""},
}

// TestPanelUploader: an uploader uses items of the aliases of the line on a whole site. No other
// route answers, and none shows anything of the configuration.
func TestPanelUploader(t *testing.T) {
	p := site.StartPanelConfig(t, site.Config{
		Media: site.Basic + "file_alias hidden\n", Site: site.UploaderBlock, Global: "admin " + servers.FreeAddress(t),
	})
	before, carla := p.Running(t), p.As("carla")
	for _, change := range panelChanges {
		if !strings.HasPrefix(change.route, "upload/") && !strings.HasPrefix(change.route, "items/") && change.route != "session" {
			carla.Must(t, http.StatusForbidden, change.method, change.route, change.body, "If-None-Match", "*")
		}
	}
	for _, route := range []string{
		"kinds", "storages", "storages/default", "caches", "accounts", "uploads", "health", "usage", "changes", "config",
		"config/caddyfile", "config/storages/default", "openapi.json", "items/file/hidden", "nothing",
	} {
		want := http.StatusForbidden
		if route == "openapi.json" || route == "nothing" {
			want = http.StatusNotFound
		}
		if r := carla.Must(t, want, http.MethodGet, route, nil); strings.Contains(r.Body, p.Root) {
			t.Errorf("%s: %s", route, r.Body)
		}
	}
	form := site.Form(site.File("a.txt", "x"))
	stored := carla.Must(t, http.StatusOK, http.MethodPost, "upload/file?sub_folder=a", form, "Content-Type", site.FormType.Get("Content-Type")).One(t)
	carla.Must(t, http.StatusForbidden, http.MethodPost, "upload/file?alias=hidden", form, "Content-Type", site.FormType.Get("Content-Type"))
	for _, route := range []string{"aliases", "session", "items/file/content", "facts/file/content/" + stored.Filename} {
		r := carla.Must(t, http.StatusOK, http.MethodGet, route, nil)
		for _, secret := range []string{p.Root, "site-one", "default", "hidden", "Caddyfile"} {
			if strings.Contains(r.Body, secret) {
				t.Errorf("%s shows %s: %s", route, secret, r.Body)
			}
		}
	}
	carla.Must(t, http.StatusOK, http.MethodPost, "zip/file/content", "filename="+stored.Filename, "Content-Type", "application/x-www-form-urlencoded")
	carla.Must(t, http.StatusOK, http.MethodDelete, "items/file/content/"+stored.Filename, nil)
	if after := p.Running(t); after != before {
		t.Errorf("the configuration was changed to %s", after)
	}
	unknown := strings.Replace(site.UploaderBlock, "aliases content", "aliases photo", 1)
	err := p.TryLoad(t, site.Config{Media: site.Basic, Site: unknown, Global: p.Admin})
	if err == nil || !strings.Contains(err.Error(), `uploaders: there is no alias "photo"`) {
		t.Errorf("an unknown alias: %v", err)
	}
}

// TestPanelRefusesChanges: neither a viewer nor a page of another site, in the browser of an
// editor, can change anything.
func TestPanelRefusesChanges(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	p.UploadFile(t, site.File("small.txt", "x")).One(t)
	before, stored, tag := p.Running(t), fmt.Sprint(site.Files(t, p.Root)), p.Entry(t, "file_aliases/content").Tag
	viewer := p.As("viewer")
	for name, c := range map[string]struct {
		as     *site.Panel
		header []string
	}{
		"a viewer":                 {viewer, nil},
		"another origin":           {p, []string{"Origin", "https://evil.example"}},
		"no origin":                {p, []string{"Origin", "null"}},
		"another site":             {p, []string{"Sec-Fetch-Site", "cross-site"}},
		"the same site":            {p, []string{"Sec-Fetch-Site", "same-site"}},
		"another origin that lies": {p, []string{"Origin", p.URL, "Sec-Fetch-Site", "cross-site"}},
	} {
		for _, change := range panelChanges {
			kind := site.JSON
			switch {
			case strings.HasPrefix(change.route, "upload"):
				kind = site.FormType.Get("Content-Type")
			case strings.HasPrefix(change.route, "items"): // a form of any site can be sent so
				kind = "application/x-www-form-urlencoded"
			}
			r := c.as.Call(t, change.method, change.route, change.body, append(c.header, "Content-Type", kind, "If-Match", tag)...)
			if r.Status != http.StatusForbidden {
				t.Errorf("%s: %s %s: %d %s, want 403", name, change.method, change.route, r.Status, r.Body)
			}
		}
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", site.FormType.Get("Content-Type"), "x"} {
		p.Must(t, http.StatusUnsupportedMediaType, http.MethodPut, "config/file_aliases/new", `{"value":{"prefix":"x"}}`, "Content-Type", kind, "If-None-Match", "*")
		p.Must(t, http.StatusUnsupportedMediaType, http.MethodPost, "probe", `{"driver":{}}`, "Content-Type", kind)
	}
	for _, route := range []string{"session", "kinds", "storages", "aliases", "accounts", "health", "usage", "changes", "items/file/content", "config", "config/storages/default"} {
		viewer.Must(t, http.StatusOK, http.MethodGet, route, nil)
	}
	viewer.Must(t, http.StatusForbidden, http.MethodHead, "upload/file/resumable/x", nil)
	viewer.Must(t, http.StatusForbidden, http.MethodOptions, "session", nil)
	var session struct {
		User, WhyNot string
		Editor       bool
	}
	if err := json.Unmarshal([]byte(strings.Replace(viewer.Call(t, http.MethodGet, "session", nil).Body, "why_not", "WhyNot", 1)), &session); err != nil {
		t.Fatal(err)
	}
	if session.User != "viewer" || session.Editor || session.WhyNot == "" {
		t.Errorf("session %+v", session)
	}
	if after := p.Running(t); after != before || fmt.Sprint(site.Files(t, p.Root)) != stored {
		t.Errorf("something was changed: %s", after)
	}
	// The same request from the site itself is accepted.
	p.Must(t, http.StatusCreated, http.MethodPut, "config/file_aliases/new", `{"value":{"prefix":"x"}}`,
		"Origin", p.URL, "Sec-Fetch-Site", "same-origin", "If-None-Match", "*")
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

// TestPanelLogin: a change of the configuration in the panel is a reload, and sessions survive it.
// They end with their user. The log says at the start where the panel is.
func TestPanelLogin(t *testing.T) {
	p := site.StartPanelConfig(t, site.Config{Media: site.Basic, Site: site.LoginBlock, Global: "admin " + servers.FreeAddress(t)})
	p.WaitForLog(t, `"serving the panel","addresses":["`+p.URL+`/media-admin/"]`)
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

// TestPanelRefusesConfigurations: errors in the options of a panel are named. A constant user name,
// for example because a brace is missing, would open the panel to everyone.
func TestPanelRefusesConfigurations(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	wants := map[string]string{
		"admin example.com:2019":    "another host",
		"admin {env.MEDIA_NOT_SET}": "MEDIA_NOT_SET",
		"editors admin \"\"":        "a name is empty",
		"admin localhost:1-9":       "no single TCP add",
	}
	for _, user := range []string{"admin", "{http.auth.user.id", `"\{http.auth.user.id\}"`, "http.auth.user.id}", `"{"`, "{system.os}", "{env.PATH}"} {
		wants["user "+user] = "no placeholder"
	}
	blocks := map[string]string{"media_admin * media": `path "media"`, "media_admin * /a//b": `path "/a//b"`}
	for option, want := range wants {
		blocks["media_admin {\n"+option+"\n}"] = want
	}
	for block, want := range blocks {
		if err := s.TryLoad(t, site.Config{Media: site.Basic, Site: block}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", block, err, want)
		}
	}
}
