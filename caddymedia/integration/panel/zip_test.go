package panel_test

import (
	"archive/zip"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestPanelZip: a viewer downloads items of a private alias as a zip, also after a change of the
// configuration, and no other user can.
func TestPanelZip(t *testing.T) {
	p := site.StartPanel(t, site.Account+site.LocalDefault+"signing_key \"a key of thirty-two bytes, or more\"\nfile_alias papers {\nprivate\n}\n")
	want := map[string]string{}
	for _, name := range []string{"a.txt", "b.txt"} {
		stored := p.Must(t, http.StatusOK, http.MethodPost, "upload/file?alias=papers", site.Form(site.File(name, "text of "+name)), "Content-Type", site.FormType.Get("Content-Type")).One(t)
		want[stored.Filename] = "text of " + name
	}
	names := slices.AppendSeq([]string{"none.txt"}, maps.Keys(want))
	viewer := p.As("viewer")
	var answer struct {
		Address     string
		Size, Items int
		Missing     []string
	}
	viewer.Must(t, http.StatusOK, http.MethodPost, "zip", map[string]any{"kind": "file", "alias": "papers", "filenames": names}).Decode(t, &answer)
	if answer.Items != 2 || len(answer.Missing) != 1 {
		t.Errorf("%+v", answer)
	}
	address := strings.TrimPrefix(answer.Address, "api/")
	p.Put(t, http.StatusCreated, "file_aliases/other", map[string]any{"value": map[string]any{"prefix": "other"}})
	if r := viewer.Must(t, http.StatusOK, http.MethodHead, address, nil); r.Header.Get("Content-Length") != strconv.Itoa(answer.Size) {
		t.Errorf("HEAD: %v, want %d bytes", r.Header, answer.Size)
	}
	r := viewer.Must(t, http.StatusOK, http.MethodGet, address, nil)
	if len(r.Body) != answer.Size || r.Header.Get("Content-Type") != "application/zip" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d bytes, %v, want %d bytes", len(r.Body), r.Header, answer.Size)
	}
	reader, err := zip.NewReader(strings.NewReader(r.Body), int64(len(r.Body)))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range reader.File {
		content, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(content); err != nil || string(text) != want[file.Name] {
			t.Errorf("%s: %q, error %v", file.Name, text, err)
		}
	}
	p.Must(t, http.StatusNotFound, http.MethodGet, address, nil)
}
