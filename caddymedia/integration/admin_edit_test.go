package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestPanelEditsFromNothing: without configuration, the implied defaults and their items stay when
// entries are added.
func TestPanelEditsFromNothing(t *testing.T) {
	p := startPanel(t, account)
	stored := p.uploadFile(t, file("first.txt", "the first")).one(t)
	for _, route := range []string{"storages/default", "image_aliases/content", "file_aliases/content"} {
		if e := p.entry(t, route); !e.Implicit {
			t.Errorf("%s: %+v, want an implicit one", route, e)
		}
	}
	folder := filepath.Join(p.root, "archive")
	p.put(t, http.StatusCreated, "storages/archive", local(folder))
	p.put(t, http.StatusCreated, "image_aliases/photos", `{"value":{"storage":"archive","webp":{"quality":70},"max_size":9007199254740991}}`)
	p.put(t, http.StatusCreated, "file_aliases/reports", `{"value":{"storage":"archive","extensions":["txt"]}}`)
	p.put(t, http.StatusCreated, "accounts/two", `{"value":{"aliases":["reports"]},"new_password":true}`)
	for _, route := range []string{"storages/default", "image_aliases/content", "file_aliases/content"} {
		if e := p.entry(t, route); e.Implicit {
			t.Errorf("%s is implicit", route)
		}
	}
	if r := p.fetch(t, stored.FullPath); r.body != "the first" {
		t.Errorf("the first item: %d %q", r.status, r.body)
	}
	p.uploadFile(t, field("alias", "reports"), field("sub_folder", "/"), file("a.txt", "x")).one(t)
	if got := files(t, folder); len(got) != 1 {
		t.Errorf("the new storage has %d files, want 1", len(got))
	}
	if got := p.entry(t, "image_aliases/photos").Value["max_size"]; got != float64(9007199254740991) {
		t.Errorf("max_size %v", got)
	}

	// Change the entry, and remove it.
	p.put(t, http.StatusOK, "image_aliases/photos", `{"value":{"storage":"archive","svg":"off"}}`)
	want := map[string]any{"storage": "archive", "svg": "off"}
	if got := p.entry(t, "image_aliases/photos").Value; !reflect.DeepEqual(got, want) {
		t.Errorf("changed to %v, want %v", got, want)
	}
	p.put(t, http.StatusOK, "storages/archive", map[string]any{"value": map[string]any{
		"driver": map[string]any{"name": "local", "root": folder}, "sub_folder_format": "/",
	}})
	p.put(t, http.StatusOK, "accounts/two", `{"value":{}}`)
	for _, route := range []string{"accounts/two", "image_aliases/photos", "file_aliases/reports", "storages/archive"} {
		p.remove(t, http.StatusNoContent, route)
		p.must(t, http.StatusNotFound, http.MethodGet, "config/"+route, nil)
	}
	if r := p.fetch(t, stored.FullPath); r.body != "the first" {
		t.Errorf("the first item at the end: %d %q", r.status, r.body)
	}
}

// TestPanelWithoutMedia: the panel works if the configuration does not have the media app.
func TestPanelWithoutMedia(t *testing.T) {
	p := startPanel(t, "")
	if !strings.Contains(p.running(t), "tokens") {
		t.Fatalf("the configuration is %s", p.running(t))
	}
	address := strings.Fields(p.admin)[1]
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://"+address+"/config/apps/media", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer := p.send(t, adminClient, r); answer.status != http.StatusOK {
		t.Fatalf("%d %s", answer.status, answer.body)
	}
	p.awaitSwitch(t)
	p.put(t, http.StatusCreated, "storages/archive", local(p.root))
	if got := p.running(t); !strings.Contains(got, `"archive"`) || !strings.Contains(got, `"default"`) {
		t.Errorf("the configuration is %s", got)
	}
}

