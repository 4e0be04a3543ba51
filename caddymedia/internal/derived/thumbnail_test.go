package derived_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/derived"
	"github.com/caddymedia/media/caddymedia/internal/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/item"
)

// thumbnail returns a request for the thumbnail of an image.
func thumbnail(alias *item.Alias, filename string, webp bool) *derived.RenditionRequest {
	r := item.Thumbnail
	if webp {
		r.Format = imaging.WebP
	}
	return &derived.RenditionRequest{Alias: alias, Rendition: &r, Filename: filename}
}

// TestThumbnail: a thumbnail is made once and stored beside the renditions, but is none of the alias. That of
// a replaced image is another one; the old one is outdated.
func TestThumbnail(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	m, painted := counting(render.Limits{}, func(context.Context) error { return nil })
	put(t, alias.Storage, "pics/a.png", pngOf(red))
	for range 3 {
		wantRendition(t, m, thumbnail(alias, "a.png", true), webpOf(red))
	}
	if n := painted.Load(); n != 2 { // lossy and lossless
		t.Errorf("it was painted %d times", n)
	}
	wantRenditions(t, alias, "pics@renditions/1/a.png/@thumbnail.webp")
	if _, ok := alias.Rendition(item.Thumbnail.Name); ok || alias.RenditionURLs("", "a.png")[item.Thumbnail.Name] != "" {
		t.Error("it has a public address")
	}
	wantOutdated(t, alias)
	replace(t, alias.Storage, "pics/a.png", pngOf(blue))
	wantRendition(t, m, thumbnail(alias, "a.png", true), webpOf(blue))
	wantOutdated(t, alias, "@thumbnail.webp")
}

// wantOutdated asserts the names of the outdated renditions of an alias.
func wantOutdated(t *testing.T, alias *item.Alias, want ...string) {
	t.Helper()
	var got []string
	for info, err := range derived.OutdatedRenditions(t.Context(), alias, noon.AddDate(100, 0, 0)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, hashes.ReplaceAllString(info.Key[strings.LastIndexByte(info.Key, '/')+1:], "."))
	}
	if !slices.Equal(got, want) {
		t.Errorf("outdated are %q, want %q", got, want)
	}
}

// TestThumbnailUnstored: where nothing can be stored, the thumbnail is made for each request. Nothing is
// read or written among the items of an alias without a folder for renditions.
func TestThumbnailUnstored(t *testing.T) {
	t.Parallel()
	readOnly := withRenditions(t, onMemory(t, func(op, key string) error {
		if op == "put" && strings.Contains(key, "@renditions") {
			return fmt.Errorf("read only: %w", fs.ErrPermission)
		}
		return nil
	}))
	root := withRenditions(t, onMemory(t, nil))
	root.Prefix = ""
	files := withRenditions(t, onMemory(t, nil))
	files.Kind = item.File
	for name, alias := range map[string]*item.Alias{"read only": readOnly, "no folder": root, "files": files} {
		put(t, alias.Storage, alias.Key("a.png"), pngOf(red))
		m := newMaker()
		for range 2 {
			_, err := opened(t, m, thumbnail(alias, "a.png", true))
			made, ok := errors.AsType[*derived.UnstoredError](err)
			if !ok || string(made.File) != webpOf(red) {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantContents(t, alias.Storage, map[string]string{alias.Key("a.png"): pngOf(red)})
	}
}

// TestThumbnailForms: a thumbnail is upright, fits the box and does not move. Without an encoder for
// WebP it has the format of its image.
func TestThumbnailForms(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	m := derivedtest.NewMaker(nil, render.Limits{})
	var photo, drawing, film bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewYCbCr(image.Rect(0, 0, 800, 600), image.YCbCrSubsampleRatio420), nil); err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(&drawing, image.NewNRGBA(image.Rect(0, 0, 400, 1000))); err != nil {
		t.Fatal(err)
	}
	frame := func(c color.Color) *image.Paletted {
		return image.NewPaletted(image.Rect(0, 0, 640, 320), color.Palette{c})
	}
	if err := gif.EncodeAll(&film, &gif.GIF{Image: []*image.Paletted{frame(red), frame(blue)}, Delay: []int{10, 10}}); err != nil {
		t.Fatal(err)
	}
	// An Exif segment with the orientation 6: shown turned to the right.
	const exif = "\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	turned := photo.String()[:2] + exif + photo.String()[2:]
	for _, c := range []struct {
		filename, content, kind string
		width, height           int
	}{
		{"form.jpg", photo.String(), "jpeg", 320, 240},
		{"turned.jpg", turned, "jpeg", 240, 320},
		{"form.png", drawing.String(), "png", 128, 320},
		{"form.gif", film.String(), "", 320, 160}, // of any still format
	} {
		put(t, alias.Storage, alias.Key(c.filename), c.content)
		got, err := opened(t, m, thumbnail(alias, c.filename, false))
		if err != nil {
			t.Errorf("%s: %v", c.filename, err)
			continue
		}
		img, kind, err := image.Decode(strings.NewReader(got))
		if err != nil || c.kind != "" && kind != c.kind || img.Bounds().Size() != image.Pt(c.width, c.height) {
			t.Errorf("%s: %s of %v, %v", c.filename, kind, img.Bounds(), err)
		}
		if c.filename == "form.gif" && color.NRGBAModel.Convert(img.At(9, 9)) != red {
			t.Errorf("the first frame is not shown, but %v", img.At(9, 9))
		}
	}
	put(t, alias.Storage, "pics/still.gif", film.String())
	wantRendition(t, newMaker(), thumbnail(alias, "still.gif", true), webpOf(red)) // its encoder makes no animation
}
