package render_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"testing"

	"github.com/deepteams/webp/animation"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
)

// output returns the file of an output of an image.
func output(t testing.TB, file []byte, ext string, o render.Output) []byte {
	t.Helper()
	made, err := newMaker(t).Make(t.Context(), bytes.NewReader(file), checked(t, file, ext), o)
	if err != nil || made[0].Err != nil {
		t.Fatal(err, made)
	}
	return made[0].File
}

// decodedAs returns the pixels of a file of a format.
func decodedAs(t testing.TB, file []byte, format imaging.Format) image.Image {
	t.Helper()
	decode := map[imaging.Format]func(io.Reader) (image.Image, error){
		imaging.JPEG: jpeg.Decode, imaging.PNG: png.Decode,
	}[format]
	if decode == nil {
		return decodedWebP(t, file)
	}
	img, err := decode(bytes.NewReader(file))
	imagingtest.Must(t, err)
	return img
}

// averaged returns an image reduced by a whole factor.
func averaged(img image.Image, by int) *image.NRGBA {
	size := img.Bounds().Size().Div(by)
	out := image.NewNRGBA(image.Rectangle{Max: size})
	for y := range size.Y {
		for x := range size.X {
			var sum [4]uint32
			for i := range by * by {
				r, g, b, a := img.At(img.Bounds().Min.X+x*by+i%by, img.Bounds().Min.Y+y*by+i/by).RGBA()
				sum[0], sum[1], sum[2], sum[3] = sum[0]+r, sum[1]+g, sum[2]+b, sum[3]+a
			}
			n := uint32(by * by)
			out.Set(x, y, color.RGBA64{uint16(sum[0] / n), uint16(sum[1] / n), uint16(sum[2] / n), uint16(sum[3] / n)})
		}
	}
	return out
}

// TestOutputs compares outputs in all formats and orientations with the view of the image.
func TestOutputs(t *testing.T) {
	t.Parallel()
	img := scene(240, 160)
	stored := asJPEG(t, img)
	for _, format := range []imaging.Format{imaging.JPEG, imaging.PNG, imaging.WebP} {
		for o := 1; o <= 8; o++ {
			t.Run(fmt.Sprintf("%s as %d", format, o), func(t *testing.T) {
				t.Parallel()
				upright := turned(img, o)
				box := scale.Box{Width: upright.Bounds().Dx() / 4}
				file := output(t, withOrientation(stored, byte(o)), "jpg", render.Output{Format: format, Box: box, Quality: 95})
				if db := psnr(t, decodedAs(t, file, format), averaged(upright, 4), color.Gray{}); db < 36 {
					t.Errorf("it differs by %.1f dB", db)
				}
				if info := checked(t, file, format.Extension()); info.HasMetadata() || info.Orientation != imaging.Upright {
					t.Errorf("it has metadata or an orientation: %+v", info)
				}
			})
		}
	}
}

// TestOutputOfPNG: alpha is kept where the format has it, and white in JPEG.
func TestOutputOfPNG(t *testing.T) {
	t.Parallel()
	img := scene(120, 80)
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = byte(255 - i/4%120*2)
	}
	want := averaged(img, 2)
	for _, format := range []imaging.Format{imaging.JPEG, imaging.PNG, imaging.WebP} {
		got := decodedAs(t, output(t, asPNG(t, img), "png", render.Output{Format: format, Box: scale.Box{Width: 60}, Quality: 95}), format)
		backgrounds := []color.Gray{{0}, {255}}
		if format == imaging.JPEG {
			backgrounds = []color.Gray{{255}}
		}
		for _, over := range backgrounds {
			if db := psnr(t, got, want, over); db < 38 {
				t.Errorf("%s over %d differs by %.1f dB", format, over.Y, db)
			}
		}
	}
}

// TestOutputOfCover: the image is cropped at its centre and not enlarged.
func TestOutputOfCover(t *testing.T) {
	t.Parallel()
	img := scene(90, 60)
	file := output(t, asPNG(t, img), "png", render.Output{Format: imaging.PNG, Box: scale.Box{Width: 30, Height: 100, Cover: true}})
	got := decodedAs(t, file, imaging.PNG)
	want := img.SubImage(image.Rect(30, 0, 60, 60))
	if got.Bounds().Size() != image.Pt(30, 60) || psnr(t, got, want, color.Gray{}) < 60 {
		t.Errorf("it is of %v, and differs by %.1f dB", got.Bounds().Size(), psnr(t, got, want, color.Gray{}))
	}
}

