package integration

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

var saysDamaged = regexp.MustCompile(`damaged|cut|end is missing`)

// damagedPictures returns damaged pictures by name.
func damagedPictures(t *testing.T) map[string]string {
	t.Helper()
	whole := map[string]string{
		"jpg": asJPEG(t, photograph(200, 150), 80), "png": asPNG(t, photograph(200, 150)),
		"gif": paletteGIF(t, photograph(200, 150)), "moving.gif": movingGIF(t, 4),
	}
	damaged := map[string]string{
		"html.gif":       "GIF89a<html>",
		"signature.jpg":  "\xff\xd8\xff",
		"head.jpg":       whole["jpg"][:strings.Index(whole["jpg"], "\xff\xda")],
		"no-pixels.png":  whole["png"][:8+25] + pngChunk("IEND", ""),
		"signature.png":  whole["png"][:8],
		"no-frames.gif":  whole["gif"][:13] + ";",
		"zlib.png":       "",
		"zlib-cut.png":   "",
		"zlib-empty.png": "",
	}
	for name, content := range whole {
		for where, at := range map[string]int{
			"25": len(content) / 4, "50": len(content) / 2, "75": len(content) * 3 / 4, "end": len(content) - 2,
		} {
			damaged["cut-at-"+where+"."+name] = content[:at]
		}
	}
	var data string
	for _, c := range pngChunks(t, whole["png"]) {
		if c.name == "IDAT" {
			data += c.data
		}
	}
	middle := len(data) / 2
	for name, broken := range map[string]string{
		"zlib.png":       data[:middle] + strings.Repeat("\xff\x00\xa5", 50) + data[middle+150:],
		"zlib-cut.png":   data[:middle],
		"zlib-empty.png": "",
	} {
		damaged[name] = whole["png"][:8+25] + pngChunk("IDAT", broken) + pngChunk("IEND", "")
	}
	return damaged
}

// TestDamagedPictures: damaged pictures are refused with a reason, and nothing of them is stored.
func TestDamagedPictures(t *testing.T) {
	s := startSite(t, account+atRoot+"}\nimage_alias content {\nwebp\n}\nimage_alias plain\nimage_alias bare {\nstrip_metadata on\n}", "media")
	for name, content := range damagedPictures(t) {
		for _, alias := range []string{"content", "plain", "bare"} {
			t.Run(alias+" "+name, func(t *testing.T) {
				got := s.uploadImage(t, field("alias", alias), file(name, content)).failures(t, http.StatusUnsupportedMediaType)
				if len(got) != 1 || got[0].Filename != name || !saysDamaged.MatchString(got[0].Message) {
					t.Errorf("it is refused with %v, want words about damage", got)
				}
			})
		}
	}
	s.wantNothing(t)
	for _, bad := range []string{"panic", `"level":"error"`} {
		if strings.Contains(s.logged(t), bad) {
			t.Errorf("the log has %s", bad)
		}
	}
}

// TestTail: a script after a picture is not part of it. It is served as a picture, and stripping
// metadata removes it.
func TestTail(t *testing.T) {
	s := startSite(t, account+atRoot+"}\nimage_alias content {\nwebp\n}\nimage_alias plain\nimage_alias bare {\nstrip_metadata on\n}", "media")
	const script = "<?php system($_GET[0]); ?><script>alert(1)</script>"
	types := map[string]string{"jpg": "image/jpeg", "png": "image/png", "gif": "image/gif"}
	for ext, picture := range map[string]string{
		"jpg": jpegOf(t, 30, 20), "png": pngOf(t, 30, 20), "gif": movingGIF(t, 3),
	} {
		for alias, want := range map[string]string{"content": picture + script, "plain": picture + script, "bare": picture} {
			one := s.uploadImage(t, field("alias", alias), file("a."+ext, picture+script)).one(t)
			r := s.fetch(t, one.FullPath)
			if r.body != want || r.header.Get("Content-Type") != types[ext] || r.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s in %s: %d bytes, want %d; %v", ext, alias, len(r.body), len(want), r.header)
			}
			if alias == "content" && strings.Contains(s.variant(t, one), "php") {
				t.Errorf("%s: the variant has the script", ext)
			}
		}
	}
}

// TestBombs: small files that claim to be huge are handled at once.
func TestBombs(t *testing.T) {
	bombs := corpus(t, "bombs")
	if bombs == nil {
		t.Skip("no pictures that claim to be huge")
	}
	s := startSite(t, account+atRoot+"}\nimage_alias content {\nwebp\n}\nimage_alias bare {\nwebp\nstrip_metadata on\n}", "media")
	for name, content := range bombs {
		for _, alias := range []string{"content", "bare"} {
			begin := time.Now()
			r := s.uploadImage(t, field("alias", alias), file(name, content))
			took := time.Since(begin)
			t.Logf("%s: %d after %v", name, r.status, took)
			switch r.status {
			case http.StatusOK, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
			default:
				t.Errorf("%s: %d %s", name, r.status, r.body)
			}
		}
	}
}
