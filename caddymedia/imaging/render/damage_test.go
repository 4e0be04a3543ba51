package render_test

import (
	"bytes"
	"errors"
	"image"
	"image/gif"
	"io"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
)

// TestDamage: images truncated after the structural check are refused as damaged; a failing
// reader is another error.
func TestDamage(t *testing.T) {
	t.Parallel()
	moving := asGIF(t, &gif.GIF{Image: []*image.Paletted{frame(0, "RGBR"), frame(0, "GRB")}, Delay: []int{5, 5}})
	for ext, file := range map[string][]byte{
		"jpg": asJPEG(t, scene(200, 100)), "png": asPNG(t, scene(200, 100)), "gif": moving,
	} {
		info := checked(t, file, ext)
		m := render.NewMaker(new(recorder), render.Limits{})
		for _, n := range []int{len(file) / 2, len(file) - 2, len(file) - 1} {
			if ext == "jpg" && n == len(file)-1 {
				continue // half of the end marker is enough
			}
			err := m.Check(t.Context(), bytes.NewReader(file[:n]), info)
			if _, damaged := errors.AsType[*imaging.ContentError](err); !damaged {
				t.Errorf("the first %d of the %d bytes of a .%s: %v", n, len(file), ext, err)
			}
			if _, makeErr := variantOf(t.Context(), m, bytes.NewReader(file[:n]), info, render.Options{}); makeErr == nil || makeErr.Error() != err.Error() {
				t.Errorf("and for a variant: %v, not %v", makeErr, err)
			}
		}
		broken := iotest.ErrReader(errors.New("the disk is gone"))
		err := m.Check(t.Context(), readSeeker{broken, bytes.NewReader(file)}, info)
		if _, damaged := errors.AsType[*imaging.ContentError](err); damaged || err == nil {
			t.Errorf("a .%s that cannot be read: %v", ext, err)
		}
	}
}

type readSeeker struct {
	io.Reader
	io.Seeker
}
