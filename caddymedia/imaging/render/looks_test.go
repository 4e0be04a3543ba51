package render_test

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deepteams/webp/animation"

	"github.com/caddymedia/media/caddymedia/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/imaging/render"
)

// TestAlpha: edges are not darkened, as they would be if straight alpha were read as premultiplied.
func TestAlpha(t *testing.T) {
	t.Parallel()
	images := map[string]*image.NRGBA{"drawn": scene(600, 400)}
	if root := os.Getenv("MEDIA_TEST_CORPUS"); root != "" {
		file, err := fs.ReadFile(os.DirFS(root), "color/photo-srgb-1200.jpg")
		if err != nil {
			t.Fatal(err)
		}
		photo, err := jpeg.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		images["photograph"] = turned(photo, 1).(*image.NRGBA)
	}
	for name, img := range images {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			size := img.Bounds().Size()
			for y := range size.Y {
				for x := range size.X { // opaque in the middle, soft around, transparent at the corners
					dx, dy := 2*x-size.X, 2*y-size.Y
					away := (dx*dx*255/size.X/size.X + dy*dy*255/size.Y/size.Y)
					img.Pix[img.PixOffset(x, y)+3] = byte(min(max(380-2*away, 0), 255))
				}
			}
			got := decodedWebP(t, made(t, asPNG(t, img), "png", render.Options{}))
			for _, over := range []color.Gray{{0}, {255}} {
				db := psnr(t, got, img, over)
				t.Logf("%.1f dB over %d", db, over.Y)
				if db < 40 {
					t.Errorf("%.1f dB over %d, want at least 40", db, over.Y)
				}
			}
		})
	}
}

// TestMoving compares each frame of a variant with that of the GIF.
func TestMoving(t *testing.T) {
	t.Parallel()
	palette := make(color.Palette, 0, 256)
	palette = append(palette, color.NRGBA{})
	for i := range 255 {
		palette = append(palette, color.NRGBA{byte(i), byte(255 - i), 100, 255})
	}
	g := &gif.GIF{LoopCount: 2, Config: image.Config{Width: 64, Height: 48, ColorModel: palette}}
	for i := range 6 {
		area := image.Rect(0, 0, 64, 48)
		if i > 0 {
			area = image.Rect(4*i, 3*i, 4*i+30, 3*i+20)
		}
		img := image.NewPaletted(area, palette)
		for j := range img.Pix {
			img.Pix[j] = byte(1 + 2*(j%area.Dx()) + j/area.Dx() + 10*i)
		}
		g.Image, g.Delay = append(g.Image, img), append(g.Delay, 10*(i+1))
		g.Disposal = append(g.Disposal, []byte{gif.DisposalNone, gif.DisposalBackground, gif.DisposalPrevious}[i%3])
	}
	files := map[string][]byte{"drawn": asGIF(t, g)}
	if root := os.Getenv("MEDIA_TEST_CORPUS"); root != "" {
		for _, name := range []string{"anim/pan-10f.gif", "anim/dispose-background-alpha.gif", "anim/dispose-previous-alpha.gif"} {
			file, err := fs.ReadFile(os.DirFS(root), name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = file
		}
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := recorded(t, file, "gif")
			a, err := animation.DecodeBytes(made(t, file, "gif", render.Options{Quality: 95}))
			if err == nil {
				err = a.DecodeFrames()
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.LoopCount != want.loops {
				t.Errorf("it plays %d times, want %d", a.LoopCount, want.loops)
			}
			least := 32.0
			if strings.Contains(name, "pan") {
				least = 26 // it is dithered, and the player of the test loses 5 dB of it
			}
			play(t, a, want, least)
		})
	}
}

// play compares frames and times. Equal frames may have been merged.
func play(t *testing.T, a *animation.Animation, want *recorder, least float64) {
	t.Helper()
	player, err := animation.NewAnimDecoder(a)
	if err != nil {
		t.Fatal(err)
	}
	var shown time.Duration
	var canvas *image.NRGBA
	var until time.Duration
	for i, frame := range want.frames {
		if shown >= until && player.HasNext() {
			next, lasts, err := player.NextFrame()
			if err != nil {
				t.Fatal(err)
			}
			canvas, until = next, until+lasts
		}
		for _, over := range []color.Gray{{0}, {255}} {
			if db := psnr(t, canvas, frame, over); db < least {
				t.Errorf("frame %d: %.1f dB over %d", i, db, over.Y)
			}
		}
		shown += want.delays[i]
	}
	if shown != until || player.HasNext() {
		t.Errorf("it lasts %v, want %v", until, shown)
	}
}

// TestNoMetadata: a variant has the colour profile of its image, but no other metadata.
func TestNoMetadata(t *testing.T) {
	t.Parallel()
	root := os.DirFS(imagingtest.Corpus(t))
	names, err := fs.Glob(root, "orientation/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files (%v)", len(names), err)
	}
	for _, name := range append(names, "color/photo-displayp3-1200.jpg", "color/photo-adobergb-1200.jpg") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := fs.ReadFile(root, name)
			if err != nil {
				t.Fatal(err)
			}
			ext := name[strings.LastIndexByte(name, '.')+1:]
			info, got := checked(t, file, ext), chunks(t, made(t, file, ext, render.Options{}))
			for kind := range got {
				if !slices.Contains([]string{"VP8X", "VP8 ", "VP8L", "ALPH", "ICCP"}, kind) {
					t.Errorf("it has a chunk %q", kind)
				}
			}
			if !bytes.Equal(got["ICCP"], info.Profile) {
				t.Errorf("its profile has %d bytes, want %d", len(got["ICCP"]), len(info.Profile))
			}
			if strings.HasPrefix(name, "color/") && len(got["ICCP"]) == 0 {
				t.Error("it has no profile")
			}
		})
	}
}

// chunks returns the parts of a WebP file.
func chunks(t *testing.T, file []byte) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for rest := file[12:]; len(rest) >= 8; {
		size := int(rest[4]) | int(rest[5])<<8 | int(rest[6])<<16
		found[string(rest[:4])] = rest[8 : 8+size]
		rest = rest[8+size+size%2:]
	}
	return found
}
