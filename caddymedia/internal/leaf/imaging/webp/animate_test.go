package webp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"iter"
	"testing"
	"time"

	"github.com/deepteams/webp/animation"
	"github.com/deepteams/webp/mux"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
)

type shown struct {
	img  *image.NRGBA
	time time.Duration
}

// moving returns frames in which a square moves over an image. With alpha, it is a hole in every
// second frame.
func moving(frames int, alpha bool) []shown {
	out := make([]shown, 0, frames)
	for i := range frames {
		img := draw(160, 121)
		if alpha {
			img = drawAlpha(160, 121)
		}
		for y := 10 + 3*i; y < 50+3*i; y++ {
			for x := 21 + 7*i; x < 60+7*i; x++ {
				img.SetNRGBA(x, y, color.NRGBA{uint8(4 * y), 90, uint8(2 * x), 255})
				if alpha && i%2 == 1 {
					img.SetNRGBA(x, y, color.NRGBA{})
				}
			}
		}
		out = append(out, shown{img, time.Duration(20+10*i) * time.Millisecond})
	}
	return out
}

// reused yields the frames in one image, like the canvas of a GIF.
func reused(frames []shown) iter.Seq2[*image.NRGBA, time.Duration] {
	return func(yield func(*image.NRGBA, time.Duration) bool) {
		if len(frames) == 0 {
			return
		}
		canvas := image.NewNRGBA(frames[0].img.Rect)
		for _, f := range frames {
			copy(canvas.Pix, f.img.Pix)
			if !yield(canvas, f.time) {
				return
			}
		}
	}
}

func animate(t testing.TB, frames []shown, loops int, opts webp.Options) []byte {
	t.Helper()
	size := frames[0].img.Rect.Size()
	a := webp.Animation{Width: size.X, Height: size.Y, Loops: loops, Frames: reused(frames)}
	file, err := newEncoder(t).Animate(t.Context(), a, opts)
	imagingtest.Must(t, err)
	return file
}

// still returns the file of a frame, because the decoder's own frames have wrong colours.
func still(f animation.Frame) []byte {
	chunk := func(b []byte, id string, data []byte) []byte {
		b = append(b, id...)
		b = append(b, byte(len(data)), byte(len(data)>>8), byte(len(data)>>16), 0)
		b = append(b, data...)
		return append(b, make([]byte, len(data)%2)...)
	}
	b := []byte("WEBP")
	switch {
	case len(f.AlphaData) > 0:
		// The size is in the header of the image, after a tag and a start code.
		d := f.BitstreamData
		w, h := int(d[6])+int(d[7])<<8-1, int(d[8])+int(d[9])<<8-1
		b = chunk(b, "VP8X", []byte{0x10, 0, 0, 0, byte(w), byte(w >> 8), 0, byte(h), byte(h >> 8), 0})
		b = chunk(chunk(b, "ALPH", f.AlphaData), "VP8 ", d)
	case f.BitstreamData[0] == 0x2F:
		b = chunk(b, "VP8L", f.BitstreamData)
	default:
		b = chunk(b, "VP8 ", f.BitstreamData)
	}
	return append([]byte{'R', 'I', 'F', 'F', byte(len(b)), byte(len(b) >> 8), byte(len(b) >> 16), 0}, b...)
}

// play returns the displayed frames.
func play(t testing.TB, file []byte) (frames []shown, loops int) {
	t.Helper()
	a, err := animation.Decode(bytes.NewReader(file))
	imagingtest.Must(t, err)
	for i, f := range a.Frames {
		a.Frames[i].Image = decode(t, still(f))
	}
	d, err := animation.NewAnimDecoder(a)
	imagingtest.Must(t, err)
	for d.HasNext() {
		img, time, err := d.NextFrame()
		imagingtest.Must(t, err)
		frames = append(frames, shown{img, time})
	}
	return frames, a.LoopCount
}

func TestAnimate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		alpha bool
		loops int
		opts  webp.Options
		least float64
	}{
		"opaque":         {false, 0, webp.Options{}, 34},
		"alpha":          {true, 3, webp.Options{Quality: 95}, 34},
		"fast":           {true, 1, webp.Options{Effort: webp.Fast, Quality: 95}, 34},
		"lossless":       {false, 65535, webp.Options{Lossless: true}, 99},
		"lossless alpha": {true, 2, webp.Options{Lossless: true, Effort: webp.Fast}, 99},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := moving(9, tt.alpha)
			frames, loops := play(t, animate(t, want, tt.loops, tt.opts))
			if loops != tt.loops || len(frames) != len(want) {
				t.Fatalf("%d frames %d times, want %d and %d", len(frames), loops, len(want), tt.loops)
			}
			for i, f := range frames {
				imagingtest.Equal(t, f.time, want[i].time, "frame", i, "for")
				for _, background := range []float64{0, 255} {
					if db := psnr(f.img, want[i].img, background); db < tt.least {
						t.Errorf("frame %d over %v: %.2f dB", i, background, db)
					}
				}
			}
		})
	}
}

