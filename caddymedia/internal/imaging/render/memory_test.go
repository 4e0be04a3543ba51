package render_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/imaging/webp"
	"github.com/caddymedia/media/internal/test"
)

// TestMemoryEstimates compares the estimated memory of an image with all allocations of its
// decoder and of the conversion. They can never hold more than that at a time.
func TestMemoryEstimates(t *testing.T) {
	deep := image.NewNRGBA64(image.Rect(0, 0, 701, 500))
	draw.Draw(deep, deep.Rect, scene(701, 500), image.Point{}, draw.Src)
	deep.Pix[6] = 1 // not opaque
	files := map[string][]byte{
		"photo.jpg": asJPEG(t, scene(700, 500)), "odd.jpg": asJPEG(t, scene(701, 501)),
		"grey.jpg":    asJPEG(t, image.NewGray(image.Rect(0, 0, 701, 500))),
		"colours.png": asPNG(t, scene(701, 500)), "deep.png": asPNG(t, deep),
		"grey.png": asPNG(t, image.NewGray(image.Rect(0, 0, 701, 500))),
	}
	for o := byte(2); o <= 8; o++ {
		files[fmt.Sprintf("turned-%d.jpg", o)] = withOrientation(files["photo.jpg"], o)
		files[fmt.Sprintf("odd-turned-%d.jpg", o)] = withOrientation(files["odd.jpg"], o)
	}
	if root := os.Getenv("MEDIA_TEST_CORPUS"); root != "" {
		for _, folder := range []string{"valid", "color", "orientation", "anim"} {
			names, err := fs.Glob(os.DirFS(root), folder+"/*")
			if err != nil || len(names) == 0 {
				t.Fatalf("%d files (%v)", len(names), err)
			}
			for _, name := range names {
				file, err := fs.ReadFile(os.DirFS(root), name)
				test.Must(t, err)
				files[name] = file
			}
		}
	}
	for name, file := range files {
		info := checked(t, file, strings.TrimPrefix(path.Ext(name), "."))
		decoding, converting := render.Memory(info)
		var decoded, converted int64
		if info.Format == imaging.GIF {
			g, err := imaging.DecodeGIF(bytes.NewReader(file), info)
			test.Must(t, err)
			decoded = allocated(func() { _, _ = imaging.DecodeGIF(bytes.NewReader(file), info) })
			if info.Frames == 1 {
				converted = allocated(func() { render.Compose(g) })
			}
		} else {
			img, err := imaging.Decode(bytes.NewReader(file), info)
			test.Must(t, err, name)
			decoded = allocated(func() { _, _ = imaging.Decode(bytes.NewReader(file), info) })
			converted = allocated(func() { render.Upright(img, info) })
		}
		tables := int64(192+32*info.Frames) << 10 // tables, whatever the size of the image or frame
		if most := decoding + decoding/20 + tables; decoded > most {
			t.Errorf("decoding %s takes %d bytes, at most %d are expected", name, decoded, most)
		}
		if most := decoding + converting + (decoding+converting)/20 + tables; decoded+converted > most {
			t.Errorf("with converting %s takes %d bytes, at most %d are expected", name, decoded+converted, most)
		}
	}
}

