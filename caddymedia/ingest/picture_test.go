package ingest

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
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/storagedrivers"
)

// painter is an encoder whose variants tell the colour of their pictures.
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

// picture is a PNG in one colour.
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

// withText puts a text into a PNG, behind its header.
func withText(file, text string) string {
	chunk := []byte("tEXtComment\x00" + text)
	whole := binary.BigEndian.AppendUint32(nil, uint32(len(chunk)-4))
	whole = binary.BigEndian.AppendUint32(append(whole, chunk...), crc32.ChecksumIEEE(chunk))
	return file[:33] + string(whole) + file[33:]
}

// pictures gives an alias for pictures with variants, at the root of the storage.
func pictures(t testing.TB, s *storagedrivers.Storage) *Alias {
	t.Helper()
	alias := newAlias(t, DefaultAlias, s)
	alias.Kind, alias.Prefix, alias.WebP = Image, "", new(variant.Options)
	alias.Extensions = map[string]bool{"png": true, "jpg": true, "svg": true}
	return alias
}

func uploadPictures(t testing.TB, g *Gate, parts ...send) ([]Item, Failures) {
	t.Helper()
	return uploadBody(t, g, bytes.NewReader(formBody(parts...)), Request{Kind: Image})
}

func TestVariants(t *testing.T) {
	t.Parallel()
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			results := map[VariantResult]int{}
			g := newGate(pictures(t, s))
			g.Variant = func(_ *Alias, result VariantResult) { results[result]++ }
			var items []Item
			for _, p := range [][]send{
				{file("a.png", picture(red)), file("b.png", picture(unloved)), file("c.svg", svg)},
				{file("a.png", picture(blue))},
			} {
				stored, failures := uploadPictures(t, g, p...)
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
			if want := (map[VariantResult]int{VariantMade: 2, VariantNone: 1}); !maps.Equal(results, want) {
				t.Errorf("variants: %v, want %v", results, want)
			}
		})
	}
}

// TestOverwriteVariant: whatever a picture replaces, what lies beside it is its own
// variant or none.
func TestOverwriteVariant(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			alias := pictures(t, s)
			alias.Overwrite = true
			g := newGate(alias)
			without := pictures(t, s)
			without.Overwrite, without.WebP = true, nil
			gateWithout := newGate(without)
			for i, step := range []struct {
				gate  *Gate
				paint color.NRGBA
				want  string // the variant, empty for none
			}{
				{g, red, webpOf(red)},
				{g, blue, webpOf(blue)},
				{g, unloved, ""},
				{g, red, webpOf(red)},
				{gateWithout, green, ""},
			} {
				if _, failures := uploadPictures(t, step.gate, file("a.png", picture(step.paint))); failures != nil {
					t.Fatal(failures)
				}
				want := map[string]string{"a.png": picture(step.paint)}
				if step.want != "" {
					want["a.png.webp"] = step.want
				}
				t.Logf("step %d", i)
				wantContents(t, s, want)
			}
		})
	}
}

// TestVariantFails: a storage that does not take the variant does not keep its picture
// either, nor those before it.
func TestVariantFails(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("%s at %d", name, n), func(t *testing.T) {
				t.Parallel()
				s := open(t, at(n, storagedrivers.ErrNoSpace))
				g := newGate(pictures(t, s))
				_, failures := uploadPictures(t, g, file("a.png", picture(red)), file("b.png", picture(blue)))
				wantFailure(t, failures, NoSpace, []string{"a.png", "b.png"}[(n-1)/2], "full")
				wantContents(t, s, nil)
			})
		}
	}
}

// TestVariantComesBack: where a storage can put back what was replaced, the variant comes
// back as well.
func TestVariantComesBack(t *testing.T) {
	t.Parallel()
	s := onLocal(t, at(8, storagedrivers.ErrNoSpace)) // the last commit
	alias := pictures(t, s)
	alias.Overwrite = true
	g := newGate(alias)
	if _, failures := uploadPictures(t, g, file("a.png", picture(red)), file("b.png", picture(red))); failures != nil {
		t.Fatal(failures)
	}
	_, failures := uploadPictures(t, g, file("a.png", picture(blue)), file("b.png", picture(blue)))
	wantFailure(t, failures, NoSpace, "b.png", "full")
	wantContents(t, s, map[string]string{
		"a.png": picture(red), "a.png.webp": webpOf(red), "b.png": picture(red), "b.png.webp": webpOf(red),
	})
}

// TestVariantOvertaken replaces a picture while the variant of another one for the same
// name is about to be stored.
func TestVariantOvertaken(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, winner := range []color.NRGBA{blue, unloved} {
			t.Run(name+" by "+webpOf(winner), func(t *testing.T) {
				t.Parallel()
				var g *Gate
				var overtaken atomic.Bool
				s := open(t, func(op, key string) error {
					if (op == "put" || op == "commit") && strings.HasSuffix(key, variant.Suffix) {
						if overtaken.Swap(true) {
							return nil
						}
						if _, failures := uploadPictures(t, g, file("a.png", picture(winner))); failures != nil {
							t.Error(failures)
						}
					}
					return nil
				})
				alias := pictures(t, s)
				alias.Overwrite = true
				g = newGate(alias)
				if _, failures := uploadPictures(t, g, file("a.png", picture(red))); failures != nil {
					t.Fatal(failures)
				}
				want := map[string]string{"a.png": picture(winner)}
				if winner != unloved {
					want["a.png.webp"] = webpOf(winner)
				}
				wantContents(t, s, want)
			})
		}
	}
}

// TestOverwritersAtOnce: of many who replace one picture at the same time one wins, with
// its variant.
func TestOverwritersAtOnce(t *testing.T) {
	t.Parallel()
	s := onLocal(t, nil)
	alias := pictures(t, s)
	alias.Overwrite = true
	g := newGate(alias)
	var group sync.WaitGroup
	for i := range 24 {
		group.Go(func() {
			paint := color.NRGBA{byte(10 * i), byte(i), 200, 255}
			if _, failures := uploadPictures(t, g, file("a.png", picture(paint))); failures != nil {
				t.Error(failures)
			}
		})
	}
	group.Wait()
	got := contents(t, s)
	img, err := png.Decode(strings.NewReader(got["a.png"]))
	if err != nil {
		t.Fatal(err)
	}
	paint := color.NRGBAModel.Convert(img.At(0, 0)).(color.NRGBA)
	if got["a.png.webp"] != webpOf(paint) && got["a.png.webp"] != "" {
		t.Errorf("beside %v lies %q", paint, got["a.png.webp"])
	}
}
