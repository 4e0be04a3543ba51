package http_test

import (
	"net/http"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestRedirectToPublicAddress: clients are redirected to the storage, except for types such as
// HTML, which only this service serves safely.
func TestRedirectToPublicAddress(t *testing.T) {
	s := site.Start(t, site.Account+`
storage default {
	driver local $ROOT
	sanitize off
	sub_folder_format /
}
file_alias content {
	prefix up/loads
	extensions txt html
	redirect public https://bucket.example.com/media/ 1m
}
image_alias content {
	webp
	negotiate on
	redirect public https://bucket.example.com
}`, "media")
	text := s.UploadFile(t, site.File("Žluť 1.txt", "text")).One(t)
	page := s.UploadFile(t, site.File("page.html", "<p>text</p>")).One(t)
	picture := s.UploadImage(t, site.File("picture.jpg", sample.PhotoJPEG(64, 64))).One(t)
	for name, tt := range map[string]struct {
		address  string
		header   []string
		status   int
		location string
		cache    string
	}{
		"file": {
			text.FullPath, nil, http.StatusFound,
			"https://bucket.example.com/media/up/loads/%C5%BDlu%C5%A5%201.txt", "private, max-age=30",
		},
		"asked for again": {
			text.FullPath,
			[]string{"If-None-Match", "*"},
			http.StatusFound,
			"https://bucket.example.com/media/up/loads/%C5%BDlu%C5%A5%201.txt", "private, max-age=30",
		},
		"page":    {page.FullPath, nil, http.StatusOK, "", "public, max-age=31536000, immutable"},
		"missing": {text.FullPath + "x", nil, http.StatusNotFound, "", ""},
		"picture": {
			picture.FullPath, nil, http.StatusFound,
			"https://bucket.example.com/img/content/picture.jpg", "private, max-age=1800",
		},
		"picture for who takes WebP": {
			picture.FullPath,
			[]string{"Accept", "image/webp"},
			http.StatusFound,
			"https://bucket.example.com/img/content/picture.jpg.webp", "private, max-age=1800",
		},
		"variant": {
			picture.WebP, nil, http.StatusFound,
			"https://bucket.example.com/img/content/picture.jpg.webp", "private, max-age=1800",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := tt.address[len(s.URL):]
			if head := s.Do(t, http.MethodHead, path, nil, ""); tt.status == http.StatusFound && head.Status != http.StatusOK {
				t.Errorf("HEAD: status %d", head.Status)
			}
			r := s.Get(t, path, tt.header...)
			if r.Status != tt.status || r.Header.Get("Location") != tt.location || r.Header.Get("Cache-Control") != tt.cache {
				t.Errorf("status %d to %q, Cache-Control %q", r.Status, r.Header.Get("Location"), r.Header.Get("Cache-Control"))
			}
			if r.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", r.Header)
			}
			if tt.address == picture.FullPath && r.Header.Get("Vary") != "Accept" {
				t.Errorf("Vary %q", r.Header.Get("Vary"))
			}
		})
	}
}
