package pictures_test

import (
	"fmt"
	"image"
	"image/color"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/deepteams/webp/animation"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestVariants: every type of picture has a variant that looks like it, at the documented address
// and with the headers of a picture.
func TestVariants(t *testing.T) {
	s := withVariants(t, "media")
	still := sample.Quartered(60, 40)
	for name, content := range map[string]string{
		"a.jpg": sample.EncodeJPEG(t, still, 90), "b.jpeg": sample.EncodeJPEG(t, still, 90), "C.JPG": sample.EncodeJPEG(t, still, 90),
		"d.png": sample.EncodePNG(t, still), "e.gif": sample.PaletteGIF(t, still),
	} {
		t.Run(name, func(t *testing.T) {
			one := s.UploadImage(t, site.File(name, content)).One(t)
			wantQuarters(t, sample.DecodeWebP(t, fetchVariant(t, s, one)), 60, 40, sample.Quarters)
			if got := s.Fetch(t, one.FullPath); got.Body != content {
				t.Error("the picture itself has changed")
			}
			path := strings.TrimPrefix(one.WebP, s.URL)
			whole := s.Get(t, path)
			site.CheckAll(t, s, []site.Case{
				{Name: "GET", Path: path, WantStatus: 200, WantHeader: map[string]string{
					"Content-Type": "image/webp", "X-Content-Type-Options": "nosniff", "Vary": "",
					"Cache-Control": "public, max-age=31536000, immutable", "Content-Length": fmt.Sprint(len(whole.Body)),
				}},
				{Name: "HEAD", Path: path, Method: "HEAD", WantStatus: 200, WantHeader: map[string]string{
					"Content-Type": "image/webp", "Content-Length": fmt.Sprint(len(whole.Body)),
				}},
				{Name: "again", Path: path, Header: site.Headers("If-None-Match", whole.Header.Get("ETag")), WantStatus: 304},
			})
			if got := whole.Header.Get("Content-Disposition"); strings.HasPrefix(got, "attachment") {
				t.Errorf("Content-Disposition %q", got)
			}
		})
	}
}

// TestVariantOfMovement: a variant has every frame of an animated GIF, with its duration.
func TestVariantOfMovement(t *testing.T) {
	s := withVariants(t, "media")
	const frames = 5
	v := fetchVariant(t, s, s.UploadImage(t, site.File("a.gif", sample.MovingGIF(t, frames))).One(t))
	a, err := animation.DecodeBytes([]byte(v))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Frames) != frames {
		t.Fatalf("it has %d frames, want %d", len(a.Frames), frames)
	}
	for i, frame := range a.Frames {
		if got := int(frame.Duration.Milliseconds()); got != 100+10*i {
			t.Errorf("frame %d is shown for %d ms", i, got)
		}
	}
	if f := sample.WebPFeatures(t, v); f.Width != 40 || f.Height != 20 || f.LoopCount != 3 {
		t.Errorf("it is %+v, want 40x20, played 3 times", f)
	}
}

// TestVariantKeepsAlpha: transparency is kept, as straight alpha.
func TestVariantKeepsAlpha(t *testing.T) {
	s := withVariants(t, "media")
	m := sample.Quartered(64, 64)
	want := sample.Quarters
	for i, alpha := range []uint8{255, 128, 64, 0} {
		want[i].A = alpha
	}
	for i := 0; i < len(m.Pix); i += 4 {
		for q, c := range sample.Quarters {
			if [3]uint8(m.Pix[i:]) == [3]uint8{c.R, c.G, c.B} {
				m.Pix[i+3] = want[q].A
			}
		}
	}
	got := sample.DecodeWebP(t, fetchVariant(t, s, s.UploadImage(t, site.File("a.png", sample.EncodePNG(t, m))).One(t)))
	for i, c := range want {
		p := color.NRGBAModel.Convert(got.At(16+32*(i%2), 16+32*(i/2))).(color.NRGBA)
		if p.A != c.A || c.A != 0 && !near(color.NRGBA{p.R, p.G, p.B, 255}, sample.Quarters[i]) {
			t.Errorf("quarter %d is %v, want %v", i, p, c)
		}
	}
}

// TestVariantUpright: the orientation of a JPEG says that its first row is the right side of the
// picture. The variant is upright.
func TestVariantUpright(t *testing.T) {
	s := withVariants(t, "media")
	for _, c := range []struct {
		orientation   int
		width, height int
		want          [4]int // quarters of the stored picture
	}{
		{1, 60, 40, [4]int{0, 1, 2, 3}},
		{2, 60, 40, [4]int{1, 0, 3, 2}},
		{3, 60, 40, [4]int{3, 2, 1, 0}},
		{4, 60, 40, [4]int{2, 3, 0, 1}},
		{5, 40, 60, [4]int{0, 2, 1, 3}},
		{6, 40, 60, [4]int{2, 0, 3, 1}},
		{7, 40, 60, [4]int{3, 1, 2, 0}},
		{8, 40, 60, [4]int{1, 3, 0, 2}},
	} {
		t.Run(fmt.Sprint(c.orientation), func(t *testing.T) {
			content := sample.WithSegments(sample.EncodeJPEG(t, sample.Quartered(60, 40), 90), sample.Chunk{Name: "\xe1", Data: sample.Exif(c.orientation, "words", "place")})
			v := fetchVariant(t, s, s.UploadImage(t, site.File("a.jpg", content)).One(t))
			var want [4]color.NRGBA
			for i, quarter := range c.want {
				want[i] = sample.Quarters[quarter]
			}
			wantQuarters(t, sample.DecodeWebP(t, v), c.width, c.height, want)
		})
	}
}

