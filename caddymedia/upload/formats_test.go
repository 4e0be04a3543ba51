package upload

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

const vector = `<svg xmlns="http://www.w3.org/2000/svg"/>`

// encoded returns a small image as JPEG, GIF or WebP.
func encoded(t testing.TB, ext string) string {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	var b bytes.Buffer
	var err error
	switch ext {
	case "jpg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, image.NewPaletted(img.Rect, color.Palette{color.Black}), nil)
	case "webp":
		var encoder webp.Encoder
		if encoder, err = webp.New(); err == nil {
			var file []byte
			file, err = encoder.Encode(t.Context(), img, webp.Options{Lossless: true})
			b.Write(file)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWebPItems(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			alias := imageAlias(t, s)
			alias.Extensions["webp"], alias.Overwrite, alias.Sanitize = true, true, false
			u := newUploader(alias)
			w := watch(u)
			webp := encoded(t, "webp")
			for _, name := range []string{"a.webp", "a.webp.webp", "b.svg.webp", "a.webp"} {
				items, failures := uploadImages(t, u, file(name, webp))
				if failures != nil || items[0].Filename != name || items[0].WebP != "" {
					t.Fatalf("%s: %+v, %v", name, items, failures)
				}
			}
			if len(w.variants) != 0 {
				t.Errorf("variants: %v", w.variants)
			}
			wantContents(t, s, map[string]string{"a.webp": webp, "a.webp.webp": webp, "b.svg.webp": webp})
			if _, err := u.Derived.Renew(t.Context(), alias, "a.webp", true); err == nil {
				t.Error("a variant of a WebP was made")
			}
			if err := u.Delete(t.Context(), alias, "a.webp", aliases.Actor{}); err != nil {
				t.Fatal(err)
			}
			wantContents(t, s, map[string]string{"a.webp.webp": webp, "b.svg.webp": webp})
			if alias.IsVariant("a.webp.webp") || alias.MayHaveVariant("a.webp") || !alias.IsVariant("a.png.webp") {
				t.Error("a WebP is taken for an image with a variant, or for a variant")
			}
		})
	}
}

func TestRefusedWebPItems(t *testing.T) {
	t.Parallel()
	webp := encoded(t, "webp")
	for _, c := range []struct {
		name, content string
		reason        aliases.Reason
		message       string
	}{
		{"a.png.webp", webp, aliases.BadRequest, `"a.png.webp" is the name of a variant`},
		{"a.JPG.webp", webp, aliases.BadRequest, `"a.JPG.webp" is the name of a variant`},
		{"a.webp", pngOf(red), aliases.BadContent, "content is PNG, the name says .webp"},
		{"a.png", webp, aliases.BadContent, "content is WebP, the name says .png"},
		{"a.webp", webp[:len(webp)-4], aliases.BadContent, "its end is missing"},
		{"a.webp", strings.Replace(webp, "VP8L", "VP8 ", 1), aliases.BadContent, "damaged"},
		{"a.avif", webp, aliases.BadContent, ".avif is not accepted"},
	} {
		s := onMemory(t, nil)
		alias := imageAlias(t, s)
		alias.Extensions["webp"], alias.Sanitize = true, false
		_, failures := uploadImages(t, newUploader(alias), file(c.name, c.content))
		wantFailure(t, failures, c.reason, c.name, c.message)
		wantContents(t, s, nil)
	}
}

// TestDamagedWebP: a WebP is decoded, although it gets no variant.
func TestDamagedWebP(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := imageAlias(t, s)
	alias.Extensions["webp"] = true
	damaged := []byte(encoded(t, "webp"))
	copy(damaged[25:], "nonsense")
	_, failures := uploadImages(t, newUploader(alias), file("a.webp", string(damaged)))
	wantFailure(t, failures, aliases.BadContent, "a.webp", "damaged: not all of it can be decoded")
}

func TestStripMetadataOfWebP(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := imageAlias(t, s)
	alias.Extensions["webp"], alias.Imaging.Strip = true, imaging.StripOn
	webp := encoded(t, "webp")
	if _, failures := uploadImages(t, newUploader(alias), file("a.webp", webp+"<?php")); failures != nil {
		t.Fatal(failures)
	}
	wantContents(t, s, map[string]string{"a.webp": webp})
}

