package integration

import (
	"fmt"
	"image"
	"image/color"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/deepteams/webp/animation"
)

// TestVariants: every type of picture has a variant that looks like it, at the documented address
// and with the headers of a picture.
func TestVariants(t *testing.T) {
	s := withVariants(t, "media")
	still := quartered(60, 40)
	for name, content := range map[string]string{
		"a.jpg": asJPEG(t, still, 90), "b.jpeg": asJPEG(t, still, 90), "C.JPG": asJPEG(t, still, 90),
		"d.png": asPNG(t, still), "e.gif": paletteGIF(t, still),
	} {
		t.Run(name, func(t *testing.T) {
			one := s.uploadImage(t, file(name, content)).one(t)
			wantQuarters(t, decodedWebP(t, s.variant(t, one)), 60, 40, quarters)
			if got := s.fetch(t, one.FullPath); got.body != content {
				t.Error("the picture itself has changed")
			}
			path := strings.TrimPrefix(one.WebP, s.url)
			whole := s.get(t, path)
			checkAll(t, s, []httpCase{
				{name: "GET", path: path, wantStatus: 200, wantHeader: map[string]string{
					"Content-Type": "image/webp", "X-Content-Type-Options": "nosniff", "Vary": "",
					"Cache-Control": "public, max-age=31536000, immutable", "Content-Length": fmt.Sprint(len(whole.body)),
				}},
				{name: "HEAD", path: path, method: "HEAD", wantStatus: 200, wantHeader: map[string]string{
					"Content-Type": "image/webp", "Content-Length": fmt.Sprint(len(whole.body)),
				}},
				{name: "again", path: path, header: headers("If-None-Match", whole.header.Get("ETag")), wantStatus: 304},
			})
			if got := whole.header.Get("Content-Disposition"); strings.HasPrefix(got, "attachment") {
				t.Errorf("Content-Disposition %q", got)
			}
		})
	}
}

// TestVariantOfMovement: a variant has every frame of an animated GIF, with its duration.
func TestVariantOfMovement(t *testing.T) {
	s := withVariants(t, "media")
	const frames = 5
	v := s.variant(t, s.uploadImage(t, file("a.gif", movingGIF(t, frames))).one(t))
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
	if f := webpFeatures(t, v); f.Width != 40 || f.Height != 20 || f.LoopCount != 3 {
		t.Errorf("it is %+v, want 40x20, played 3 times", f)
	}
}

// TestVariantKeepsAlpha: transparency is kept, as straight alpha.
func TestVariantKeepsAlpha(t *testing.T) {
	s := withVariants(t, "media")
	m := quartered(64, 64)
	want := quarters
	for i, alpha := range []uint8{255, 128, 64, 0} {
		want[i].A = alpha
	}
	for i := 0; i < len(m.Pix); i += 4 {
		for q, c := range quarters {
			if [3]uint8(m.Pix[i:]) == [3]uint8{c.R, c.G, c.B} {
				m.Pix[i+3] = want[q].A
			}
		}
	}
	got := decodedWebP(t, s.variant(t, s.uploadImage(t, file("a.png", asPNG(t, m))).one(t)))
	for i, c := range want {
		p := color.NRGBAModel.Convert(got.At(16+32*(i%2), 16+32*(i/2))).(color.NRGBA)
		if p.A != c.A || c.A != 0 && !near(color.NRGBA{p.R, p.G, p.B, 255}, quarters[i]) {
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
			content := withSegments(asJPEG(t, quartered(60, 40), 90), chunk{"\xe1", exif(c.orientation, "words", "place")})
			v := s.variant(t, s.uploadImage(t, file("a.jpg", content)).one(t))
			var want [4]color.NRGBA
			for i, quarter := range c.want {
				want[i] = quarters[quarter]
			}
			wantQuarters(t, decodedWebP(t, v), c.width, c.height, want)
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
		segments, _ := jpegSegments(t, photos[name])
		var profile string
		for _, segment := range segments {
			if data, ok := strings.CutPrefix(segment.data, "ICC_PROFILE\x00"); ok && segment.name == "\xe2" {
				profile += data[2:]
			}
		}
		got := chunkOf(webpChunks(t, s.variant(t, s.uploadImage(t, file(name, photos[name])).one(t))), "ICCP")
		if profile == "" || got != profile {
			t.Errorf("%s: the variant has a profile of %d bytes, want the %d of the photograph", name, len(got), len(profile))
		}
	}
}

// TestNoVariant: pictures for which no variant can be made are stored without one. The reason is
// logged and counted.
func TestNoVariant(t *testing.T) {
	s := withVariants(t, "metrics /metrics\nmedia")
	s.wantNoVariant(t, s.uploadImage(t, file("drawing.svg", svgPicture)))
	if got := s.variants(t, "none"); got != 0 {
		t.Errorf("an SVG picture counts as %d without a variant", got)
	}
	for i, c := range []struct{ name, content string }{
		{"moving.png", movingPNG(t)},
		{"wide.png", pngOf(t, 16_384, 2)},
		{"high.png", pngOf(t, 2, 16_384)},
	} {
		r := s.uploadImage(t, file(c.name, c.content))
		s.wantNoVariant(t, r)
		if got := s.fetch(t, r.one(t).FullPath); got.body != c.content {
			t.Errorf("%s: got back %d, %d bytes", c.name, got.status, len(got.body))
		}
		s.waitForLog(t, c.name)
		if got := s.variants(t, "none"); got != i+1 {
			t.Errorf("%s: %d are counted as without a variant, want %d", c.name, got, i+1)
		}
	}
	if got := s.uploadImage(t, file("just.png", pngOf(t, 16_383, 2))).one(t); s.variant(t, got) == "" {
		t.Error("the widest picture has no variant")
	}
	if got := s.variants(t, "none"); got != 3 {
		t.Errorf("%d are counted as without a variant, want 3", got)
	}
}

// TestVariantsCounted: a variant that is larger than its picture is kept, and counted as larger.
func TestVariantsCounted(t *testing.T) {
	s := withVariants(t, "metrics /metrics\nmedia")
	s.variant(t, s.uploadImage(t, file("made.png", asPNG(t, photograph(300, 200)))).one(t))
	if made, larger := s.variants(t, "made"), s.variants(t, "larger"); made != 1 || larger != 0 {
		t.Errorf("a photograph as PNG: made %d, larger %d", made, larger)
	}
	noise := image.NewGray(image.Rect(0, 0, 64, 64))
	for i := range noise.Pix {
		noise.Pix[i] = uint8(rand.Uint32())
	}
	poor := asJPEG(t, noise, 1)
	one := s.uploadImage(t, file("poor.jpg", poor)).one(t)
	if v := s.variant(t, one); len(v) <= len(poor) {
		t.Fatalf("the variant of %d bytes is no larger than the picture of %d", len(v), len(poor))
	}
	if made, larger := s.variants(t, "made"), s.variants(t, "larger"); made != 1 || larger != 1 {
		t.Errorf("a poor JPEG: made %d, larger %d", made, larger)
	}
}

// TestWithoutVariants: an alias without `webp` has no variants.
func TestWithoutVariants(t *testing.T) {
	s := startSite(t, basic, "media")
	for ext, content := range samples(t) {
		if strings.Contains("jpg png gif svg", ext) {
			s.wantNoVariant(t, s.uploadImage(t, file("a."+ext, content)))
		}
	}
	for name := range files(t, s.root) {
		if strings.HasSuffix(name, ".webp") {
			t.Errorf("%s is stored", name)
		}
	}
}
