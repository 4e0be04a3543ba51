package upload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
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
	onEach(t, func(t *testing.T, open opener) {
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

// TestStripMetadata: metadata and bytes behind an image are not stored.
func TestStripMetadata(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
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

// TestDamagedImage: an image with a valid structure whose pixels cannot be decoded is refused.
func TestDamagedImage(t *testing.T) {
	t.Parallel()
	png, webp := []byte(pngOf(red)), encoded(t, "webp")
	at := bytes.Index(png, []byte("IDAT"))
	size := int(binary.BigEndian.Uint32(png[at-4:]))
	copy(png[at+8:at+4+size], "nonsense")
	binary.BigEndian.PutUint32(png[at+4+size:], crc32.ChecksumIEEE(png[at:at+4+size]))
	for filename, content := range map[string]string{"b.png": string(png), "b.webp": webp[:25] + "nonsense" + webp[33:]} {
		for _, variants := range []*render.Options{nil, {}} {
			s := onMemory(t, nil)
			alias := imageAlias(t, s)
			alias.Extensions["webp"], alias.WebP = true, variants
			_, failures := uploadImages(t, newUploader(alias), file("a.png", pngOf(blue)), file(filename, content))
			wantFailure(t, failures, item.BadContent, filename, "damaged: not all of it can be decoded")
			wantContents(t, s, nil)
		}
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
	onEach(t, func(t *testing.T, open opener) {
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
		if err := u.Delete(t.Context(), alias, "a.webp", item.Actor{}); err != nil {
			t.Fatal(err)
		}
		wantContents(t, s, map[string]string{"a.webp.webp": webp, "b.svg.webp": webp})
		if alias.IsVariant("a.webp.webp") || alias.MayHaveVariant("a.webp") || !alias.IsVariant("a.png.webp") {
			t.Error("a WebP is taken for an image with a variant, or for a variant")
		}
	})
}

// TestRenameMismatched: an image of another format than its name says gets the extension of its
// format, if the alias accepts that. All rules for names and contents apply afterwards.
func TestRenameMismatched(t *testing.T) {
	t.Parallel()
	png, jpg, webp, gif := pngOf(red), encoded(t, "jpg"), encoded(t, "webp"), encoded(t, "gif")
	script := strings.Replace(vector, "/>", "><script/></svg>", 1)
	long := strings.Repeat("a", 196) + ".png"
	for _, c := range []struct {
		submitted, content string
		sanitize           bool
		want               string // the filename, or the message if there is a reason
		reason             item.Reason
	}{
		{"a.png", png, true, "a.png", 0},
		{"a.jpeg", jpg, true, "a.jpeg", 0},
		{"a.png", jpg, true, "a.jpg", 0},
		{"a.JPG", png, true, "a.png", 0},
		{"A.JPG", png, false, "A.png", 0},
		{"A.JPG.JPG", png, false, "A.JPG.png", 0},
		{"a.JPG", jpg, false, "a.JPG", 0},
		{"a.G\u0130F", png, false, "a.png", 0}, // "gif" in lower case, and shorter
		{"Foto č. 1.jpg ", png, true, "foto-c-1.png", 0},
		{"a.jpg", webp, true, "a.webp", 0},
		{"a.webp", png, true, "a.png", 0},
		{"a.png", vector, true, "a.svg", 0},
		{"a.svg", png, true, "a.png", 0},
		{"a.png", gif, false, "content is GIF, the name says .png", item.BadContent},
		{"a.bmp", png, false, "a.png", 0},
		{"blob", png, true, "blob.png", 0},
		{"Image", jpg, false, "Image.jpg", 0},
		{"photo.jpg_large", jpg, true, "photo.jpg", 0},
		{"photo.heif", webp, true, "photo.webp", 0},
		{"photo.jpg?x=1", jpg, true, "photo.jpg", 0},
		{"Photo.PNG", jpg, false, "Photo.jpg", 0},
		{"shot at 10.15.30", png, true, "shot-at-10-15-30.png", 0},
		{"shot at 10.15.30", png, false, "shot at 10.15.30.png", 0},
		{"photo.jpg.webp2", png, false, "photo.jpg.png", 0},
		{"photo.JFIF", jpg, false, "photo.jpg", 0},
		{"photo.jfif", png, true, "photo.png", 0},
		{"blob", "hello", true, "the name has no extension; images may be", item.BadContent},
		{"blob.pdf", "%PDF-1.7", true, ".pdf is not accepted", item.BadContent},
		{"a.bmp", gif, false, ".bmp is not accepted", item.BadContent},
		{"image.php", png, true, ".php are never accepted", item.BadContent},
		{"blob", "", true, "the name has no extension", item.BadContent},
		{"blob", script, true, "script", item.BadContent},
		{strings.Repeat("a", 200), png, false, "longer than 200 bytes", item.BadRequest},
		{"a.png", "hello", false, "content is plain text, the name says .png", item.BadContent},
		{"a.png", jpg[:99], false, "JPEG image or is damaged", item.BadContent},
		{"a.png", script, false, "script", item.BadContent},
		{"a.jpg.png", webp, false, `"a.jpg.webp" is the name of a variant`, item.BadRequest},
		{long, webp, false, "longer than 200 bytes", item.BadRequest},
	} {
		s := onMemory(t, nil)
		alias := imageAlias(t, s)
		alias.Extensions["webp"], alias.Extensions["jpeg"], alias.Extensions["gif"] = true, true, c.content != gif
		alias.RenameMismatched, alias.Sanitize, alias.WebP = true, c.sanitize, nil
		u := newUploader(alias)
		if failures := u.Precheck(t.Context(), Upload{Request: Request{Kind: item.Image}}, c.submitted, 0); failures != nil && c.reason == 0 {
			t.Errorf("%s: refused without its bytes: %v", c.submitted, failures)
		}
		items, failures := uploadImages(t, u, file(c.submitted, c.content))
		if c.reason != 0 {
			wantFailure(t, failures, c.reason, c.submitted, c.want)
			wantContents(t, s, nil)
			continue
		}
		if failures != nil || items[0].Filename != c.want {
			t.Errorf("%s: %v, %v, want %s", c.submitted, filenames(items), failures, c.want)
			continue
		}
		wantContents(t, s, map[string]string{c.want: c.content})
	}
}

// TestNamesOfJPEG: other extensions of JPEG files become jpg in an alias of images.
func TestNamesOfJPEG(t *testing.T) {
	t.Parallel()
	jpg := encoded(t, "jpg")
	for submitted, want := range map[string]string{
		"photo.jfif": "photo.jpg", "photo.jpe": "photo.jpg", "Photo.PJPEG": "photo.jpg", "a.b.pjp": "a-b.jpg", "photo.jpeg": "photo.jpeg",
	} {
		s := onMemory(t, nil)
		alias := imageAlias(t, s)
		alias.Extensions["jpeg"], alias.WebP = true, nil
		items, failures := uploadImages(t, newUploader(alias), file(submitted, jpg))
		if failures != nil || items[0].Filename != want {
			t.Errorf("%s: %v, %v, want %s", submitted, filenames(items), failures, want)
		}
	}
	alias := imageAlias(t, onMemory(t, nil))
	_, failures := uploadImages(t, newUploader(alias), file("photo.jfif", pngOf(red)))
	wantFailure(t, failures, item.BadContent, "photo.jfif", "content is PNG, the name says .jpg")
	files := newAlias(t, item.DefaultAlias, onMemory(t, nil))
	_, failures = uploadForm(t, newUploader(files), file("photo.jfif", jpg))
	wantFailure(t, failures, item.BadContent, "photo.jfif", ".jfif is not accepted")
}

// TestRenamedDuplicates: under Overwrite, two names of a request may become one.
func TestRenamedDuplicates(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := imageAlias(t, s)
	alias.RenameMismatched, alias.Overwrite = true, true
	_, failures := uploadImages(t, newUploader(alias), file("a.png", pngOf(red)), file("a.jpg", pngOf(blue)))
	wantFailure(t, failures, item.Conflict, "a.png", "the same name")
}

// TestVariantOfFile: in an alias of files, no name is that of a variant.
func TestVariantOfFile(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := newAlias(t, item.DefaultAlias, s)
	alias.Extensions["webp"], alias.Extensions["png"], alias.Sanitize = true, true, false
	u := newUploader(alias)
	storeFiles(t, u, file("a.png.webp", encoded(t, "webp")))
	if err := u.Delete(t.Context(), alias, "a.png", item.Actor{}); err == nil || !strings.Contains(err.Error(), fs.ErrNotExist.Error()) {
		t.Errorf("got %v", err)
	}
}

// TestUndecodedImages: an AVIF or HEIC has no variant. Its metadata becomes zeros.
func TestUndecodedImages(t *testing.T) {
	t.Parallel()
	for submitted, want := range map[string]string{"photo.heic": "photo.heic", "turned.avif": "turned.avif", "photo.jpg": "photo.heic"} {
		data, err := os.ReadFile(filepath.Join("../../leaf/imaging/testdata", want))
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
