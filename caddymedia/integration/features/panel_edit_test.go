package features_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestPanelEditsFromNothing: without configuration, the implied defaults and their items stay when
// entries are added.
func TestPanelEditsFromNothing(t *testing.T) {
	p := site.StartPanel(t, site.Account)
	stored := p.UploadFile(t, site.File("first.txt", "the first")).One(t)
	for _, route := range []string{"storages/default", "image_aliases/content", "file_aliases/content"} {
		if e := p.Entry(t, route); !e.Implicit {
			t.Errorf("%s: %+v, want an implicit one", route, e)
		}
	}
	folder := filepath.Join(p.Root, "archive")
	p.Put(t, http.StatusCreated, "storages/archive", site.LocalStorage(folder))
	p.Put(t, http.StatusCreated, "image_aliases/photos", `{"value":{"storage":"archive","webp":{"quality":70},"max_size":9007199254740991}}`)
	p.Put(t, http.StatusCreated, "file_aliases/reports", `{"value":{"storage":"archive","extensions":["txt"]}}`)
	p.Put(t, http.StatusCreated, "accounts/two", `{"value":{"aliases":["reports"]},"new_password":true}`)
	for _, route := range []string{"storages/default", "image_aliases/content", "file_aliases/content"} {
		if e := p.Entry(t, route); e.Implicit {
			t.Errorf("%s is implicit", route)
		}
	}
	if r := p.Fetch(t, stored.FullPath); r.Body != "the first" {
		t.Errorf("the first item: %d %q", r.Status, r.Body)
	}
	p.UploadFile(t, site.Field("alias", "reports"), site.Field("sub_folder", "/"), site.File("a.txt", "x")).One(t)
	if got := site.Files(t, folder); len(got) != 1 {
		t.Errorf("the new storage has %d files, want 1", len(got))
	}
	if got := p.Entry(t, "image_aliases/photos").Value["max_size"]; got != float64(9007199254740991) {
		t.Errorf("max_size %v", got)
	}

	// Change the entry, and remove it.
	p.Put(t, http.StatusOK, "image_aliases/photos", `{"value":{"storage":"archive","svg":"off"}}`)
	want := map[string]any{"storage": "archive", "svg": "off"}
	if got := p.Entry(t, "image_aliases/photos").Value; !reflect.DeepEqual(got, want) {
		t.Errorf("changed to %v, want %v", got, want)
	}
	p.Put(t, http.StatusOK, "storages/archive", map[string]any{"value": map[string]any{
		"driver": map[string]any{"name": "local", "root": folder}, "sub_folder_format": "/",
	}})
	p.Put(t, http.StatusOK, "accounts/two", `{"value":{}}`)
	for _, route := range []string{"accounts/two", "image_aliases/photos", "file_aliases/reports", "storages/archive"} {
		p.Remove(t, http.StatusNoContent, route)
		p.Must(t, http.StatusNotFound, http.MethodGet, "config/"+route, nil)
	}
	if r := p.Fetch(t, stored.FullPath); r.Body != "the first" {
		t.Errorf("the first item at the end: %d %q", r.Status, r.Body)
	}
}

