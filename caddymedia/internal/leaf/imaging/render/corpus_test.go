package render_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	decoder "github.com/deepteams/webp"
	"github.com/deepteams/webp/animation"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// newMaker returns a Maker with the encoder of this build.
func newMaker(t testing.TB) *render.Maker {
	t.Helper()
	encoder, err := webp.New()
	imagingtest.Must(t, err)
	return render.NewMaker(encoder, render.Limits{})
}

// made returns the variant of an image.
func made(t testing.TB, file []byte, ext string, opts render.Options) []byte {
	t.Helper()
	out, err := variantOf(t.Context(), newMaker(t), bytes.NewReader(file), checked(t, file, ext), opts)
	imagingtest.Must(t, err)
	return out
}

func decodedWebP(t testing.TB, file []byte) image.Image {
	t.Helper()
	img, err := decoder.Decode(bytes.NewReader(file))
	imagingtest.Must(t, err, "decoding the variant")
	planes, lossy := img.(*image.YCbCr)
	if !lossy {
		return img
	}
	out := image.NewNRGBA(planes.Rect)
	for y := range planes.Rect.Dy() {
		for x := range planes.Rect.Dx() {
			out.SetNRGBA(x, y, limitedRange(planes.YCbCrAt(x, y)))
		}
	}
	return out
}

// limitedRange returns the colour of a sample in the limited range of WebP, ITU-R BT.601.
// image/color assumes the full range of JPEG.
func limitedRange(c color.YCbCr) color.NRGBA {
	y, cb, cr := 1.164383*(float64(c.Y)-16), float64(c.Cb)-128, float64(c.Cr)-128
	sample := func(v float64) uint8 { return uint8(math.Round(min(max(v, 0), 255))) }
	return color.NRGBA{sample(y + 1.596027*cr), sample(y - 0.391762*cb - 0.812968*cr), sample(y + 2.017232*cb), 255}
}

// reference decodes an image in the simplest way.
func reference(t testing.TB, file []byte, info imaging.Info) image.Image {
	t.Helper()
	var img image.Image
	var err error
	switch info.Format {
	case imaging.JPEG:
		img, err = jpeg.Decode(bytes.NewReader(file))
	case imaging.PNG:
		img, err = png.Decode(bytes.NewReader(file))
	default:
		img, err = gif.Decode(bytes.NewReader(file))
	}
	imagingtest.Must(t, err)
	toSRGB, err := info.ToSRGB(bytes.NewReader(file))
	imagingtest.Must(t, err)
	upright := turned(img, int(info.Orientation))
	if toSRGB == nil || info.Components == 4 {
		return upright
	}
	pixels := image.NewNRGBA(upright.Bounds())
	draw.Draw(pixels, pixels.Rect, upright, pixels.Rect.Min, draw.Src)
	toSRGB.Pixels(pixels.Pix)
	return pixels
}

// TestCorpus makes the variant of every image and compares the visible colours.
func TestCorpus(t *testing.T) {
	t.Parallel()
	root := os.DirFS(imagingtest.Corpus(t))
	for _, folder := range []string{"valid", "color", "orientation"} {
		err := fs.WalkDir(root, folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				file, err := fs.ReadFile(root, name)
				imagingtest.Must(t, err)
				compare(t, name, file)
			})
			return nil
		})
		imagingtest.Must(t, err)
	}
}

func compare(t *testing.T, name string, file []byte) {
	t.Helper()
	ext := strings.TrimPrefix(filepath.Ext(name), ".")
	info := checked(t, file, ext)
	out := made(t, file, ext, render.Options{})
	got, want := decodedWebP(t, out), reference(t, file, info)
	least := 27.0 // small images full of detail
	switch {
	case info.Width >= 1000:
		least = 36
	case strings.Contains(name, "alpha"):
		least = 36
	case info.Width < 100:
		least = 22 // test cards of the sharpest colours, whose chroma WebP halves
	}
	for _, over := range []color.Gray{{0}, {255}} {
		db := psnr(t, got, want, over)
		t.Logf("%.1f dB over %d, %d bytes of %d", db, over.Y, len(out), len(file))
		if db < least {
			t.Errorf("%.1f dB over %d, want at least %.0f", db, over.Y, least)
		}
	}
}

