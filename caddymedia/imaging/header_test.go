package imaging_test

import (
	"bytes"
	"image"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

func TestReadHeader(t *testing.T) {
	t.Parallel()
	wide := drawJPEG(t, 50, 20)
	for name, c := range map[string]struct {
		data []byte
		ext  string
		want image.Point
	}{
		"JPEG":             {wide, "jpg", image.Pt(50, 20)},
		"turned JPEG":      {withSegments(wide, exifSegment(turned(6))), "jpeg", image.Pt(20, 50)},
		"header of a JPEG": {wide[:len(wide)*3/4], "jpg", image.Pt(50, 20)},
		"PNG":              {drawPNG(t, 50, 20), "png", image.Pt(50, 20)},
		"GIF":              {drawGIF(t, 50, 20, 2), "gif", image.Pt(50, 20)},
		"another format":   {wide, "png", image.Point{}},
		"PNG as JPEG":      {drawPNG(t, 50, 20), "jpg", image.Point{}},
		"start of a JPEG":  {wide[:10], "jpg", image.Point{}},
		"empty":            {nil, "jpg", image.Point{}},
		"text":             {[]byte("text"), "txt", image.Point{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info, err := imaging.ReadHeader(bytes.NewReader(c.data), int64(len(c.data)), c.ext, imaging.Options{})
			got := info.UprightSize()
			if got != c.want || (err == nil) != (c.want != image.Point{}) {
				t.Errorf("%v, %v, want %v", got, err, c.want)
			}
		})
	}
}

func FuzzReadHeader(f *testing.F) {
	f.Add(drawJPEG(f, 5, 2), uint8(0))
	f.Add(withSegments(drawJPEG(f, 5, 2), exifSegment(turned(6))), uint8(0))
	f.Add(drawPNG(f, 5, 2), uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		ext := []string{"jpg", "png", "gif", "webp"}[which%4]
		info, err := imaging.ReadHeader(bytes.NewReader(data), int64(len(data)), ext, imaging.Options{})
		if err == nil && (info.Width <= 0 || info.Height <= 0) {
			t.Errorf("the sides are %v", info.UprightSize())
		}
	})
}
