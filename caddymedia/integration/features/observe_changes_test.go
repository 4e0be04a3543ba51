package features_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/internal/caddy/observe"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

func init() { caddy.RegisterModule(listener{}) }

// listener subscribes to events and records them.
type listener struct{}

var heard struct {
	sync.Mutex
	events []caddy.Event
}

func (listener) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "events.handlers.media_test", New: func() caddy.Module { return new(listener) }}
}

func (*listener) UnmarshalCaddyfile(*caddyfile.Dispenser) error { return nil }

func (*listener) Handle(_ context.Context, e caddy.Event) error {
	heard.Lock()
	defer heard.Unlock()
	heard.events = append(heard.events, e)
	return nil
}

var _ caddyevents.Handler = (*listener)(nil)

// listening are global options that subscribe to all events of the app.
const listening = `
events {
	on media_stored media_test
	on media_replaced media_test
	on media_deleted media_test
	on media_refused media_test
	on media_storage_health media_test
}
`

// eventsUpToNow returns the events since its last call: the name, and the data ordered by key.
func eventsUpToNow() []string {
	heard.Lock()
	defer heard.Unlock()
	all := make([]string, len(heard.events))
	for i, e := range heard.events {
		var data []string
		for name, value := range e.Data {
			if name != "since" && name != "full_path" && name != "webp" {
				data = append(data, fmt.Sprintf("%s=%v", name, value))
			}
		}
		slices.Sort(data)
		all[i] = e.Name() + ": " + strings.Join(data, " ")
	}
	heard.events = nil
	return all
}

// replacing is a storage that overwrites items, and its file alias.
const replacing = `storage over {
	driver local $ROOT-over
	overwrite_strategy overwrite
	sub_folder_format /
}
file_alias over {
	storage over
}
`

// onDefault are the aliases content for configurations with several storages.
const onDefault = "image_alias content {\nstorage default\nwebp\n}\nfile_alias content {\nstorage default\n}\n"