// TestAlphaMemory: an image with alpha is only encoded if there is the memory for that.
func TestAlphaMemory(t *testing.T) {
	t.Parallel()
	alpha := scene(100, 100)
	alpha.Pix[3] = 128
	m := render.NewMaker(&recorder{memory: 100}, render.Limits{Memory: 100 * 100 * 150})
	for name, tt := range map[string]struct {
		img  image.Image
		want error
	}{"opaque": {scene(100, 100), nil}, "alpha": {alpha, render.ErrNone}} {
		file := asPNG(t, tt.img)
		_, err := variantOf(t.Context(), m, bytes.NewReader(file), checked(t, file, "png"), render.Options{})
		test.Is(t, err, tt.want, name)
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestLosslessIsPlanned: a photograph that becomes pixels by its turn is never encoded losslessly,
// however few colours it has. Its memory is estimated for lossy encoding.
func TestLosslessIsPlanned(t *testing.T) {
	t.Parallel()
	plain := image.NewNRGBA(image.Rect(0, 0, 101, 101))
	draw.Draw(plain, plain.Rect, image.NewUniform(color.NRGBA{R: 255, A: 255}), image.Point{}, draw.Src)
	r := recorded(t, withOrientation(asJPEG(t, plain), 3), "jpg")
	if len(r.still) != 1 || slices.Contains(r.lossless, true) {
		t.Errorf("encoded %d times, losslessly: %v", len(r.still), r.lossless)
	}
}

// heap is an encoder that measures the live memory during animations.
type heap struct {
	recorder
	live uint64
}

func (h *heap) Animate(_ context.Context, a webp.Animation, _ webp.Options) ([]byte, error) {
	for range a.Frames {
		h.live = max(h.live, liveMemory())
	}
	return []byte("moving"), nil
}

// liveMemory returns the bytes in use.
func liveMemory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestAnimationMemory compares the estimated memory of animations with the memory in use.
func TestAnimationMemory(t *testing.T) {
	g := &gif.GIF{Config: image.Config{Width: 1000, Height: 1000, ColorModel: ink}}
	for i := range 3 {
		f := image.NewPaletted(image.Rect(0, 0, 1000, 1000), ink)
		for j := range f.Pix {
			f.Pix[j] = uint8((i + j) % len(ink))
		}
		g.Image, g.Delay, g.Disposal = append(g.Image, f), append(g.Delay, 10), append(g.Disposal, gif.DisposalPrevious)
	}
	file := asGIF(t, g)
	info := checked(t, file, "gif")
	small := scale.Box{Width: 100}
	for name, outputs := range map[string][]render.Output{
		"whole":            {render.Variant(render.Options{})},
		"scaled":           {{Format: imaging.WebP, Box: scale.Box{Width: 900}}},
		"whole and still":  {render.Variant(render.Options{}), {Format: imaging.JPEG, Box: small}},
		"scaled and still": {{Format: imaging.JPEG, Box: small}, {Format: imaging.WebP, Box: small, FirstFrame: true}},
	} {
		e := new(heap)
		m := render.NewMaker(e, render.Limits{})
		before := liveMemory()
		_, err := m.Make(t.Context(), bytes.NewReader(file), info, outputs...)
		test.Must(t, err)
		const tables = 256 << 10
		most := render.MakingMemory(m, info, outputs...) + tables
		if live := int64(e.live - before); live > most {
			t.Errorf("%s: %d bytes in use, at most %d are expected", name, live, most)
		}
	}
}

// TestMemoryOfFiles: the memory for several outputs includes their files. Outputs beyond the limit
// are not made, and a variant is the last of them.
func TestMemoryOfFiles(t *testing.T) {
	t.Parallel()
	noise := image.NewNRGBA(image.Rect(0, 0, 200, 200))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise.Pix {
		noise.Pix[i] = byte(random.Uint32())
	}
	file := asPNG(t, noise)
	info := checked(t, file, "png")
	one := []render.Output{{Format: imaging.PNG, Box: scale.Box{Width: 190}}}
	outputs := slices.Repeat(one, 16)
	free := render.NewMaker(new(recorder), render.Limits{})
	made, err := free.Make(t.Context(), bytes.NewReader(file), info, outputs...)
	test.Must(t, err)
	files := int64(0)
	for _, o := range made[1:] {
		files += int64(cap(o.File))
	}
	least := render.MakingMemory(free, info, one...)
	if all := render.MakingMemory(free, info, outputs...); all < least+files*95/100 {
		t.Errorf("%d bytes for all outputs, %d for one, and the files have %d", all, least, files)
	}
	tight := render.NewMaker(new(recorder), render.Limits{Memory: least + files/2})
	made, err = tight.Make(t.Context(), bytes.NewReader(file), info, append(outputs, render.Variant(render.Options{}))...)
	test.Must(t, err)
	for i, want := range map[int]error{0: render.ErrNone, 15: nil, 16: nil} {
		if !errors.Is(made[i].Err, want) {
			t.Errorf("output %d: %v, want %v", i, made[i].Err, want)
		}
	}
}

// unplugged is an encoder during whose animations the image cannot be read any more.
type unplugged struct {
	recorder
	*bytes.Reader
	gone bool
}

var errGone = errors.New("the disk is gone")

func (u *unplugged) Animate(ctx context.Context, a webp.Animation, opts webp.Options) ([]byte, error) {
	u.gone = true
	return u.recorder.Animate(ctx, a, opts)
}

func (u *unplugged) Read(p []byte) (int, error) {
	if u.gone {
		return 0, errGone
	}
	return u.Reader.Read(p)
}

// TestFramesAreGone: a failure to read the frames of an animation again is an error of the job. It
// says nothing about the image.
func TestFramesAreGone(t *testing.T) {
	t.Parallel()
	moving := output(t, asGIF(t, words("RRRR", "GGGG", "BBBB")), "gif", render.Output{Format: imaging.WebP})
	info := checked(t, moving, "webp")
	rendition := render.Output{Format: imaging.WebP, Box: scale.Box{Width: 2}, FirstFrame: true}
	for _, o := range []render.Output{render.Variant(render.Options{}), rendition} {
		u := &unplugged{Reader: bytes.NewReader(moving)}
		made, err := render.NewMaker(u, render.Limits{}).Make(t.Context(), u, info, o, o)
		if !errors.Is(err, errGone) || errors.Is(err, render.ErrNone) || made != nil {
			t.Errorf("got %v, %v", made, err)
		}
	}
}
