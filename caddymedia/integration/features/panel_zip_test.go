package features_test

import (
	"archive/zip"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestPanelZip: a viewer downloads items of a private alias as a zip.
func TestPanelZip(t *testing.T) {
	p := site.StartPanel(t, site.Account+site.LocalDefault+"signing_key \"a key of thirty-two bytes, or more\"\nfile_alias papers {\nprivate\n}\n")
	want, form := map[string]string{}, url.Values{}
	for _, name := range []string{"a.txt", "b.txt"} {
		stored := p.Must(t, http.StatusOK, http.MethodPost, "upload/file?alias=papers", site.Form(site.File(name, "text of "+name)), "Content-Type", site.FormType.Get("Content-Type")).One(t)
		want[stored.Filename] = "text of " + name
		form.Add("filename", stored.Filename)
	}
	r := p.As("viewer").Must(t, http.StatusOK, http.MethodPost, "zip/file/papers", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	if r.Header.Get("Content-Length") != strconv.Itoa(len(r.Body)) || r.Header.Get("Content-Type") != "application/zip" || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d bytes, %v", len(r.Body), r.Header)
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
}
