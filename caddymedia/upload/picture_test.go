package upload

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"maps"
	"testing"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/storagedrivers"
)

// painter is an encoder whose variants name the colour of their pictures.
type painter struct{}

func (painter) Name() string           { return "painter" }
func (painter) Stops() bool            { return true }
func (painter) Memory(webp.Task) int64 { return 0 }
func (painter) Animate(context.Context, webp.Animation, webp.Options) ([]byte, error) {
	return nil, errors.New("it does not move")
}

func (painter) Encode(_ context.Context, img image.Image, _ webp.Options) ([]byte, error) {
	c := color.NRGBAModel.Convert(img.At(0, 0)).(color.NRGBA)
	if c == unloved {
		return nil, errors.New("I do not paint in this colour")
	}
	return []byte(webpOf(c)), nil
}

func webpOf(c color.NRGBA) string { return fmt.Sprintf("WebP in %02x%02x%02x", c.R, c.G, c.B) }

var (
	red     = color.NRGBA{255, 0, 0, 255}
	green   = color.NRGBA{0, 255, 0, 255}
	blue    = color.NRGBA{0, 0, 255, 255}
	unloved = color.NRGBA{1, 2, 3, 255}
)

// picture returns a PNG in one colour.
func picture(c color.NRGBA) string {
	img := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		img.SetNRGBA(i%8, i/8, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.String()
}

// withText adds a text to a PNG, after its header.
func withText(file, text string) string {
	chunk := []byte("tEXtComment\x00" + text)
	whole := binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4))
	whole = binary.BigEndian.AppendUint32(append(whole, chunk...), crc32.ChecksumIEEE(chunk))
	return file[:33] + string(whole) + file[33:]
}

// pictures returns an alias for pictures with variants, at the root of the storage.
func pictures(t testing.TB, s *storagedrivers.Storage) *aliases.Alias {
	t.Helper()
	alias := newAlias(t, aliases.DefaultAlias, s)
	alias.Kind, alias.Prefix, alias.WebP = aliases.Image, "", new(render.Options)
	alias.Extensions = map[string]bool{"png": true, "jpg": true, "svg": true}
	return alias
}

func uploadPictures(t testing.TB, u *Uploader, parts ...send) ([]Item, aliases.Failures) {
	t.Helper()
	return uploadBody(t, u, bytes.NewReader(formBody(parts...)), Request{Kind: aliases.Image})
}

func TestVariants(t *testing.T) {
	t.Parallel()
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			u := newUploader(pictures(t, s))
			w := watch(u)
			var items []Item
			for _, p := range [][]send{
				{file("a.png", picture(red)), file("b.png", picture(unloved)), file("c.svg", svg)},
				{file("a.png", picture(blue))},
			} {
				stored, failures := uploadPictures(t, u, p...)
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
				"a.png": picture(red), "a.png.webp": webpOf(red), "b.png": picture(unloved), "c.svg": svg,
				later: picture(blue), later + ".webp": webpOf(blue),
			})
			if want := (map[aliases.VariantResult]int{aliases.VariantMade: 2, aliases.VariantNone: 1}); !maps.Equal(w.variants, want) {
				t.Errorf("variants: %v, want %v", w.variants, want)
			}
		})
	}
}