// TestPanelWithoutMedia: the panel works if the configuration does not have the media app.
func TestPanelWithoutMedia(t *testing.T) {
	p := site.StartPanel(t, "")
	if !strings.Contains(p.Running(t), "tokens") {
		t.Fatalf("the configuration is %s", p.Running(t))
	}
	address := strings.Fields(p.Admin)[1]
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+address+"/config/apps/media", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer := p.Send(t, site.AdminClient, r); answer.Status != http.StatusOK {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	p.AwaitSwitch(t)
	p.Put(t, http.StatusCreated, "storages/archive", site.LocalStorage(p.Root))
	if got := p.Running(t); !strings.Contains(got, `"archive"`) || !strings.Contains(got, `"default"`) {
		t.Errorf("the configuration is %s", got)
	}
}

// TestPanelStaleEdit: the second of two concurrent edits of an entry is refused, and its answer has
// the current state.
func TestPanelStaleEdit(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	p.Put(t, http.StatusCreated, "file_aliases/shared", `{"value":{"prefix":"one"}}`)
	first := p.Entry(t, "file_aliases/shared")
	const route = "config/file_aliases/shared"
	saved := p.Must(t, http.StatusOK, http.MethodPut, route, `{"value":{"prefix":"two"}}`, "If-Match", first.Tag)
	now := p.Entry(t, "file_aliases/shared")
	if now.Tag != saved.Header.Get("Etag") || now.Tag == first.Tag {
		t.Errorf("the tag is %s after %s, and was %s", now.Tag, saved.Header.Get("Etag"), first.Tag)
	}
	stale := map[string]*site.Reply{
		"a change":        p.Must(t, http.StatusPreconditionFailed, http.MethodPut, route, `{"value":{"prefix":"three"}}`, "If-Match", first.Tag),
		"an existing one": p.Must(t, http.StatusPreconditionFailed, http.MethodPut, route, `{"value":{"prefix":"three"}}`, "If-None-Match", "*"),
		"a removal":       p.Must(t, http.StatusPreconditionFailed, http.MethodDelete, route, nil, "If-Match", first.Tag),
	}
	for name, r := range stale {
		var answer struct {
			Error   string
			Current site.Entry
		}
		if err := json.Unmarshal([]byte(r.Body), &answer); err != nil || answer.Error == "" ||
			answer.Current.Value["prefix"] != "two" || r.Header.Get("Etag") != now.Tag {
			t.Errorf("%s: %s with the tag %s", name, r.Body, r.Header.Get("Etag"))
		}
	}
	p.Must(t, http.StatusPreconditionRequired, http.MethodPut, route, `{"value":{}}`)
	p.Must(t, http.StatusPreconditionRequired, http.MethodDelete, route, nil)
	p.Must(t, http.StatusNotFound, http.MethodPut, "config/file_aliases/gone", `{"value":{}}`, "If-Match", now.Tag)
	p.Must(t, http.StatusNotFound, http.MethodDelete, "config/file_aliases/gone", nil, "If-Match", now.Tag)
	if got := p.Entry(t, "file_aliases/shared"); got.Tag != now.Tag {
		t.Errorf("it was changed to %v", got.Value)
	}

	// Changes elsewhere do not conflict.
	p.Put(t, http.StatusCreated, "file_aliases/other", `{"value":{"prefix":"other"}}`)
	p.Must(t, http.StatusNoContent, http.MethodDelete, route, nil, "If-Match", now.Tag)
}

// TestPanelCompressed: an edit may use the ETag of a compressed answer, to which Caddy adds a
// suffix.
func TestPanelCompressed(t *testing.T) {
	p := site.StartPanelConfig(t, site.Config{Media: site.Basic, Site: "encode\n" + site.PanelBlock, Global: "admin " + servers.FreeAddress(t)})
	extensions, err := json.Marshal(strings.Fields(strings.Repeat("pdf txt ", 100)))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"value":{"extensions":` + string(extensions) + `}}`
	p.Put(t, http.StatusCreated, "file_aliases/long", body)
	tag := p.Must(t, http.StatusOK, http.MethodGet, "config/file_aliases/long", nil, "Accept-Encoding", "gzip").Header.Get("Etag")
	if !strings.Contains(tag, "gzip") {
		t.Fatalf("the tag is %s: nothing is compressed", tag)
	}
	p.Must(t, http.StatusNoContent, http.MethodDelete, "config/file_aliases/long", nil, "If-Match", tag)
}

// TestPanelBrokenEdit: the reason of a refusal by Caddy is reported. The old configuration
// continues to serve, including an upload in progress.
func TestPanelBrokenEdit(t *testing.T) {
	p := site.StartPanel(t, site.Basic)
	before := p.Running(t)
	content := strings.Repeat("x", 1<<20)
	body, head := site.Form(site.File("flight.txt", content)), make(chan struct{})
	reader, writer := io.Pipe()
	go func() {
		io.WriteString(writer, body[:len(body)/2])
		<-head
		io.WriteString(writer, body[len(body)/2:])
		writer.Close()
	}()
	flight := p.Request(t, http.MethodPost, "/api/upload/file", site.Merged(p.Credentials(t), site.FormType), reader)
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	landed := make(chan *site.Reply, 1)
	go func() { landed <- p.Send(t, client, flight) }()

	for _, c := range []struct{ route, body, want, option string }{
		{"storages/x", `{"value":{}}`, "driver", "driver.name"},
		{"storages/x", `{"value":{"driver":{"name":"none"}}}`, "none", "driver.name"},
		{"storages/x", `{"value":{"driver":{"name":"local"}}}`, "root", "driver.root"},
		{"storages/x", `{"value":{"driver":{"name":"local","rooot":"/x"}}}`, "rooot", "driver.rooot"},
		{"storages/x", `{"value":{"driver":{"name":"local","root":"{env.MEDIA_NOT_SET}"}}}`, "root", "driver.root"},
		{"storages/x", `{"value":{"driver":{"name":"local","root":"/x"},"overwrite_strategy":"maybe"}}`, "overwrite_strategy", "overwrite_strategy"},
		{"storages/x", `{"value":{"driver":{"name":"local","root":"/x"},"sub_folder_format":"../%Y"}}`, "sub_folder_format", "sub_folder_format"},
		{"storages/x", `{"value":{"driver":{"name":"local","root":7}}}`, "driver.root is a text", "driver.root"},
		{"storages/x", `{"value":{"driver":{"name":"ftp","timeout":"10"}}}`, "such as 30s", "driver.timeout"},
		{"storages/x", `{"value":{"driver":{"name":"s3","bucket":"b","region":"r","access_key_id":"x"}}}`, `storage "x": access_key_id and`, "driver.access_key_id"},
		{"storages/x", `{"value":{"driver":"local"}}`, "driver", "driver.name"},
		{"storages/x", `{"value":{"driver":{"name":"local","root":"/x"},"sanitize":"no"}}`, "sanitize is true or false", "sanitize"},
		{"image_aliases/x", `{"value":{"storage":"none"}}`, `no storage "none"`, "storage"},
		{"image_aliases/x", `{"value":{"prefix":"img/content"}}`, "overlaps", "prefix"},
		{"image_aliases/x", `{"value":{"prefix":"/"}}`, `prefix "/" overlaps`, "prefix"},
		{"image_aliases/x", `{"value":{"max_size":"32 MiB"}}`, "whole number of bytes", "max_size"},
		{"image_aliases/x", `{"value":{"webp":{"quality":101}}}`, "1 to 100", "webp.quality"},
		{"image_aliases/x", `{"value":{"webp":{"effort":"max"}}}`, "fast", "webp.effort"},
		{"image_aliases/x", `{"value":{"redirect":{"to":"public","lifetime":"1y"}}}`, "duration", "redirect.lifetime"},
		{"image_aliases/x", `{"value":{"renditions":{"a":{}}}}`, "width or height is missing", "renditions.a.width"},
		{"image_aliases/x", `{"value":{"renditions":{"b":{"width":5},"a":{"width":5,"quality":101}}}}`, "1 to 100", "renditions.a.quality"},
		{"image_aliases/x", `{"value":{"renditions":{"a":{"width":5,"fit":"fill"}}}}`, "contain, cover", "renditions.a.fit"},
		{"image_aliases/x", `{"value":{"renditions":{"a":{"width":"5"}}}}`, "whole number", "renditions.a.width"},
		{"image_aliases/x", `{"value":{"renditions":{"A":{"width":5}}}}`, "a-z", "renditions.A"},
		{"image_aliases/x", `{"value":{"prefix":"/","renditions":{"a":{"width":5}}}}`, "prefix other than /", "renditions"},
		{"image_aliases/x", `{"value":{"redirect":{}}}`, "presigned", "redirect.to"},
		{"file_aliases/x", `{"value":{"extensions":["php"]}}`, "php", "extensions"},
		{"file_aliases/x", `{"value":{"extensions":"pdf"}}`, "list", "extensions"},
		{"accounts/x", `{"value":{"aliases":["none"]},"new_password":true}`, "none", "aliases"},
		{"accounts/x", `{"new_password":true}`, "value", ""},
		{"accounts/x", `{"value":{}}`, "password_hash", "password_hash"},
		{"accounts/a%20b", `{"value":{},"new_password":true}`, "API key", ""},
		{"storages/UP", `{"value":{"driver":{"name":"local","root":"/x"}}}`, "name", ""},
		{"file_aliases/x", `{"value":{},"new_password":true}`, "password", ""},
		{"file_aliases/x", `{"value":`, "JSON", ""},
		{"file_aliases/x", `{"value":{}} {}`, "JSON", ""},
		{"file_aliases/x", `{"values":{}}`, "JSON", ""},
	} {
		r := p.Must(t, http.StatusBadRequest, http.MethodPut, "config/"+c.route, c.body, "If-None-Match", "*")
		var answer struct{ Error, Option string }
		r.Decode(t, &answer)
		if !strings.Contains(answer.Error, c.want) || answer.Option != c.option || strings.Contains(answer.Error, "provision") {
			t.Errorf("%s %s: %+v, want %q for %q", c.route, c.body, answer, c.want, c.option)
		}
	}
	p.Must(t, http.StatusNotFound, http.MethodPut, "config/limits/x", `{"value":{}}`, "If-None-Match", "*")
	p.Must(t, http.StatusMethodNotAllowed, http.MethodPost, "config/storages/x", `{"value":{}}`)
	p.Must(t, http.StatusRequestEntityTooLarge, http.MethodPut, "config/file_aliases/x",
		`{"value":{"prefix":"`+strings.Repeat("x", 1<<20)+`"}}`, "If-None-Match", "*")
	if after := p.Running(t); after != before {
		t.Errorf("the configuration was changed to %s", after)
	}
	p.UploadFile(t, site.File("beside.txt", "x")).One(t)

	// Successful changes do not interrupt the upload either.
	p.Put(t, http.StatusCreated, "file_aliases/new", `{"value":{"prefix":"new"}}`)
	p.Put(t, http.StatusOK, "storages/default", site.LocalStorage(filepath.Join(p.Root, "moved")))
	close(head)
	stored := (<-landed).One(t)
	if got := string(site.Files(t, p.Root)["file/content/"+stored.Filename]); got != content {
		t.Errorf("of the upload in flight %d bytes are stored, want %d", len(got), len(content))
	}
}