// TestVariantKeepsProfile: the variant of a photograph has its colour profile.
func TestVariantKeepsProfile(t *testing.T) {
	photos := corpus(t, "color")
	if photos == nil {
		t.Skip("no photographs with profiles")
	}
	s := withVariants(t, "media")
	for _, name := range []string{"photo-displayp3-1200.jpg", "photo-adobergb-1200.jpg"} {
		segments, _ := sample.JPEGSegments(t, photos[name])
		var profile string
		for _, segment := range segments {
			if data, ok := strings.CutPrefix(segment.Data, "ICC_PROFILE\x00"); ok && segment.Name == "\xe2" {
				profile += data[2:]
			}
		}
		got := sample.ChunkOf(sample.WebPChunks(t, fetchVariant(t, s, s.UploadImage(t, site.File(name, photos[name])).One(t))), "ICCP")
		if profile == "" || got != profile {
			t.Errorf("%s: the variant has a profile of %d bytes, want the %d of the photograph", name, len(got), len(profile))
		}
	}
}

// TestNoVariant: pictures for which no variant can be made are stored without one. The reason is
// logged and counted.
func TestNoVariant(t *testing.T) {
	s := withVariants(t, "metrics /metrics\nmedia")
	wantNoVariant(t, s, s.UploadImage(t, site.File("drawing.svg", sample.SVG)))
	if got := countVariants(t, s, "none"); got != 0 {
		t.Errorf("an SVG picture counts as %d without a variant", got)
	}
	for i, c := range []struct{ name, content string }{
		{"moving.png", sample.MovingPNG(t)},
		{"wide.png", sample.PNG(t, 16_384, 2)},
		{"high.png", sample.PNG(t, 2, 16_384)},
	} {
		r := s.UploadImage(t, site.File(c.name, c.content))
		wantNoVariant(t, s, r)
		if got := s.Fetch(t, r.One(t).FullPath); got.Body != c.content {
			t.Errorf("%s: got back %d, %d bytes", c.name, got.Status, len(got.Body))
		}
		s.WaitForLog(t, c.name)
		if got := countVariants(t, s, "none"); got != i+1 {
			t.Errorf("%s: %d are counted as without a variant, want %d", c.name, got, i+1)
		}
	}
	if got := s.UploadImage(t, site.File("just.png", sample.PNG(t, 16_383, 2))).One(t); fetchVariant(t, s, got) == "" {
		t.Error("the widest picture has no variant")
	}
	if got := countVariants(t, s, "none"); got != 3 {
		t.Errorf("%d are counted as without a variant, want 3", got)
	}
}

// TestVariantsCounted: a variant that is larger than its picture is kept, and counted as larger.
func TestVariantsCounted(t *testing.T) {
	s := withVariants(t, "metrics /metrics\nmedia")
	fetchVariant(t, s, s.UploadImage(t, site.File("made.png", sample.EncodePNG(t, sample.Photo(300, 200)))).One(t))
	if made, larger := countVariants(t, s, "made"), countVariants(t, s, "larger"); made != 1 || larger != 0 {
		t.Errorf("a photograph as PNG: made %d, larger %d", made, larger)
	}
	noise := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(rand.Uint32())
	}
	poor := sample.EncodeJPEG(t, noise, 1)
	one := s.UploadImage(t, site.File("poor.jpg", poor)).One(t)
	if v := fetchVariant(t, s, one); len(v) <= len(poor) {
		t.Fatalf("the variant of %d bytes is no larger than the picture of %d", len(v), len(poor))
	}
	if made, larger := countVariants(t, s, "made"), countVariants(t, s, "larger"); made != 1 || larger != 1 {
		t.Errorf("a poor JPEG: made %d, larger %d", made, larger)
	}
}

// TestWithoutVariants: an alias without `webp` has no variants.
func TestWithoutVariants(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	for ext, content := range sample.All(t) {
		if strings.Contains("jpg png gif svg", ext) {
			wantNoVariant(t, s, s.UploadImage(t, site.File("a."+ext, content)))
		}
	}
	for name := range site.Files(t, s.Root) {
		if strings.HasSuffix(name, ".webp") {
			t.Errorf("%s is stored", name)
		}
	}
}