// TestAlpha: edges are not darkened, as they would be if straight alpha were read as premultiplied.
func TestAlpha(t *testing.T) {
	t.Parallel()
	images := map[string]*image.NRGBA{"drawn": scene(600, 400)}
	if root := os.Getenv("MEDIA_TEST_CORPUS"); root != "" {
		file, err := fs.ReadFile(os.DirFS(root), "color/photo-srgb-1200.jpg")
		imagingtest.Must(t, err)
		photo, err := jpeg.Decode(bytes.NewReader(file))
		imagingtest.Must(t, err)
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
			imagingtest.Must(t, err)
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
			imagingtest.Must(t, err)
			imagingtest.Equal(t, a.LoopCount, want.loops, "it plays", "times")
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
	imagingtest.Must(t, err)
	var shown time.Duration
	var canvas *image.NRGBA
	var until time.Duration
	for i, frame := range want.frames {
		if shown >= until && player.HasNext() {
			next, lasts, err := player.NextFrame()
			imagingtest.Must(t, err)
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
			imagingtest.Must(t, err)
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

// cwebp runs the program of libwebp at the default quality and method.
func cwebp(t testing.TB, name string) []byte {
	t.Helper()
	path := servers.Program(t, "cwebp")
	out := filepath.Join(t.TempDir(), "out.webp")
	if said, err := exec.CommandContext(t.Context(), path, "-quiet", "-q", "80", "-m", "4", name, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("cwebp: %v: %s", err, said)
	}
	file, err := os.ReadFile(out)
	imagingtest.Must(t, err)
	return file
}

// TestBesideCwebp compares size and quality with the output of cwebp. Variants may be at most 3 %
// larger and 0.5 dB worse.
func TestBesideCwebp(t *testing.T) {
	t.Parallel()
	root := imagingtest.Corpus(t)
	encoder, err := webp.New()
	imagingtest.Must(t, err)
	larger, worse := 1.03, 0.5
	if !encoder.Stops() { // the pure Go encoder uses another method, which differs by 2 %
		larger, worse = 1.10, 1.0
	}
	for _, folder := range []string{"valid", "color"} {
		files, err := fs.Glob(os.DirFS(root), folder+"/*.[jp][pn]*g")
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files (%v)", len(files), err)
		}
		for _, name := range files {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(root, name)
				file, err := os.ReadFile(path)
				imagingtest.Must(t, err)
				ext := strings.TrimPrefix(filepath.Ext(name), ".")
				info := checked(t, file, ext)
				if info.Width < 100 || info.Components == 4 || info.Profile != nil {
					t.Skip("too small to compare, or cwebp reads it in another way")
				}
				theirs, ours := cwebp(t, path), made(t, file, ext, render.Options{})
				want := reference(t, file, info)
				our, their := psnr(t, decodedWebP(t, ours), want, color.Gray{Y: 255}), psnr(t, decodedWebP(t, theirs), want, color.Gray{Y: 255})
				t.Logf("%d bytes and %.2f dB, cwebp %d and %.2f", len(ours), our, len(theirs), their)
				const chunks = 200 // bytes that matter to small files only
				if float64(len(ours)) > float64(len(theirs))*larger+chunks && our < their+2 {
					t.Error("it is larger than that of cwebp")
				}
				if our < their-worse {
					t.Error("it looks worse than that of cwebp")
				}
			})
		}
	}
}

// foreign is an image of another program, with the results of the test and of the browser.
type foreign struct {
	Image   string `json:"image"`
	Variant string `json:"variant,omitempty"`
	message string // of the refusal
	small   bool

	Shown      bool    `json:"shown"`
	Difference float64 `json:"difference"`
}

// sameColors is the largest mean difference of a channel after lossy encoding, except in icons.
const sameColors = 6

// TestForeignImages checks the images in the folder MEDIA_TEST_FOREIGN, for example from other
// programs. It lists, by reason, images that are refused although Chromium shows them. It fails
// for images whose variant has other colours. It runs only on request, with MEDIA_TEST_BROWSER as
// in the tests of the panel.
func TestForeignImages(t *testing.T) {
	t.Parallel()
	root := os.Getenv("MEDIA_TEST_FOREIGN")
	if root == "" {
		t.Skip("MEDIA_TEST_FOREIGN names no images")
	}
	images, none := checkForeign(t, root)
	show(t, images)

	reasons := make(map[string][]string)
	for _, p := range images {
		switch {
		case p.message != "" && p.Shown:
			reasons[p.message] = append(reasons[p.message], p.Image)
		case p.Difference > sameColors && !p.small:
			t.Errorf("colour differs by %.1f: %s", p.Difference, p.Image)
		case p.Difference > sameColors:
			t.Logf("colour of an icon differs by %.1f: %s", p.Difference, p.Image)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		files := reasons[reason]
		t.Logf("refused though shown, %d: %s\n\t%s", len(files), reason, strings.Join(files[:min(3, len(files))], "\n\t"))
	}
	for _, reason := range slices.Sorted(maps.Keys(none)) {
		t.Logf("no variant, %d: %s", none[reason], reason)
	}
	t.Logf("%d images are refused, or have a variant", len(images))
}

// checkForeign returns the images below root that are refused or have a variant. It counts those
// without a variant by reason.
func checkForeign(t *testing.T, root string) (images []*foreign, none map[string]int) {
	t.Helper()
	encoder, err := webp.New()
	imagingtest.Must(t, err)
	maker, folder := render.NewMaker(encoder, render.Limits{}), t.TempDir()
	none = make(map[string]int)
	seen := make(map[[sha256.Size]byte]bool)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
		if err != nil || !entry.Type().IsRegular() || !slices.Contains([]string{"jpg", "jpeg", "png", "gif", "svg"}, ext) {
			return err
		}
		data, err := os.ReadFile(path)
		if sum := sha256.Sum256(data); err != nil || seen[sum] {
			return err
		} else {
			seen[sum] = true
		}
		p := &foreign{Image: path}
		r := bytes.NewReader(data)
		info, err := imaging.CheckImage(r, int64(len(data)), ext, imaging.Options{})
		if err == nil && info.Format == imaging.SVG {
			return nil
		}
		var file []byte
		if err == nil {
			p.small = max(info.Width, info.Height) < 64
			file, err = variantOf(t.Context(), maker, r, info, render.Options{})
		}
		switch {
		case errors.Is(err, render.ErrNone):
			none[err.Error()]++
			return nil
		case err != nil:
			p.message = err.Error()
		default:
			p.Variant = filepath.Join(folder, fmt.Sprint(len(images)))
			err = os.WriteFile(p.Variant, file, 0o600)
		}
		images = append(images, p)
		if p.message != "" {
			return nil
		}
		return err
	})
	if err != nil || len(images) == 0 {
		t.Fatalf("%d images: %v", len(images), err)
	}
	return images, none
}

// show renders the images in Chromium.
func show(t *testing.T, images []*foreign) {
	t.Helper()
	node, chromium := servers.Program(t, "node"), servers.Program(t, "chromium")
	if os.Getenv("MEDIA_TEST_BROWSER") == "" {
		t.Fatal("MEDIA_TEST_BROWSER is needed")
	}
	list, err := json.Marshal(images)
	imagingtest.Must(t, err)
	file := filepath.Join(t.TempDir(), "images.json")
	imagingtest.Must(t, os.WriteFile(file, list, 0o600))
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "foreign.mjs"), file)
	cmd.Env = append(os.Environ(), "MEDIA_TEST_CHROMIUM="+chromium)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	imagingtest.Must(t, err)
	if err := json.Unmarshal(out, &images); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
