package render_test

import (
	"bytes"
	"image"
	"image/color"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/icc"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
)

// profiled returns a file with a profile.
func profiled(t *testing.T, file []byte, format imaging.Format, profile []byte) []byte {
	t.Helper()
	file, err := imaging.WithProfile(file, format, profile)
	imagingtest.Must(t, err)
	return file
}

// filled returns an image of one colour.
func filled(c color.NRGBA) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, 32, 32))
	for i := 0; i < len(img.Pix); i += 4 {
		img.Pix[i], img.Pix[i+1], img.Pix[i+2], img.Pix[i+3] = c.R, c.G, c.B, c.A
	}
	return img
}

// cmykJPEG returns a flat image of 8 x 8 pixels of four inks, each of a half.
func cmykJPEG() []byte {
	frame := "\x08\x00\x08\x00\x08\x04\x01\x11\x00\x02\x11\x00\x03\x11\x00\x04\x11\x00"
	return bytes.Join([][]byte{
		[]byte("\xff\xd8"), imagingtest.Segment(0xDB, "\x00"+string(bytes.Repeat([]byte{1}, 64))),
		imagingtest.Segment(0xC0, frame), imagingtest.Segment(0xDA, "\x04\x01\x00\x02\x00\x03\x00\x04\x00\x00\x3f\x00"),
		[]byte("\x28\xa2\x8a\xff\xd9"),
	}, nil)
}

// TestColors: every output of an image with colours that other files do not get has those of sRGB,
// and no profile.
func TestColors(t *testing.T) {
	t.Parallel()
	const large = 100_000
	ink := color.NRGBA{R: 64, G: 128, B: 32, A: 255}
	light := color.NRGBA{R: 137, G: 188, B: 99, A: 255} // of ink, if its codes are those of light
	display := imagingtest.Display(imagingtest.SRGB, imagingtest.Gamma(1))
	small, linear := imagingtest.ICC("RGB ", "XYZ ", display...), imagingtest.Large(large, "RGB ", "XYZ ", display...)
	table := imagingtest.Large(large, "RGB ", "Lab ", imagingtest.Table("mft2", 3, 9, func([]float64) [3]float64 {
		return [3]float64{0.2, 0.6, 0.4}
	}))
	inks := imagingtest.ICC("CMYK", "Lab ", imagingtest.Table("mft2", 4, 3, func([]float64) [3]float64 {
		return [3]float64{0.2, 0.6, 0.4}
	}))
	fixed := color.NRGBA{R: 51, G: 153, B: 102, A: 255}
	grey := imagingtest.ICC("GRAY", "XYZ ", imagingtest.Tag{Name: "kTRC", Data: imagingtest.Gamma(1.8)})
	samples := image.NewGray(image.Rect(0, 0, 32, 32))
	for i := range samples.Pix {
		samples.Pix[i] = 128
	}
	lighter := color.NRGBA{R: 147, G: 147, B: 147, A: 255}
	clear := filled(color.NRGBA{R: 64, G: 128, B: 32, A: 254})
	for name, c := range map[string]struct {
		ext  string
		file []byte
		want color.NRGBA
	}{
		"jpg, large":        {"jpg", profiled(t, asJPEG(t, filled(ink)), imaging.JPEG, linear), light},
		"png, large":        {"png", profiled(t, asPNG(t, clear), imaging.PNG, linear), light},
		"jpg of a table":    {"jpg", profiled(t, asJPEG(t, filled(ink)), imaging.JPEG, table), fixed},
		"turned":            {"jpg", withOrientation(profiled(t, asJPEG(t, filled(ink)), imaging.JPEG, table), 6), fixed},
		"CMYK":              {"jpg", profiled(t, cmykJPEG(), imaging.JPEG, inks), fixed},
		"CMYK, damaged":     {"jpg", profiled(t, cmykJPEG(), imaging.JPEG, inks[:200]), color.NRGBA{R: 64, G: 64, B: 64, A: 255}},
		"grey jpg":          {"jpg", profiled(t, asJPEG(t, samples), imaging.JPEG, grey), lighter},
		"grey png":          {"png", profiled(t, asPNG(t, samples), imaging.PNG, grey), lighter},
		"grey of RGB":       {"jpg", profiled(t, asJPEG(t, samples), imaging.JPEG, small), color.NRGBA{R: 188, G: 188, B: 188, A: 255}},
		"grey of large RGB": {"jpg", profiled(t, asJPEG(t, samples), imaging.JPEG, linear), color.NRGBA{R: 188, G: 188, B: 188, A: 255}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, o := range []render.Output{
				{Format: imaging.WebP},
				{Format: imaging.WebP, Box: scale.Box{Width: 8}},
				{Format: imaging.JPEG, Box: scale.Box{Width: 8}},
				{Format: imaging.PNG, Box: scale.Box{Width: 8}},
			} {
				file := output(t, c.file, c.ext, o)
				info := checked(t, file, o.Format.Extension())
				if info.Profile != nil || info.Converts() {
					t.Errorf("%s has a profile of %d bytes", o.Format, len(info.Profile))
				}
				got := color.NRGBAModel.Convert(decodedAs(t, file, o.Format).At(3, 3)).(color.NRGBA)
				if off := max(distance(got.R, c.want.R), distance(got.G, c.want.G), distance(got.B, c.want.B)); off > 6 {
					t.Errorf("%s has %v, want %v", o.Format, got, c.want)
				}
			}
		})
	}
}

func distance(a, b byte) int { return max(int(a)-int(b), int(b)-int(a)) }

// TestColorsOfAnimation: the frames of an animation have the colours of sRGB.
func TestColorsOfAnimation(t *testing.T) {
	t.Parallel()
	moving := output(t, asGIF(t, words("RRRR", "GGGG", "BBBB")), "gif", render.Output{Format: imaging.WebP})
	profile := imagingtest.Large(100_000, "RGB ", "Lab ", imagingtest.Table("mft2", 3, 2, func(d []float64) [3]float64 {
		return [3]float64{d[1], d[2], d[0]}
	}))
	// The chunk of the profile is the first after that of the flags (RIFF container of WebP).
	file := bytes.Clone(moving)
	file[20] |= 0x20
	size := len(profile)
	chunk := append([]byte("ICCP"), byte(size), byte(size>>8), byte(size>>16), byte(size>>24))
	file = bytes.Join([][]byte{file[:30], chunk, profile, file[30:]}, nil)
	size = len(file) - 8
	copy(file[4:], []byte{byte(size), byte(size >> 8), byte(size >> 16), byte(size >> 24)})
	r := recorded(t, file, "webp")
	got := make([]string, len(r.frames))
	for i, frame := range r.frames {
		got[i] = word(frame)
	}
	imagingtest.Same(t, got, []string{"BBBB", "RRRR", "GGGG"})
}

// TestColorMemory: the memory for an image is more if its colours are converted.
func TestColorMemory(t *testing.T) {
	t.Parallel()
	file := asJPEG(t, scene(40, 30))
	m := render.NewMaker(new(recorder), render.Limits{})
	linear := imagingtest.Large(100_000, "RGB ", "XYZ ", imagingtest.Display(imagingtest.SRGB, imagingtest.Gamma(1))...)
	plain := render.MakingMemory(m, checked(t, file, "jpg"), render.Variant(render.Options{}))
	more := render.MakingMemory(m, checked(t, profiled(t, file, imaging.JPEG, linear), "jpg"), render.Variant(render.Options{}))
	if more < plain+icc.Memory {
		t.Errorf("%d bytes, and %d", plain, more)
	}
}