// TestOutputProfile: the colour profile is kept in every format that can have one.
func TestOutputProfile(t *testing.T) {
	t.Parallel()
	for _, size := range []int{500, 65_520, 64 << 10} {
		profile := slices.Concat(make([]byte, 16), []byte("RGB XYZ "), make([]byte, 12), []byte("acsp"), make([]byte, size-40))
		file, err := imaging.WithProfile(asJPEG(t, scene(64, 48)), imaging.JPEG, profile)
		imagingtest.Must(t, err)
		for _, format := range []imaging.Format{imaging.JPEG, imaging.PNG, imaging.WebP} {
			small := output(t, file, "jpg", render.Output{Format: format, Box: scale.Box{Width: 32}})
			if got := checked(t, small, format.Extension()).Profile; !bytes.Equal(got, profile) {
				t.Errorf("%s has a profile of %d bytes, want %d", format, len(got), len(profile))
			}
			imagingtest.Equal(t, decodedAs(t, small, format).Bounds().Size(), image.Pt(32, 24), format, "is of")
		}
	}
}

// TestOutputOfAnimation: WebP is animated within the limits, every other output is the first frame.
func TestOutputOfAnimation(t *testing.T) {
	t.Parallel()
	g := &gif.GIF{Config: image.Config{Width: 40, Height: 20, ColorModel: ink}}
	for i := range 3 {
		frame := image.NewPaletted(image.Rect(0, 0, 40, 20), ink)
		for j := range frame.Pix {
			frame.Pix[j] = uint8(i + 1)
		}
		g.Image, g.Delay = append(g.Image, frame), append(g.Delay, 10*(i+1))
	}
	file := asGIF(t, g)
	half := scale.Box{Width: 20}
	moving := output(t, file, "gif", render.Output{Format: imaging.WebP, Box: half, FirstFrame: true})
	a, err := animation.Decode(bytes.NewReader(moving))
	if err != nil || len(a.Frames) != 3 {
		t.Fatalf("%d frames, %v", len(a.Frames), err)
	}
	// Of a WebP animation the same is made.
	again := output(t, moving, "webp", render.Output{Format: imaging.WebP, Box: scale.Box{Width: 10}, FirstFrame: true})
	if a, err = animation.Decode(bytes.NewReader(again)); err != nil || len(a.Frames) != 3 {
		t.Fatalf("%d frames, %v", len(a.Frames), err)
	}
	for ext, source := range map[string][]byte{"gif": file, "webp": moving} {
		for _, format := range []imaging.Format{imaging.JPEG, imaging.PNG} {
			still := decodedAs(t, output(t, source, ext, render.Output{Format: format, Box: scale.Box{Width: 10}}), format)
			want := image.NewNRGBA(image.Rect(0, 0, 10, 5))
			for i := range 50 {
				want.Set(i%10, i/10, ink[1])
			}
			if db := psnr(t, still, want, color.Gray{}); db < 30 {
				t.Errorf("the first frame of %s as %s differs by %.1f dB", ext, format, db)
			}
		}
	}
}

// TestOutputBeyondLimits: an animation over the limit of pixels shows its first frame.
func TestOutputBeyondLimits(t *testing.T) {
	t.Parallel()
	g := &gif.GIF{Config: image.Config{Width: 5000, Height: 5000, ColorModel: ink}}
	for range 17 {
		g.Image, g.Delay = append(g.Image, frame(0, "R")), append(g.Delay, 10)
	}
	file := asGIF(t, g)
	info := checked(t, file, "gif")
	m := newMaker(t)
	o := render.Output{Format: imaging.WebP, Box: scale.Box{Width: 100}}
	imagingtest.Fails(t, m.Feasible(info, o), "it can be made as an animation")
	o.FirstFrame = true
	img := decodedWebP(t, output(t, file, "gif", o))
	imagingtest.Equal(t, img.Bounds().Size(), image.Pt(100, 100), "the first frame is of")
}

// TestOneDecoding: the image is read once for the check of the caller, and once here.
func TestOneDecoding(t *testing.T) {
	t.Parallel()
	file := asPNG(t, scene(300, 200))
	r := &countingReader{Reader: bytes.NewReader(file)}
	outputs := []render.Output{render.Variant(render.Options{})}
	for width := 10; width <= 160; width += 10 {
		outputs = append(outputs, render.Output{Format: imaging.JPEG, Box: scale.Box{Width: width}})
	}
	made, err := newMaker(t).Make(t.Context(), r, checked(t, file, "png"), outputs...)
	imagingtest.Must(t, err)
	for i, m := range made {
		if m.Err != nil || len(m.File) == 0 {
			t.Errorf("output %d: %v", i, m.Err)
		}
	}
	if r.read > len(file) {
		t.Errorf("%d bytes were read of a file of %d", r.read, len(file))
	}
}

type countingReader struct {
	*bytes.Reader
	read int
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += n
	return n, err
}