func TestAnimateTimes(t *testing.T) {
	t.Parallel()
	frames := moving(6, false)
	const long = 1<<24 - 1
	times := []time.Duration{0, -time.Second, 1500 * time.Microsecond, 1500 * time.Microsecond, time.Hour * 24, 40 * time.Millisecond}
	for i := range frames {
		frames[i].time = times[i]
	}
	got, loops := play(t, animate(t, frames, 1<<20, webp.Options{}))
	if loops != 1<<16-1 {
		t.Errorf("%d loops", loops)
	}
	var sum time.Duration
	for _, f := range got {
		sum += f.time
	}
	imagingtest.Equal(t, sum, (3+long+40)*time.Millisecond, "plays for")
}

// TestAnimateSame: equal frames may be merged, with the sum of their durations.
func TestAnimateSame(t *testing.T) {
	t.Parallel()
	frames := moving(3, true)
	frames = []shown{frames[0], frames[0], frames[1], frames[1], frames[2], frames[2]}
	var sum time.Duration
	got, _ := play(t, animate(t, frames, 0, webp.Options{}))
	for _, f := range got {
		sum += f.time
	}
	if want := (20 + 20 + 30 + 30 + 40 + 40) * time.Millisecond; sum != want || len(got) != 3 {
		t.Errorf("%d frames play for %v, want 3 and %v", len(got), sum, want)
	}
}

func TestAnimateOneFrame(t *testing.T) {
	t.Parallel()
	frames := moving(1, true)
	for _, profile := range [][]byte{nil, []byte("icc")} {
		file := animate(t, frames, 0, webp.Options{Lossless: true, Profile: profile})
		alike(t, file, frames[0].img, 99)
	}
}

func TestAnimateProfile(t *testing.T) {
	t.Parallel()
	profile := bytes.Repeat([]byte("icc"), 99)
	for name, tt := range map[string]struct {
		alpha bool
		flags byte
	}{"opaque": {false, 0x22}, "alpha": {true, 0x32}} {
		file := animate(t, moving(3, tt.alpha), 0, webp.Options{Profile: profile})
		if got := chunkOf(t, file, mux.FourCCICCP); !bytes.Equal(got, profile) {
			t.Errorf("%s: a profile of %d bytes", name, len(got))
		}
		if frames, _ := play(t, file); len(frames) != 3 {
			t.Errorf("%s: %d frames", name, len(frames))
		}
		// libwebp sets the alpha flag of an animation if a frame omits unchanged pixels.
		if file[20]|0x10 != tt.flags|0x10 || file[20]&tt.flags != tt.flags {
			t.Errorf("%s: flags %#x, want %#x", name, file[20], tt.flags)
		}
	}
}

func TestAnimateRefuses(t *testing.T) {
	t.Parallel()
	e := newEncoder(t)
	good := moving(2, false)
	size := good[0].img.Rect.Size()
	for name, a := range map[string]webp.Animation{
		"no frames":     {Width: 5, Height: 5, Frames: reused(nil)},
		"another size":  {Width: size.X + 1, Height: size.Y, Frames: reused(good)},
		"no size":       {Frames: reused(good)},
		"negative size": {Width: -size.X, Height: -size.Y, Frames: reused(good)},
		"few pixels": {Width: 4, Height: 4, Frames: func(yield func(*image.NRGBA, time.Duration) bool) {
			yield(&image.NRGBA{Stride: 16, Rect: image.Rect(0, 0, 4, 4)}, 0)
		}},
	} {
		if file, err := e.Animate(t.Context(), a, webp.Options{}); err == nil || file != nil {
			t.Errorf("%s: %d bytes, %v", name, len(file), err)
		}
	}
	wide := webp.Animation{Width: webp.MaxSide + 1, Height: 1, Frames: reused(good)}
	_, err := e.Animate(t.Context(), wide, webp.Options{})
	imagingtest.Is(t, err, webp.ErrTooWide)
	_, err = e.Animate(t.Context(), webp.Animation{Width: size.X, Height: size.Y, Frames: reused(good)}, webp.Options{Quality: 400})
	imagingtest.Fails(t, err, "a quality of 400 passes")
}

func TestAnimateStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	frames := moving(8, false)
	asked, ended := 0, false
	a := webp.Animation{Width: 160, Height: 121, Frames: func(yield func(*image.NRGBA, time.Duration) bool) {
		for _, f := range frames {
			if asked++; asked == 3 {
				cancel(cause)
			}
			if !yield(f.img, f.time) {
				ended = true
				return
			}
		}
	}}
	file, err := newEncoder(t).Animate(ctx, a, webp.Options{})
	if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || file != nil {
		t.Errorf("%d bytes, %v", len(file), err)
	}
	if asked != 3 || !ended {
		t.Errorf("asked for %d frames, got the end: %v", asked, ended)
	}
	asked = 0
	if _, err := newEncoder(t).Animate(ctx, a, webp.Options{}); !errors.Is(err, cause) || asked != 0 {
		t.Errorf("%d frames, %v", asked, err)
	}
}

func chunkOf(t testing.TB, file []byte, id uint32) []byte {
	t.Helper()
	d, err := mux.NewDemuxer(file)
	imagingtest.Must(t, err)
	data, err := d.GetChunk(id)
	imagingtest.Must(t, err)
	return data
}

// kinds returns images whose files have all possible structures.
func kinds() map[string]struct {
	img   image.Image
	opts  webp.Options
	flags byte
} {
	type kind = struct {
		img   image.Image
		opts  webp.Options
		flags byte
	}
	return map[string]kind{
		"planes":         {planes(draw(37, 21)), webp.Options{}, 0x20},
		"opaque":         {draw(37, 21), webp.Options{}, 0x20},
		"alpha":          {drawAlpha(37, 21), webp.Options{}, 0x30},
		"lossless":       {draw(37, 21), webp.Options{Lossless: true}, 0x20},
		"lossless alpha": {drawAlpha(37, 21), webp.Options{Lossless: true}, 0x30},
	}
}

func TestProfile(t *testing.T) {
	t.Parallel()
	for name, k := range kinds() {
		for _, length := range []int{1, 2, 735, 736} {
			profile := bytes.Repeat([]byte{'p'}, length)
			k.opts.Profile = nil
			img := k.img
			if p, ok := img.(*image.YCbCr); ok {
				img, k.img = clonePlanes(p), clonePlanes(p)
			}
			bare := encode(t, img, k.opts)
			k.opts.Profile = profile
			if p, ok := k.img.(*image.YCbCr); ok {
				img = clonePlanes(p)
			}
			file := encode(t, img, k.opts)
			if got := chunkOf(t, file, mux.FourCCICCP); !bytes.Equal(got, profile) {
				t.Errorf("%s: a profile of %d bytes came back as %q", name, length, got)
			}
			if !bytes.Equal(decode(t, file).Pix, decode(t, bare).Pix) {
				t.Errorf("%s: another image", name)
			}
			if id, flags := string(file[12:16]), file[20]; id != "VP8X" || flags != k.flags {
				t.Errorf("%s: %s with flags %#x, want %#x", name, id, flags, k.flags)
			}
			if w, h := uint24(file[24:])+1, uint24(file[27:])+1; w != 37 || h != 21 {
				t.Errorf("%s: a canvas of %d x %d", name, w, h)
			}
			if n := binary.LittleEndian.Uint32(file[4:]); int(n) != len(file)-8 || n%2 != 0 {
				t.Errorf("%s: size %d of a file of %d bytes", name, n, len(file))
			}
		}
	}
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

func TestProfileIsReplaced(t *testing.T) {
	t.Parallel()
	file := encode(t, draw(9, 9), webp.Options{Profile: []byte("one")})
	file, err := webp.WithProfile(file, []byte("another"))
	imagingtest.Must(t, err)
	if n := bytes.Count(file, []byte("ICCP")); n != 1 || string(chunkOf(t, file, mux.FourCCICCP)) != "another" {
		t.Errorf("%d profiles", n)
	}
	decode(t, file)
}

func TestProfileNeedsAFile(t *testing.T) {
	t.Parallel()
	file := encode(t, drawAlpha(20, 20), webp.Options{})
	for n := range len(file) {
		_, err := webp.WithProfile(file[:n], []byte("p"))
		imagingtest.Fails(t, err, "passes with", n, "of", len(file), "bytes")
	}
}

func FuzzWithProfile(f *testing.F) {
	for _, k := range kinds() {
		f.Add(encode(f, k.img, k.opts), []byte("profile"))
	}
	f.Fuzz(func(t *testing.T, data, profile []byte) {
		file, err := webp.WithProfile(data, profile)
		if err != nil {
			return
		}
		if string(file[12:16]) != "VP8X" || file[20]&0x20 == 0 || !bytes.Equal(file[38:][:len(profile)], profile) {
			t.Errorf("%q", file[:min(len(file), 60)])
		}
		again, err := webp.WithProfile(file, profile)
		if err != nil || !bytes.Equal(again, file) {
			t.Errorf("a second time: %v", err)
		}
	})
}
