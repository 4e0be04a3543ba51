package render_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
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
				if err != nil {
					t.Fatal(err)
				}
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
			if err != nil {
				t.Fatal(err)
			}
			decoded = allocated(func() { _, _ = imaging.DecodeGIF(bytes.NewReader(file), info) })
			if info.Frames == 1 {
				converted = allocated(func() { render.Compose(g) })
			}
		} else {
			img, err := imaging.Decode(bytes.NewReader(file), info)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
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
	for name, test := range map[string]struct {
		img  image.Image
		want error
	}{"opaque": {scene(100, 100), nil}, "alpha": {alpha, render.ErrNone}} {
		file := asPNG(t, test.img)
		_, err := variantOf(t.Context(), m, bytes.NewReader(file), checked(t, file, "png"), render.Options{})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
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
