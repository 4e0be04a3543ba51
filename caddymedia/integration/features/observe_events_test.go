package features_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/internal/observe"
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

// TestEvents: every change of an item is reported once, with actor and origin.
func TestEvents(t *testing.T) {
	p := site.StartPanelConfig(t, site.Config{
		Media: site.Account + site.AtRoot + "}\n" + replacing + onDefault, Site: site.PanelBlock, Global: "admin " + servers.FreeAddress(t) + listening,
	})
	eventsUpToNow()
	header := site.Merged(p.Credentials(t), site.FormType)
	send := func(path string, header http.Header, parts ...site.Part) {
		t.Helper()
		p.Do(t, http.MethodPost, path, header, site.Form(parts...))
	}
	const by = "account=site-one"
	for _, tt := range []struct {
		what string
		do   func()
		want []string
	}{
		{"stored", func() { send("/api/upload/file", header, site.File("a.txt", "12"), site.File("b.txt", "3")) }, []string{
			"media_stored: " + by + " alias=content client=127.0.0.1 filename=a.txt kind=file size=2 via=http",
			"media_stored: " + by + " alias=content client=127.0.0.1 filename=b.txt kind=file size=1 via=http",
		}},
		{"stored anew, then replaced", func() {
			send("/api/upload/file?alias=over", header, site.File("a.txt", "12"))
			send("/api/upload/file?alias=over", header, site.File("a.txt", "123"))
		}, []string{
			"media_stored: " + by + " alias=over client=127.0.0.1 filename=a.txt kind=file size=2 via=http",
			"media_replaced: " + by + " alias=over client=127.0.0.1 filename=a.txt kind=file size=3 via=http",
		}},
		{"refused for its content", func() { send("/api/upload/image", header, site.File("a.png", "no image"), site.File("b.exe", "x")) }, []string{
			"media_refused: " + by + " alias=content client=127.0.0.1 filename=a.png kind=img message=content is plain text, the name says .png reason=bad_content via=http",
			"media_refused: " + by + " alias=content client=127.0.0.1 filename=b.exe kind=img message=.exe is not accepted; images may be gif, jpeg, jpg, png or svg; files of other kinds go to /api/upload/file reason=bad_content via=http",
		}},
		{"refused without a token", func() { send("/api/upload/file", site.FormType, site.File("a.txt", "12")) }, nil},
		{"stored in the panel", func() {
			p.Must(t, http.StatusOK, http.MethodPost, "upload/file", site.Form(site.File("c.txt", "12")), "Content-Type", site.FormType.Get("Content-Type"))
		}, []string{"media_stored: account=admin alias=content client=127.0.0.1 filename=c.txt kind=file size=2 via=panel"}},
		{"deleted in the panel", func() { p.Must(t, http.StatusOK, http.MethodDelete, "items/file/content/a.txt", nil) }, []string{
			"media_deleted: account=admin alias=content client=127.0.0.1 filename=a.txt kind=file size=2 via=panel",
		}},
		{"not there to be deleted", func() { p.Must(t, http.StatusNotFound, http.MethodDelete, "items/file/content/a.txt", nil) }, nil},
	} {
		tt.do()
		if got := eventsUpToNow(); !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%s\nwant\n%s", tt.what, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
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
