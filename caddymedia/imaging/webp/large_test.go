package webp_test

import (
	"bytes"
	"testing"

	reference "github.com/deepteams/webp"

	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// TestLarge: the prediction modes of such an image do not fit into a file, unless the encoder
// limits them.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Parallel()
	img := draw(160, 48)
	n := uint32(1)
	for i := range img.Pix {
		if n = n*1664525 + 1013904223; i%4 != 3 {
			img.Pix[i] = byte(n >> 24)
		}
	}
	p := planes(tiled(img, 7000, 4010))
	got, err := reference.Decode(bytes.NewReader(encode(t, p, webp.Options{Quality: 50})))
	if err != nil {
		t.Fatal(err)
	}
	if got.Bounds().Size() != p.Rect.Size() {
		t.Errorf("an image of %v", got.Bounds())
	}
}
