package site

import (
	"image"
	"image/color"
	"net/http"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
)

// WantRendition fetches a rendition twice, as its own format and as WebP, and expects an image of a
// size in one colour.
func WantRendition(t *testing.T, client *Client, address string, size image.Point, want color.NRGBA) {
	t.Helper()
	for _, accept := range []string{"*/*", "image/webp,*/*"} {
		got := client.FetchURL(t, address, "Accept", accept)
		if got.Status != http.StatusOK {
			t.Errorf("%s: status %d", address, got.Status)
			return
		}
		decode := sample.Decode
		if got.Header.Get("Content-Type") == "image/webp" {
			decode = sample.DecodeWebP
		}
		m := decode(t, got.Body)
		if m.Bounds().Size() != size {
			t.Errorf("%s is of %v, want %v", address, m.Bounds().Size(), size)
		}
		r, g, b, _ := m.At(size.X/2, size.Y/2).RGBA()
		for i, pair := range [][2]uint8{{uint8(r >> 8), want.R}, {uint8(g >> 8), want.G}, {uint8(b >> 8), want.B}} {
			const loss = 12
			if d := int(pair[0]) - int(pair[1]); d > loss || d < -loss {
				t.Errorf("%s as %s has %d in component %d, want %d", address, accept, pair[0], i, pair[1])
			}
		}
	}
}
