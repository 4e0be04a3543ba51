package pictures_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

var saysDamaged = regexp.MustCompile(`damaged|cut|end is missing`)

// damagedPictures returns damaged pictures by name.
func damagedPictures(t *testing.T) map[string]string {
	t.Helper()
	whole := map[string]string{
		"jpg": sample.EncodeJPEG(t, sample.Photo(200, 150), 80), "png": sample.EncodePNG(t, sample.Photo(200, 150)),
		"gif": sample.PaletteGIF(t, sample.Photo(200, 150)), "moving.gif": sample.MovingGIF(t, 4),
	}
	damaged := map[string]string{
		"html.gif":       "GIF89a<html>",
		"signature.jpg":  "\xff\xd8\xff",
		"head.jpg":       whole["jpg"][:strings.Index(whole["jpg"], "\xff\xda")],
		"no-pixels.png":  whole["png"][:8+25] + sample.PNGChunk("IEND", ""),
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
	for _, c := range sample.PNGChunks(t, whole["png"]) {
		if c.Name == "IDAT" {
			data += c.Data
		}
	}
	middle := len(data) / 2
	for name, broken := range map[string]string{
		"zlib.png":       data[:middle] + strings.Repeat("\xff\x00\xa5", 50) + data[middle+150:],
		"zlib-cut.png":   data[:middle],
		"zlib-empty.png": "",
	} {
		damaged[name] = whole["png"][:8+25] + sample.PNGChunk("IDAT", broken) + sample.PNGChunk("IEND", "")
	}
	return damaged
}

// TestDamagedPictures: damaged pictures are refused with a reason, and nothing of them is stored.
func TestDamagedPictures(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"}\nimage_alias content {\nwebp\n}\nimage_alias plain\nimage_alias bare {\nstrip_metadata on\n}", "media")
	for name, content := range damagedPictures(t) {
		for _, alias := range []string{"content", "plain", "bare"} {
			t.Run(alias+" "+name, func(t *testing.T) {
				got := s.UploadImage(t, site.Field("alias", alias), site.File(name, content)).Failures(t, http.StatusUnsupportedMediaType)
				if len(got) != 1 || got[0].Filename != name || !saysDamaged.MatchString(got[0].Message) {
					t.Errorf("it is refused with %v, want words about damage", got)
				}
			})
		}
	}
	s.WantNothing(t)
	for _, bad := range []string{"panic", `"level":"error"`} {
		if strings.Contains(s.Logged(t), bad) {
			t.Errorf("the log has %s", bad)
		}
	}
}

// TestTail: a script after a picture is not part of it. It is served as a picture, and stripping
// metadata removes it.
func TestTail(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"}\nimage_alias content {\nwebp\n}\nimage_alias plain\nimage_alias bare {\nstrip_metadata on\n}", "media")
	const script = "<?php system($_GET[0]); ?><script>alert(1)</script>"
	types := map[string]string{"jpg": "image/jpeg", "png": "image/png", "gif": "image/gif"}
	for ext, picture := range map[string]string{
		"jpg": sample.JPEG(t, 30, 20), "png": sample.PNG(t, 30, 20), "gif": sample.MovingGIF(t, 3),
	} {
		for alias, want := range map[string]string{"content": picture + script, "plain": picture + script, "bare": picture} {
			one := s.UploadImage(t, site.Field("alias", alias), site.File("a."+ext, picture+script)).One(t)
			r := s.Fetch(t, one.FullPath)
			if r.Body != want || r.Header.Get("Content-Type") != types[ext] || r.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s in %s: %d bytes, want %d; %v", ext, alias, len(r.Body), len(want), r.Header)
			}
			if alias == "content" && strings.Contains(fetchVariant(t, s, one), "php") {
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
	s := site.Start(t, site.Account+site.AtRoot+"}\nimage_alias content {\nwebp\n}\nimage_alias bare {\nwebp\nstrip_metadata on\n}", "media")
	for name, content := range bombs {
		for _, alias := range []string{"content", "bare"} {
			begin := time.Now()
			r := s.UploadImage(t, site.Field("alias", alias), site.File(name, content))
			took := time.Since(begin)
			t.Logf("%s: %d after %v", name, r.Status, took)
			switch r.Status {
			case http.StatusOK, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
			default:
				t.Errorf("%s: %d %s", name, r.Status, r.Body)
			}
		}
	}
}
