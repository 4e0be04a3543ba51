package render_test

import (
	"encoding/base64"
	"image"
	"math"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
)

// hashOf returns the ThumbHash of a file.
func hashOf(t testing.TB, file []byte, ext string) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(output(t, file, ext, render.Hash))
}

// TestThumbHash compares hashes with those that the program of the algorithm's author makes of the
// same pixels.
func TestThumbHash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		width, height int
		transparent   bool
		want          string
	}{
		{40, 30, false, "WscJNZaAdnd1d4d1d1d3hrB3B6qo"},
		{30, 40, false, "WrcJLRiAhnZ3V3dnh3ZnaLB3B5qY"},
		{32, 32, true, "W6eFHQw3kIanh4d4iLCnB4mLeIhwiIh4iA=="},
		{1, 1, false, "AAgCBwAAAAAAAAAAAAAAAAAAAAAAAAAA"},
		{7, 64, true, "mYeFGQo3cLh4d4j2lgiKi3h4gIiIeIg="},
		{100, 3, false, "kjcOQZCAdoaRiGiIoJwM+3U="},
	} {
		img := image.NewNRGBA(image.Rect(0, 0, c.width, c.height))
		for i := range c.width * c.height {
			x, y := i%c.width, i/c.width
			alpha := 255
			if c.transparent {
				alpha = y * 255 / c.height
			}
			copy(img.Pix[4*i:], []byte{byte(x * x * 255 / (c.width * c.width)), byte(y * (x + y)), byte(x * y * 7), byte(alpha)})
		}
		if got := hashOf(t, asPNG(t, img), "png"); got != c.want {
			t.Errorf("%d x %d: %s, want %s", c.width, c.height, got, c.want)
		}
	}
}

// TestThumbHashOfPhotograph: the hash of a large turned JPEG has the shape and the mean colour of
// the image as it is viewed.
func TestThumbHashOfPhotograph(t *testing.T) {
	t.Parallel()
	img := scene(600, 400)
	hash, err := base64.StdEncoding.DecodeString(hashOf(t, withOrientation(asJPEG(t, img), 6), "jpg"))
	if err != nil || len(hash) < 20 || len(hash) > 30 {
		t.Fatalf("%d bytes, %v", len(hash), err)
	}
	if landscape, short := hash[4]>>7 == 1, hash[3]&7; landscape || short != 5 {
		t.Errorf("landscape %v, short side %d of 7", landscape, short)
	}
	var sum float64
	for i, v := range img.Pix {
		if i%4 != 3 {
			sum += float64(v) / 255
		}
	}
	want := sum / float64(len(img.Pix)/4*3)
	if got := float64(hash[0]&63) / 63; math.Abs(got-want) > 0.02 {
		t.Errorf("luminance %.2f, want %.2f", got, want)
	}
}

func BenchmarkThumbHash(b *testing.B) {
	img := scene(100, 100)
	file := asPNG(b, img)
	for b.Loop() {
		hashOf(b, file, "png")
	}
}