// TestTinyOutputs: every side is at least one pixel.
func TestTinyOutputs(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{1, 1}, {2, 1}, {3000, 2}, {1, 3000}, {7, 5}} {
		for _, box := range []scale.Box{{Width: 1}, {Width: 100, Height: 100}, {Width: 3, Height: 3, Cover: true}} {
			for _, file := range []struct {
				ext  string
				data []byte
			}{{"png", asPNG(t, scene(size.X, size.Y))}, {"jpg", asJPEG(t, scene(size.X, size.Y))}} {
				for _, format := range []imaging.Format{imaging.JPEG, imaging.PNG, imaging.WebP} {
					got := decodedAs(t, output(t, file.data, file.ext, render.Output{Format: format, Box: box}), format).Bounds().Size()
					imagingtest.Equal(t, got, box.View(size.X, size.Y).Size, box, "of", size, "in", format, "is of")
				}
			}
		}
	}
}

// TestOrientations compares the input of the encoder with the expected view. Among the cases are
// odd sides, where a turn could move the chroma by half a sample.
func TestOrientations(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{64, 48}, {65, 49}, {64, 49}, {65, 48}, {1, 1}, {3, 100}} {
		file := asJPEG(t, scene(size.X, size.Y))
		stored, err := jpeg.Decode(bytes.NewReader(file))
		imagingtest.Must(t, err)
		for o := 1; o <= 8; o++ {
			t.Run(fmt.Sprintf("%dx%d as %d", size.X, size.Y, o), func(t *testing.T) {
				t.Parallel()
				got := recorded(t, withOrientation(file, byte(o)), "jpg").still[0]
				if db := psnr(t, got, turned(stored, o), color.Gray{}); db < 50 {
					t.Errorf("it differs by %.1f dB", db)
				}
				if even := size.X%2 == 0 && size.Y%2 == 0; even {
					if _, planes := got.(*image.YCbCr); !planes {
						t.Errorf("it was converted to %T", got)
					}
				}
			})
		}
	}
}

// TestPixels compares the input of the encoder with the decoded image, for every type that the
// decoders return.
func TestPixels(t *testing.T) {
	t.Parallel()
	soft := scene(37, 23)
	for i := 3; i < len(soft.Pix); i += 4 {
		soft.Pix[i] = byte(i)
	}
	deep, opaqueDeep := image.NewNRGBA64(soft.Rect), image.NewRGBA64(soft.Rect)
	grey, deepGrey := image.NewGray(soft.Rect), image.NewGray16(soft.Rect)
	palette := image.NewPaletted(soft.Rect, color.Palette{
		color.NRGBA{}, color.NRGBA{200, 10, 10, 255}, color.NRGBA{10, 200, 10, 100},
	})
	for y := range 23 {
		for x := range 37 {
			c := soft.NRGBAAt(x, y)
			deep.SetNRGBA64(x, y, color.NRGBA64{uint16(c.R) * 257, uint16(c.G) * 257, uint16(c.B) * 257, uint16(c.A) * 257})
			opaqueDeep.Set(x, y, scene(37, 23).At(x, y))
			grey.Set(x, y, c)
			deepGrey.Set(x, y, c)
			palette.SetColorIndex(x, y, uint8((x/5+y/5)%3))
		}
	}
	for name, img := range map[string]image.Image{
		"colours": scene(37, 23), "alpha": soft, "deep": opaqueDeep, "deep alpha": deep,
		"grey": grey, "deep grey": deepGrey, "palette": palette,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, straight := recorded(t, asPNG(t, img), "png").still[0].(*image.NRGBA)
			if !straight {
				t.Fatalf("the encoder got %T", got)
			}
			for y := range 23 {
				for x := range 37 {
					want := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
					if have := got.NRGBAAt(x, y); have.A != want.A || have.A > 0 && !near(have, want) {
						t.Fatalf("at %d, %d: %v, not %v", x, y, have, want)
					}
				}
			}
		})
	}
}

// near allows for the loss of multiplying by alpha and dividing again.
func near(a, b color.NRGBA) bool {
	lost := 1 + 255/int(max(1, a.A))
	within := func(x, y byte) bool { return int(x)-int(y) <= lost && int(y)-int(x) <= lost }
	return within(a.R, b.R) && within(a.G, b.G) && within(a.B, b.B)
}

func TestFewColors(t *testing.T) {
	t.Parallel()
	draw := func(colors int) *image.NRGBA {
		img := image.NewNRGBA(image.Rect(0, 0, 40, 40))
		for i := range 1600 {
			c := i % colors
			img.SetNRGBA(i%40, i/40, color.NRGBA{byte(c), byte(c >> 8), 7, 255})
		}
		return img
	}
	invisible := draw(255)
	for i := range 400 { // of many colours, but all of them invisible
		invisible.SetNRGBA(i%40, i/40, color.NRGBA{byte(i), 99, byte(i >> 4), 0})
	}
	for _, c := range []struct {
		name     string
		img      *image.NRGBA
		lossless bool
	}{
		{"one", draw(1), true},
		{"256", draw(256), true},
		{"257", draw(257), false},
		{"1600", draw(1600), false},
		{"255 and invisible ones", invisible, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := recorded(t, asPNG(t, c.img), "png")
			imagingtest.Equal(t, len(r.still) == 2 && r.lossless[1], c.lossless, "tried without loss")
		})
	}
}
