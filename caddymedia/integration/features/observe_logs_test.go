package features_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

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

// TestDocsAudit writes the audit log as documented, into another file. Names are written
// unchanged, whatever they contain.
func TestDocsAudit(t *testing.T) {
	const place = "/var/log/caddy/media-audit.log"
	block := pages.Example(t, "metrics.md", "caddyfile", "log audit {")
	written := filepath.Join(site.TempFolder(t), "audit.log")
	if !strings.Contains(block, place) {
		t.Fatalf("the example has no %s:\n%s", place, block)
	}
	p := site.StartPanelConfig(t, site.Config{
		Media: site.Account + "storage default {\ndriver local $ROOT\nsub_folder_format /\nsanitize off\n}\n" + replacing + onDefault,
		Site:  site.PanelBlock, Log: "format json\nexclude media.audit\n", Global: "admin " + servers.FreeAddress(t) + "\n" + strings.ReplaceAll(block, place, written),
	})
	const tricky = "{env.HOME} a\"b.txt"
	p.UploadFile(t, site.File(tricky, "12")).One(t)
	p.Upload(t, "/api/upload/file?alias=over", site.File("a.txt", "12")).One(t)
	p.Upload(t, "/api/upload/file?alias=over", site.File("a.txt", "123")).One(t)
	p.UploadFile(t, site.File("a.exe", "12")).Failures(t, http.StatusUnsupportedMediaType)
	p.Do(t, http.MethodPost, "/api/upload/file", site.FormType, site.Form(site.File("a.txt", "12")))
	p.Must(t, http.StatusOK, http.MethodPut, "items/file/over/a.txt", "1234", "If-Match", "*")
	p.Must(t, http.StatusPreconditionRequired, http.MethodPut, "items/file/over/a.txt", "1234")
	p.Must(t, http.StatusOK, http.MethodDelete, "items/file/over/a.txt", nil)
	p.Must(t, http.StatusNotFound, http.MethodDelete, "items/file/over/a.txt", nil)
	urlencoded := []string{"Content-Type", "application/x-www-form-urlencoded"}
	p.Must(t, http.StatusOK, http.MethodPost, "items/file/content/"+url.PathEscape(tricky), "copy_to=a.txt&to_alias=over", urlencoded...)
	p.Must(t, http.StatusOK, http.MethodPost, "items/file/over/a.txt", "to=b.txt", urlencoded...)
	p.Must(t, http.StatusOK, http.MethodPost, "items/file/over", "action=delete&filename=b.txt&filename=c.txt", urlencoded...)
	adminAddress := "http://" + strings.Fields(p.Admin)[1]
	deleted, err := http.NewRequest(http.MethodDelete, adminAddress+"/media/items/file/over/b.txt", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	p.Send(t, site.AdminClient, deleted)

	line := func(action, alias, filename, via, account, result string, more ...any) map[string]any {
		fields := map[string]any{
			"action": action, "kind": "file", "alias": alias, "filename": filename,
			"via": via, "account": account, "client": "127.0.0.1", "result": result,
		}
		for i := 0; i < len(more); i += 2 {
			fields[more[i].(string)] = more[i+1]
		}
		return fields
	}
	set := line("delete", "over", "", "panel", "admin", "there is no such item", "folder", "", "number", 1.0)
	delete(set, "filename")
	refusedExe := ".exe is not accepted; files may be 7z, aac, avi, avif, bmp, bz2, csv, doc, docx, epub, flac, gif, gz, heic, " +
		"jpeg, jpg, json, m4a, m4v, md, mkv, mov, mp3, mp4, mpeg, mpg, odp, ods, odt, oga, ogg, ogv, opus, pdf, png, ppt, " +
		"pptx, rar, rtf, tar, tgz, tif, tiff, txt, wav, webm, webp, xls, xlsx, xml, xz or zip"
	want := []map[string]any{
		line("store", "content", tricky, "http", site.APIKey, "ok", "size", 2.0),
		line("store", "over", "a.txt", "http", site.APIKey, "ok", "size", 2.0),
		line("replace", "over", "a.txt", "http", site.APIKey, "ok", "size", 3.0),
		line("store", "content", "a.exe", "http", site.APIKey, refusedExe, "reason", "bad_content"),
		line("replace", "over", "a.txt", "panel", "admin", "ok", "size", 4.0),
		line("replace", "over", "a.txt", "panel", "admin",
			"the header If-Match is missing: send the entity tag of the item, or * for any", "reason", "bad_request"),
		line("delete", "over", "a.txt", "panel", "admin", "ok", "size", 4.0),
		line("delete", "over", "a.txt", "panel", "admin", "there is no such item", "size", 0.0),
		line("copy", "content", tricky, "panel", "admin", "ok", "size", 2.0, "to_alias", "over", "to", "a.txt"),
		line("move", "over", "a.txt", "panel", "admin", "ok", "size", 2.0, "to_alias", "over", "to", "b.txt"),
		set,
		line("delete", "over", "b.txt", "admin", "", "there is no such item", "size", 0.0),
	}
	got := logLines(t, written, "media.audit", len(want))
	mustBeLikeDocs(t, got[0])
	for i, fields := range got {
		for _, name := range []string{"level", "ts", "logger", "msg"} {
			delete(fields, name)
		}
		if !reflect.DeepEqual(fields, want[i]) {
			t.Errorf("line %d: %v\nwant %v", i, fields, want[i])
		}
	}
	if strings.Contains(p.Logged(t), "media.audit") {
		t.Error("the other log has the lines too")
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