// TestPanelStaleEdit: the second of two concurrent edits of an entry is refused, and its answer has
// the current state.
func TestPanelStaleEdit(t *testing.T) {
	p := startPanel(t, basic)
	p.put(t, http.StatusCreated, "file_aliases/shared", `{"value":{"prefix":"one"}}`)
	first := p.entry(t, "file_aliases/shared")
	const route = "config/file_aliases/shared"
	saved := p.must(t, http.StatusOK, http.MethodPut, route, `{"value":{"prefix":"two"}}`, "If-Match", first.tag)
	now := p.entry(t, "file_aliases/shared")
	if now.tag != saved.header.Get("Etag") || now.tag == first.tag {
		t.Errorf("the tag is %s after %s, and was %s", now.tag, saved.header.Get("Etag"), first.tag)
	}
	stale := map[string]*reply{
		"a change":        p.must(t, http.StatusPreconditionFailed, http.MethodPut, route, `{"value":{"prefix":"three"}}`, "If-Match", first.tag),
		"an existing one": p.must(t, http.StatusPreconditionFailed, http.MethodPut, route, `{"value":{"prefix":"three"}}`, "If-None-Match", "*"),
		"a removal":       p.must(t, http.StatusPreconditionFailed, http.MethodDelete, route, nil, "If-Match", first.tag),
	}
	for name, r := range stale {
		var answer struct {
			Error   string
			Current entry
		}
		if err := json.Unmarshal([]byte(r.body), &answer); err != nil || answer.Error == "" ||
			answer.Current.Value["prefix"] != "two" || r.header.Get("Etag") != now.tag {
			t.Errorf("%s: %s with the tag %s", name, r.body, r.header.Get("Etag"))
		}
	}
	p.must(t, http.StatusPreconditionRequired, http.MethodPut, route, `{"value":{}}`)
	p.must(t, http.StatusPreconditionRequired, http.MethodDelete, route, nil)
	p.must(t, http.StatusNotFound, http.MethodPut, "config/file_aliases/gone", `{"value":{}}`, "If-Match", now.tag)
	p.must(t, http.StatusNotFound, http.MethodDelete, "config/file_aliases/gone", nil, "If-Match", now.tag)
	if got := p.entry(t, "file_aliases/shared"); got.tag != now.tag {
		t.Errorf("it was changed to %v", got.Value)
	}

	// Changes elsewhere do not conflict.
	p.put(t, http.StatusCreated, "file_aliases/other", `{"value":{"prefix":"other"}}`)
	p.must(t, http.StatusNoContent, http.MethodDelete, route, nil, "If-Match", now.tag)
}

// TestPanelKeepsGroups: an empty group, which stands for its defaults, stays when another option is
// changed.
func TestPanelKeepsGroups(t *testing.T) {
	p := startPanel(t, account+"image_alias photos {\nwebp\n}\n")
	value := p.entry(t, "image_aliases/photos").Value
	value["svg"] = "off"
	p.put(t, http.StatusOK, "image_aliases/photos", map[string]any{"value": value})
	want := map[string]any{"svg": "off", "webp": map[string]any{}}
	if got := p.entry(t, "image_aliases/photos").Value; !reflect.DeepEqual(got, want) {
		t.Errorf("changed to %v, want %v", got, want)
	}
}

// TestPanelCompressed: an edit may use the ETag of a compressed answer, to which Caddy adds a
// suffix.
func TestPanelCompressed(t *testing.T) {
	p := startPanelConfig(t, siteConfig{Media: basic, Site: "encode\n" + panelBlock, Global: "admin " + servers.FreeAddress(t)})
	extensions, err := json.Marshal(strings.Fields(strings.Repeat("pdf txt ", 100)))
	if err != nil {
		t.Fatal(err)
	}
	body := `{"value":{"extensions":` + string(extensions) + `}}`
	p.put(t, http.StatusCreated, "file_aliases/long", body)
	tag := p.must(t, http.StatusOK, http.MethodGet, "config/file_aliases/long", nil, "Accept-Encoding", "gzip").header.Get("Etag")
	if !strings.Contains(tag, "gzip") {
		t.Fatalf("the tag is %s: nothing is compressed", tag)
	}
	p.must(t, http.StatusNoContent, http.MethodDelete, "config/file_aliases/long", nil, "If-Match", tag)
}

