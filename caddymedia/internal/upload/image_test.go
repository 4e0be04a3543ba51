package upload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image/color"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/item"
)

// withText adds a text to a PNG, after its header.
func withText(file, text string) string {
	chunk := []byte("tEXtComment\x00" + text)
	whole := binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4))
	whole = binary.BigEndian.AppendUint32(append(whole, chunk...), crc32.ChecksumIEEE(chunk))
	return file[:33] + string(whole) + file[33:]
}

func TestVariants(t *testing.T) {
	t.Parallel()
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			u := newUploader(imageAlias(t, s))
			w := watch(u)
			var items []Item
			for _, p := range [][]send{
				{file("a.png", pngOf(red)), file("b.png", pngOf(unloved)), file("c.svg", svg)},
				{file("a.png", pngOf(blue))},
			} {
				stored, failures := uploadImages(t, u, p...)
				if failures != nil {
					t.Fatal(failures)
				}
				items = append(items, stored...)
			}
			const later = "a-1795176000.png"
			for i, want := range []string{"a.png.webp", "", "", later + ".webp"} {
				if want != "" {
					want = "https://cdn.example/static/img/content/" + want
				}
				if items[i].WebP != want {
					t.Errorf("the variant of %s is at %q, want %q", items[i].Filename, items[i].WebP, want)
				}
			}
			wantContents(t, s, map[string]string{
				"a.png": pngOf(red), "a.png.webp": webpOf(red), "b.png": pngOf(unloved), "c.svg": svg,
				later: pngOf(blue), later + ".webp": webpOf(blue),
			})
			if want := (map[item.VariantResult]int{item.VariantMade: 2, item.VariantNone: 1}); !maps.Equal(w.variants, want) {
				t.Errorf("variants: %v, want %v", w.variants, want)
			}
		})
	}
}

// TestStripMetadata: metadata and bytes behind an image are not stored.
func TestStripMetadata(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			alias := imageAlias(t, s)
			alias.Extensions["webp"], alias.Imaging.Strip = true, imaging.StripOn
			plain, webp := pngOf(red), encoded(t, "webp")
			items, failures := uploadImages(t, newUploader(alias),
				file("a.png", withText(plain, "taken at home")+"<?php"), file("b.png", plain), file("c.webp", webp+"<?php"))
			if failures != nil {
				t.Fatal(failures)
			}
			want := map[string]string{"a.png": plain, "b.png": plain, "c.webp": webp}
			for _, it := range items {
				if it.Size != int64(len(want[it.Filename])) {
					t.Errorf("%s has %d bytes, want %d", it.Filename, it.Size, len(want[it.Filename]))
				}
			}
			want["a.png.webp"], want["b.png.webp"] = webpOf(red), webpOf(red)
			wantContents(t, s, want)
		})
	}
}

// TestDamagedImage: an image with a valid structure whose pixels cannot be decoded is refused.
func TestDamagedImage(t *testing.T) {
	t.Parallel()
	damaged := []byte(pngOf(red))
	at := bytes.Index(damaged, []byte("IDAT"))
	size := int(binary.BigEndian.Uint32(damaged[at-4:]))
	copy(damaged[at+8:at+4+size], "nonsense")
	binary.BigEndian.PutUint32(damaged[at+4+size:], crc32.ChecksumIEEE(damaged[at:at+4+size]))
	for _, webp := range []*render.Options{nil, {}} {
		s := onMemory(t, nil)
		alias := imageAlias(t, s)
		alias.WebP = webp
		_, failures := uploadImages(t, newUploader(alias), file("a.png", pngOf(blue)), file("b.png", string(damaged)))
		wantFailure(t, failures, item.BadContent, "b.png", "damaged")
		wantContents(t, s, nil)
	}
}

// TestManyImages: items are returned in the order in which they were sent.
func TestManyImages(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	parts, want := make([]send, 30), make([]string, 30)
	for i := range parts {
		want[i] = fmt.Sprintf("%02d.png", i)
		parts[i] = file(want[i], pngOf(color.NRGBA{byte(i), 0, 0, 255}))
	}
	items, failures := uploadImages(t, newUploader(imageAlias(t, s)), parts...)
	if failures != nil || !slices.Equal(filenames(items), want) {
		t.Errorf("%v (%v)", filenames(items), failures)
	}
}

// TestPanic: a panic is the failure of its item, and no other item is stored.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := onLocal(t, func(op, _ string) error {
		if op == "read" {
			panic(secret)
		}
		return nil
	})
	_, failures := uploadImages(t, newUploader(imageAlias(t, s)), file("a.png", pngOf(red)), file("b.png", pngOf(red)))
	if len(failures) != 2 || failures[0].Reason != item.Internal || !strings.Contains(failures[0].Err.Error(), secret) {
		t.Errorf("%v", failures)
	}
}