// TestChangesAreReported: every change of an item is an event and a line of the audit log, once,
// with actor and origin. The log is the documented one, in another file. Names are written
// unchanged, whatever they contain.
func TestChangesAreReported(t *testing.T) {
	const place, tricky = "/var/log/caddy/media-audit.log", "{env.HOME} a\"b.txt"
	block, written := pages.Example(t, "metrics.md", "caddyfile", "log audit {"), filepath.Join(site.TempFolder(t), "audit.log")
	if !strings.Contains(block, place) {
		t.Fatalf("the example has no %s:\n%s", place, block)
	}
	p := site.StartPanelConfig(t, site.Config{
		Media: site.Account + site.AtRoot + "sanitize off\n}\n" + replacing + onDefault, Site: site.PanelBlock, Log: "format json\nexclude media.audit\n",
		Global: "admin " + servers.FreeAddress(t) + listening + strings.ReplaceAll(block, place, written),
	})
	eventsUpToNow()
	header := site.Merged(p.Credentials(t), site.FormType)
	send := func(path string, header http.Header, parts ...site.Part) {
		t.Helper()
		p.Do(t, http.MethodPost, path, header, site.Form(parts...))
	}
	const (
		by, notPNG  = "account=site-one", "content is plain text, the name says .png"
		notAccepted = ".exe is not accepted; images may be gif, jpeg, jpg, png or svg; files of other kinds go to /api/upload/file"
	)
	lines := 0
	for _, tt := range []struct {
		what   string
		do     func()
		events []string
		audit  []map[string]any // what its lines have, among other fields
	}{
		{
			"stored", func() { send("/api/upload/file", header, site.File(tricky, "12"), site.File("b.txt", "3")) },
			[]string{
				"media_stored: " + by + " alias=content client=127.0.0.1 filename=" + tricky + " kind=file size=2 via=http",
				"media_stored: " + by + " alias=content client=127.0.0.1 filename=b.txt kind=file size=1 via=http",
			},
			[]map[string]any{{
				"action": "store", "kind": "file", "alias": "content", "filename": tricky, "via": "http", "account": site.APIKey,
				"client": "127.0.0.1", "size": 2.0, "result": "ok",
			}, {"action": "store", "filename": "b.txt", "result": "ok"}},
		},
		{
			"stored anew, then replaced", func() {
				send("/api/upload/file?alias=over", header, site.File("a.txt", "12"))
				send("/api/upload/file?alias=over", header, site.File("a.txt", "123"))
			},
			[]string{
				"media_stored: " + by + " alias=over client=127.0.0.1 filename=a.txt kind=file size=2 via=http",
				"media_replaced: " + by + " alias=over client=127.0.0.1 filename=a.txt kind=file size=3 via=http",
			},
			[]map[string]any{{"action": "store", "alias": "over"}, {"action": "replace", "alias": "over", "size": 3.0}},
		},
		{
			"refused for its content", func() { send("/api/upload/image", header, site.File("a.png", "no image"), site.File("b.exe", "x")) },
			[]string{
				"media_refused: " + by + " alias=content client=127.0.0.1 filename=a.png kind=img message=" + notPNG + " reason=bad_content via=http",
				"media_refused: " + by + " alias=content client=127.0.0.1 filename=b.exe kind=img message=" + notAccepted + " reason=bad_content via=http",
			},
			[]map[string]any{
				{"action": "store", "kind": "img", "filename": "a.png", "result": notPNG, "reason": "bad_content"},
				{"filename": "b.exe", "result": notAccepted, "reason": "bad_content"},
			},
		},
		{"refused without a token", func() { send("/api/upload/file", site.FormType, site.File("a.txt", "12")) }, nil, nil},
		{
			"stored in the panel", func() {
				p.Must(t, http.StatusOK, http.MethodPost, "upload/file", site.Form(site.File("c.txt", "12")), "Content-Type", site.FormType.Get("Content-Type"))
			},
			[]string{"media_stored: account=admin alias=content client=127.0.0.1 filename=c.txt kind=file size=2 via=panel"},
			[]map[string]any{{"via": "panel", "account": "admin", "filename": "c.txt"}},
		},
		{
			"deleted in the panel", func() { p.Must(t, http.StatusOK, http.MethodDelete, "items/file/content/b.txt", nil) },
			[]string{"media_deleted: account=admin alias=content client=127.0.0.1 filename=b.txt kind=file size=1 via=panel"},
			[]map[string]any{{"action": "delete", "via": "panel", "account": "admin", "size": 1.0, "result": "ok"}},
		},
		{
			"not there to be deleted", func() { p.Must(t, http.StatusNotFound, http.MethodDelete, "items/file/content/b.txt", nil) }, nil,
			[]map[string]any{{"action": "delete", "result": "there is no such item", "size": 0.0}},
		},
		{
			"at the admin endpoint", func() {
				address := "http://" + strings.Fields(p.Admin)[1]
				deleted, err := http.NewRequest(http.MethodDelete, address+"/media/items/file/over/b.txt", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				p.Send(t, site.AdminClient, deleted)
			}, nil,
			[]map[string]any{{"via": "admin", "account": "", "alias": "over", "result": "there is no such item"}},
		},
	} {
		tt.do()
		if got := eventsUpToNow(); !slices.Equal(got, tt.events) {
			t.Errorf("%s:\n%s\nwant\n%s", tt.what, strings.Join(got, "\n"), strings.Join(tt.events, "\n"))
		}
		got := logLines(t, written, "media.audit", lines+len(tt.audit))
		for i, want := range tt.audit {
			for name, value := range want {
				if line := got[lines+i]; line[name] != value {
					t.Errorf("%s: the line %v has %s %v, want %v", tt.what, line, name, line[name], value)
				}
			}
		}
		lines += len(tt.audit)
	}
	mustBeLikeDocs(t, logLines(t, written, "media.audit", lines)[0])
	if strings.Contains(p.Logged(t), "media.audit") {
		t.Error("the other log has the lines too")
	}
}

// TestConfigurationIsAudited: each change of the configuration in the panel is a line of the audit
// log and one of the last changes, with the names of the options, and without their values. A
// refused one, and one that changes nothing, is not.
func TestConfigurationIsAudited(t *testing.T) {
	const place = "/var/log/caddy/media-audit.log"
	block, written := pages.Example(t, "metrics.md", "caddyfile", "log audit {"), filepath.Join(site.TempFolder(t), "audit.log")
	p := site.StartPanelConfig(t, site.Config{
		Media: site.Account + site.AtRoot + "}\n" + replacing + onDefault, Site: site.PanelBlock,
		Global: "admin " + servers.FreeAddress(t) + "\n" + strings.ReplaceAll(block, place, written),
	})
	type value = map[string]any
	const route, account = "file_aliases/reports", "accounts/" + site.APIKey
	p.Put(t, http.StatusCreated, route, value{"value": value{"storage": "over"}})
	p.Put(t, http.StatusOK, route, value{"value": value{"storage": "default", "max_size": 1000}})
	p.Put(t, http.StatusOK, route, value{"value": value{"storage": "default", "max_size": 1000}})
	p.Put(t, http.StatusBadRequest, route, value{"value": value{"storage": "none"}})
	p.Put(t, http.StatusOK, account, value{"value": value{}, "new_password": true})
	p.Remove(t, http.StatusNoContent, route)
	want := []value{
		{"action": "add", "section": "file alias", "name": "reports", "options": ""},
		{"action": "change", "section": "file alias", "name": "reports", "options": "max_size, storage"},
		{"action": "change", "section": "account", "name": site.APIKey, "options": "password_hash"},
		{"action": "remove", "section": "file alias", "name": "reports", "options": ""},
	}
	var answer struct{ Changes []value }
	r := p.Must(t, http.StatusOK, http.MethodGet, "changes", nil)
	if err := json.Unmarshal([]byte(r.Body), &answer); err != nil {
		t.Fatal(err)
	}
	lines := logLines(t, written, "media.audit", len(want))
	if len(lines) != len(want) || len(answer.Changes) < len(want) {
		t.Fatalf("%v, and the changes %v", lines, answer.Changes)
	}
	for i, fields := range want {
		line, change := lines[i], answer.Changes[len(want)-1-i]
		if line["msg"] != "configuration" || line["via"] != "panel" || line["account"] != "admin" || line["client"] != "127.0.0.1" ||
			change["origin"] != "panel" || change["account"] != "admin" {
			t.Errorf("%v, and the change %v", line, change)
		}
		for name, value := range fields {
			if shown, _ := change[name].(string); line[name] != value || shown != value {
				t.Errorf("%s is %v and %v, want %v", name, line[name], change[name], value)
			}
		}
	}
}

// mustBeLikeDocs expects a line of the audit log to have the fields of the documented line.
func mustBeLikeDocs(t *testing.T, line map[string]any) {
	t.Helper()
	example := pages.Example(t, "metrics.md", "json", `{"level":"info"`)
	var fields map[string]any
	if err := json.Unmarshal([]byte(example), &fields); err != nil {
		t.Fatal(err)
	}
	got, want := slices.Sorted(maps.Keys(line)), slices.Sorted(maps.Keys(fields))
	if !slices.Equal(got, want) {
		t.Errorf("a line has %q, the documented one %q", got, want)
	}
}

// TestEventAddresses: an event has the addresses of the answer.
func TestEventAddresses(t *testing.T) {
	s := site.StartConfig(t, site.Config{Media: site.Account + site.LocalDefault + onDefault, Site: "media", Global: listening})
	eventsUpToNow()
	one := s.UploadImage(t, site.File("a.png", sample.PNG(t, 40, 30))).One(t)
	heard.Lock()
	defer heard.Unlock()
	if len(heard.events) != 1 {
		t.Fatalf("heard %v", heard.events)
	}
	if data := heard.events[0].Data; data["full_path"] != one.FullPath || data["webp"] != one.WebP || one.WebP == "" {
		t.Errorf("the event has %v, the answer %+v", data, one)
	}
}

// TestEventsOfHealthAfterReload: if a new configuration fixes a storage, its recovery is reported
// too.
func TestEventsOfHealthAfterReload(t *testing.T) {
	eventsUpToNow()
	s := site.StartConfig(t, withFrail(blockedFolder(t)))
	waitForEvent(t, observe.EventStorageHealth+": storage=frail usable=false")
	s.Load(t, withFrail(site.TempFolder(t)))
	waitForEvent(t, observe.EventStorageHealth+": storage=frail usable=true")
}

// blockedFolder returns a path with a file, where no folder can be created until the file is
// removed.
func blockedFolder(t *testing.T) string {
	t.Helper()
	blocked := site.TempFolder(t) + "/blocked"
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return blocked
}

// withFrail is a site with a storage that is checked often.
func withFrail(folder string) site.Config {
	return site.Config{
		Media: site.Account + "health_interval 20ms\n" + site.LocalDefault + "storage frail {\ndriver local " + folder + "\n}\n" + onDefault,
		Site:  "media", Global: listening,
	}
}

// waitForEvent waits for an event, which must be the only one.
func waitForEvent(t *testing.T, want string) {
	t.Helper()
	site.Eventually(t, want, func() bool {
		got := eventsUpToNow()
		if len(got) > 0 && !slices.Equal(got, []string{want}) {
			t.Fatalf("got %q, want %q once", got, want)
		}
		return len(got) == 1
	})
}

// TestDocsAccessLog extends the access log as documented, under another host and into another
// file. It contains no secrets.
func TestDocsAccessLog(t *testing.T) {
	block := pages.Example(t, "metrics.md", "caddyfile", "media.example.com {\n\tlog {")
	inner, ok := strings.CutPrefix(strings.TrimSpace(block), "media.example.com {")
	if !ok {
		t.Fatalf("the example is for another site:\n%s", block)
	}
	written := filepath.Join(site.TempFolder(t), "access.log")
	inner = strings.Replace(strings.TrimSuffix(inner, "}"), "/var/log/caddy/media-access.log", written, 1)
	s := site.Start(t, site.Account+site.AtRoot+"sanitize off\n}\nimage_alias content\nfile_alias content", inner+"\nrespond /other other")
	token := s.Credentials(t)
	const tricky = "{env.HOME}.txt"
	send := func(path string, parts ...site.Part) func() {
		return func() { s.Do(t, http.MethodPost, path, site.Merged(token, site.FormType), site.Form(parts...)) }
	}
	get := func(path string) func() { return func() { s.Get(t, path) } }
	for i, tt := range []struct {
		do   func()
		want [3]any
	}{
		{func() {}, [3]any{site.APIKey, nil, nil}}, // the token
		{send("/api/upload/file", site.File("a.txt", "1"), site.File(tricky, "2")), [3]any{site.APIKey, "file/content", []any{"a.txt", tricky}}},
		{get("/static/file/content/a.txt"), [3]any{nil, "file/content", []any{"a.txt"}}},
		{get("/static/img/content/none.png"), [3]any{nil, "img/content", []any{"none.png"}}},
		{send("/api/upload/image", site.File("a.png", "no image")), [3]any{site.APIKey, "img/content", nil}},
		{get("/other"), [3]any{nil, nil, nil}},
	} {
		tt.do()
		fields := logLines(t, written, "http.log.access.log0", i+1)[i] // it is written after the answer
		if got := [3]any{fields["account"], fields["alias"], fields["filenames"]}; !reflect.DeepEqual(got, tt.want) {
			t.Errorf("line %d: %q, want %q", i, got, tt.want)
		}
	}
	text, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	for name := range token {
		if strings.Contains(string(text), http.CanonicalHeaderKey(name)) {
			t.Errorf("the access log has the header %s:\n%s", name, text)
		}
	}
}

// logLines waits for n lines of a logger and returns them without the common fields.
func logLines(t *testing.T, file, logger string, n int) []map[string]any {
	t.Helper()
	var lines []map[string]any
	site.Eventually(t, logger+" has written", func() bool {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		lines = nil
		for line := range strings.Lines(string(text)) {
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				return false // it is being written
			}
			if fields["logger"] == logger {
				lines = append(lines, fields)
			}
		}
		return len(lines) >= n
	})
	if len(lines) != n {
		t.Fatalf("%s has %d lines, want %d:\n%v", logger, len(lines), n, lines)
	}
	return lines
}