// TestPanelBrokenEdit: the reason of a refusal by Caddy is reported. The old configuration
// continues to serve, including an upload in progress.
func TestPanelBrokenEdit(t *testing.T) {
	p := startPanel(t, basic)
	before := p.running(t)
	content := strings.Repeat("x", 1<<20)
	body, head := form(file("flight.txt", content)), make(chan struct{})
	reader, writer := io.Pipe()
	go func() {
		io.WriteString(writer, body[:len(body)/2])
		<-head
		io.WriteString(writer, body[len(body)/2:])
		writer.Close()
	}()
	flight := p.request(t, http.MethodPost, "/api/upload/file", merged(p.credentials(t), formType), reader)
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	landed := make(chan *reply, 1)
	go func() { landed <- p.send(t, client, flight) }()

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
		r := p.must(t, http.StatusBadRequest, http.MethodPut, "config/"+c.route, c.body, "If-None-Match", "*")
		var answer struct{ Error, Option string }
		r.decode(t, &answer)
		if !strings.Contains(answer.Error, c.want) || answer.Option != c.option || strings.Contains(answer.Error, "provision") {
			t.Errorf("%s %s: %+v, want %q for %q", c.route, c.body, answer, c.want, c.option)
		}
	}
	p.must(t, http.StatusNotFound, http.MethodPut, "config/limits/x", `{"value":{}}`, "If-None-Match", "*")
	p.must(t, http.StatusMethodNotAllowed, http.MethodPost, "config/storages/x", `{"value":{}}`)
	p.must(t, http.StatusRequestEntityTooLarge, http.MethodPut, "config/file_aliases/x",
		`{"value":{"prefix":"`+strings.Repeat("x", 1<<20)+`"}}`, "If-None-Match", "*")
	if after := p.running(t); after != before {
		t.Errorf("the configuration was changed to %s", after)
	}
	p.uploadFile(t, file("beside.txt", "x")).one(t)

	// Successful changes do not interrupt the upload either.
	p.put(t, http.StatusCreated, "file_aliases/new", `{"value":{"prefix":"new"}}`)
	p.put(t, http.StatusOK, "storages/default", local(filepath.Join(p.root, "moved")))
	close(head)
	stored := (<-landed).one(t)
	if got := string(files(t, p.root)["file/content/"+stored.Filename]); got != content {
		t.Errorf("of the upload in flight %d bytes are stored, want %d", len(got), len(content))
	}
}

// TestPanelPinsStorages: an alias without a named storage keeps its storage when another one is
// added.
func TestPanelPinsStorages(t *testing.T) {
	p := startPanel(t, account+"storage only {\ndriver local $ROOT\n}\nfile_alias content\nfile_alias docs {\nprefix docs\n}\n")
	stored := p.uploadFile(t, file("a.txt", "kept")).one(t)
	p.put(t, http.StatusCreated, "storages/second", local(filepath.Join(p.root, "second")))
	if got := p.entry(t, "file_aliases/docs").Value["storage"]; got != "only" {
		t.Errorf("the storage of docs is %v", got)
	}
	if r := p.fetch(t, stored.FullPath); r.body != "kept" {
		t.Errorf("the item: %d %q", r.status, r.body)
	}
	p.put(t, http.StatusOK, "file_aliases/docs", `{"value":{"prefix":"docs","storage":"second"}}`)
	r := p.remove(t, http.StatusConflict, "storages/second")
	var answer struct {
		Error  string
		UsedBy []struct{ Kind, Alias string } `json:"used_by"`
	}
	r.decode(t, &answer)
	if answer.Error != `storage "second" is used by the file alias docs` || len(answer.UsedBy) != 1 ||
		answer.UsedBy[0].Kind != "file" || answer.UsedBy[0].Alias != "docs" {
		t.Errorf("%+v", answer)
	}
	p.put(t, http.StatusOK, "accounts/"+apiKey, `{"value":{"aliases":["docs"]}}`)
	if r := p.remove(t, http.StatusConflict, "file_aliases/docs"); !strings.Contains(r.body, "the account "+apiKey) {
		t.Errorf("an alias of an account: %s", r.body)
	}
}
