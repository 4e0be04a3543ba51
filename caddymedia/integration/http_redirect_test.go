package integration

import (
	"net/http"
	"testing"
)

// TestRedirectToPublicAddress: clients are redirected to the storage, except for types such as
// HTML, which only this service serves safely.
func TestRedirectToPublicAddress(t *testing.T) {
	s := startSite(t, account+`
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
	text := s.uploadFile(t, file("Žluť 1.txt", "text")).one(t)
	page := s.uploadFile(t, file("page.html", "<p>text</p>")).one(t)
	picture := s.uploadImage(t, file("picture.jpg", drawnJPEG(64, 64))).one(t)
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
			path := tt.address[len(s.url):]
			if head := s.do(t, http.MethodHead, path, nil, ""); tt.status == http.StatusFound && head.status != http.StatusOK {
				t.Errorf("HEAD: status %d", head.status)
			}
			r := s.get(t, path, tt.header...)
			if r.status != tt.status || r.header.Get("Location") != tt.location || r.header.Get("Cache-Control") != tt.cache {
				t.Errorf("status %d to %q, Cache-Control %q", r.status, r.header.Get("Location"), r.header.Get("Cache-Control"))
			}
			if r.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", r.header)
			}
			if tt.address == picture.FullPath && r.header.Get("Vary") != "Accept" {
				t.Errorf("Vary %q", r.header.Get("Vary"))
			}
		})
	}
}
