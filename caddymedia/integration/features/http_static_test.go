package features_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestStaticCompressed: with encode around the service, a compressed item has another ETag. Both
// ETags are recognised.
func TestStaticCompressed(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"sanitize off\n}\nfile_alias content", "encode gzip\nmedia")
	text := strings.Repeat("some words, again and again\n", 1000)
	path := "/static/file/content/" + s.UploadFile(t, site.File("long.txt", text)).One(t).Filename
	plain, packed := s.Get(t, path), s.Get(t, path, "Accept-Encoding", "gzip")
	if plain.Body != text || packed.Header.Get("Content-Encoding") != "gzip" || len(packed.Body) >= len(text) {
		t.Fatalf("plain %d bytes, packed %d bytes: %v", len(plain.Body), len(packed.Body), packed.Header)
	}
	if plain.Header.Get("ETag") == packed.Header.Get("ETag") {
		t.Error("two representations have one ETag")
	}
	for _, header := range []http.Header{
		site.Headers("If-None-Match", packed.Header.Get("ETag"), "Accept-Encoding", "gzip"),
		site.Headers("If-None-Match", plain.Header.Get("ETag")),
	} {
		if r := s.Do(t, http.MethodGet, path, header, ""); r.Status != http.StatusNotModified {
			t.Errorf("asking again with %v: %d", header, r.Status)
		}
	}
	if r := s.Get(t, path, "Accept-Encoding", "gzip", "Range", "bytes=5-9"); r.Status != http.StatusPartialContent || r.Body != text[5:10] {
		t.Errorf("a range, compression accepted: %d %q", r.Status, r.Body)
	}
}
