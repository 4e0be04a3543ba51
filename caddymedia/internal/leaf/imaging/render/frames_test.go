package render_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"io"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
)

// ink has a colour for each letter. The frames of the tests are 4 pixels wide and 1 high, so that a
// word describes an image.
var ink = color.Palette{
	color.NRGBA{}, color.NRGBA{255, 0, 0, 255}, color.NRGBA{0, 255, 0, 255}, color.NRGBA{0, 0, 255, 255},
}

const letters = ".RGB"

func frame(x int, word string) *image.Paletted {
	img := image.NewPaletted(image.Rect(x, 0, x+len(word), 1), ink)
	for i, letter := range word {
		img.Pix[i] = uint8(slices.Index([]rune(letters), letter))
	}
	return img
}

// words returns a GIF with a frame for each word.
func words(list ...string) *gif.GIF {
	g := &gif.GIF{Config: image.Config{Width: len(list[0]), Height: 1, ColorModel: ink}}
	for _, w := range list {
		g.Image, g.Delay = append(g.Image, frame(0, w)), append(g.Delay, 10)
	}
	return g
}

func word(img *image.NRGBA) string {
	s := make([]byte, 0, img.Rect.Dx())
	for x := range img.Rect.Dx() {
		s = append(s, letters[ink.Index(img.NRGBAAt(x, 0))])
	}
	return string(s)
}

func TestDisposal(t *testing.T) {
	t.Parallel()
	const (
		keep       = gif.DisposalNone
		background = gif.DisposalBackground
		previous   = gif.DisposalPrevious
	)
	for _, c := range []struct {
		name   string
		frames []*image.Paletted
		after  []byte
		want   []string
	}{
		{
			"frames stay",
			[]*image.Paletted{frame(0, "RRRR"), frame(1, "G"), frame(2, "B")},
			[]byte{keep, keep, keep},
			[]string{"RRRR", "RGRR", "RGBR"},
		},
		{
			"the transparent shows what is there",
			[]*image.Paletted{frame(0, "RGBR"), frame(0, ".R.B")},
			[]byte{keep, keep},
			[]string{"RGBR", "RRBB"},
		},
		{
			"unspecified is like staying",
			[]*image.Paletted{frame(0, "RRRR"), frame(1, "G")},
			[]byte{0, 0},
			[]string{"RRRR", "RGRR"},
		},
		{
			"back to nothing",
			[]*image.Paletted{frame(0, "RRRR"), frame(1, "GG"), frame(3, "B")},
			[]byte{keep, background, keep},
			[]string{"RRRR", "RGGR", "R..B"},
		},
		{
			"back to what was before",
			[]*image.Paletted{frame(0, "RRRR"), frame(1, "GG"), frame(3, "B")},
			[]byte{keep, previous, keep},
			[]string{"RRRR", "RGGR", "RRRB"},
		},
		{
			"back over several",
			[]*image.Paletted{frame(0, "RRRR"), frame(0, "GG"), frame(1, "BB"), frame(3, "G")},
			[]byte{keep, previous, previous, background},
			[]string{"RRRR", "GGRR", "RBBR", "RRRG"},
		},
		{
			"the first goes",
			[]*image.Paletted{frame(1, "RR"), frame(3, "B")},
			[]byte{background, keep},
			[]string{".RR.", "...B"},
		},
		{
			"back to before the first",
			[]*image.Paletted{frame(1, "RR"), frame(3, "B")},
			[]byte{previous, keep},
			[]string{".RR.", "...B"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := asGIF(t, &gif.GIF{
				Image: c.frames, Disposal: c.after, Delay: make([]int, len(c.frames)),
				Config: image.Config{Width: 4, Height: 1, ColorModel: ink},
			})
			var got []string
			for _, canvas := range recorded(t, file, "gif").frames {
				got = append(got, word(canvas))
			}
			imagingtest.Same(t, got, c.want, "it shows")
		})
	}
}

func TestStillGIF(t *testing.T) {
	t.Parallel()
	file := asGIF(t, &gif.GIF{
		Image: []*image.Paletted{frame(1, "GB")}, Delay: []int{0},
		Config: image.Config{Width: 4, Height: 1, ColorModel: ink},
	})
	r := recorded(t, file, "gif")
	if len(r.frames) != 0 || len(r.still) == 0 {
		t.Fatalf("it is encoded as %d frames and %d images", len(r.frames), len(r.still))
	}
	imagingtest.Equal(t, word(r.still[0].(*image.NRGBA)), ".GB.", "it shows")
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ repeat, want int }{{0, 0}, {-1, 1}, {1, 2}, {9, 10}} {
		file := asGIF(t, &gif.GIF{
			Image: []*image.Paletted{frame(0, "R"), frame(0, "G"), frame(0, "B"), frame(0, "R")},
			Delay: []int{0, 1, 2, 500}, LoopCount: c.repeat,
		})
		r := recorded(t, file, "gif")
		imagingtest.Equal(t, r.loops, c.want, "repeated", c.repeat, "times it plays", "times")
		want := []time.Duration{100 * time.Millisecond, 100 * time.Millisecond, 20 * time.Millisecond, 5 * time.Second}
		imagingtest.Same(t, r.delays, want, "frames last")
	}
}

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