func TestRenameMismatched(t *testing.T) {
	t.Parallel()
	png, jpg, webp := pngOf(red), encoded(t, "jpg"), encoded(t, "webp")
	for _, c := range []struct {
		submitted, content, want string
		keepName                 bool
	}{
		{"a.png", png, "a.png", false},
		{"a.jpeg", jpg, "a.jpeg", false},
		{"a.png", jpg, "a.jpg", false},
		{"a.JPG", png, "a.png", false},
		{"A.JPG", png, "A.png", true},
		{"A.JPG.JPG", png, "A.JPG.png", true},
		{"a.JPG", jpg, "a.JPG", true},
		{"a.G\u0130F", png, "a.png", true}, // "gif" in lower case, and shorter
		{"Foto č. 1.jpg ", png, "foto-c-1.png", false},
		{"a.jpg", webp, "a.webp", false},
		{"a.webp", png, "a.png", false},
		{"a.png", vector, "a.svg", false},
		{"a.svg", png, "a.png", false},
	} {
		s := onMemory(t, nil)
		alias := imageAlias(t, s)
		alias.Extensions["webp"], alias.Extensions["jpeg"], alias.Extensions["gif"] = true, true, true
		alias.RenameMismatched, alias.Sanitize = true, !c.keepName
		items, failures := uploadImages(t, newUploader(alias), file(c.submitted, c.content))
		if failures != nil || items[0].Filename != c.want {
			t.Errorf("%s: %v, %v, want %s", c.submitted, filenames(items), failures, c.want)
			continue
		}
		if got := contents(t, s)[c.want]; got != c.content {
			t.Errorf("%s holds %.20q", c.want, got)
		}
	}
}

func TestRenameMismatchedRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 196)
	for _, c := range []struct {
		submitted, content string
		reason             aliases.Reason
		message            string
	}{
		{"a.png", encoded(t, "gif"), aliases.BadContent, "content is GIF, the name says .png"},
		{"a.bmp", pngOf(red), aliases.BadContent, ".bmp is not accepted"},
		{"a.png", "hello", aliases.BadContent, "content is plain text, the name says .png"},
		{"a.png", encoded(t, "jpg")[:99], aliases.BadContent, "JPEG picture or is damaged"},
		{"a.png", strings.Replace(vector, "/>", "><script/></svg>", 1), aliases.BadContent, "script"},
		{"a.jpg.png", encoded(t, "webp"), aliases.BadRequest, `"a.jpg.webp" is the name of a variant`},
		{long + ".png", encoded(t, "webp"), aliases.BadRequest, "longer than 200 bytes"},
	} {
		s := onMemory(t, nil)
		alias := imageAlias(t, s)
		alias.Extensions["webp"], alias.RenameMismatched, alias.Sanitize = true, true, false
		_, failures := uploadImages(t, newUploader(alias), file(c.submitted, c.content))
		wantFailure(t, failures, c.reason, c.submitted, c.message)
		wantContents(t, s, nil)
	}
}

// TestRenamedDuplicates: under Overwrite, two names of a request may become one.
func TestRenamedDuplicates(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := imageAlias(t, s)
	alias.RenameMismatched, alias.Overwrite = true, true
	_, failures := uploadImages(t, newUploader(alias), file("a.png", pngOf(red)), file("a.jpg", pngOf(blue)))
	wantFailure(t, failures, aliases.Conflict, "a.png", "the same name")
}

// TestVariantOfFile: in an alias of files, no name is that of a variant.
func TestVariantOfFile(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := newAlias(t, aliases.DefaultAlias, s)
	alias.Extensions["webp"], alias.Extensions["png"], alias.Sanitize = true, true, false
	u := newUploader(alias)
	if _, failures := uploadForm(t, u, file("a.png.webp", encoded(t, "webp"))); failures != nil {
		t.Fatal(failures)
	}
	if err := u.Delete(t.Context(), alias, "a.png", aliases.Actor{}); err == nil || !strings.Contains(err.Error(), fs.ErrNotExist.Error()) {
		t.Errorf("got %v", err)
	}
}

// TestUndecodedImages: an AVIF or HEIC has no variant. Its metadata becomes zeros.
func TestUndecodedImages(t *testing.T) {
	t.Parallel()
	for submitted, want := range map[string]string{"photo.heic": "photo.heic", "turned.avif": "turned.avif", "photo.jpg": "photo.heic"} {
		data, err := os.ReadFile(filepath.Join("../imaging/testdata", want))
		if err != nil {
			t.Fatal(err)
		}
		s := onMemory(t, nil)
		alias := imageAlias(t, s)
		alias.Extensions["heic"], alias.Extensions["avif"] = true, true
		alias.RenameMismatched, alias.Imaging.Strip = true, imaging.StripOn
		items, failures := uploadImages(t, newUploader(alias), file(submitted, string(data)))
		if failures != nil || items[0].Filename != want || items[0].WebP != "" {
			t.Errorf("%s: %+v, %v", submitted, items, failures)
			continue
		}
		stored := contents(t, s)
		if got := stored[want]; len(stored) != 1 || len(got) != len(data) || strings.Contains(got, "GPS") || got[:32] != string(data[:32]) {
			t.Errorf("%s: %d objects, %d bytes", submitted, len(stored), len(got))
		}
	}
}
