package media

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/png"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/imaging/scale"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

func TestSuitable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		boxes []scale.Box
		want  int // -1 for none
	}{
		{nil, -1},
		{[]scale.Box{{Width: 159, Height: 900}, {Width: 159}, {Height: 159}}, -1},
		{[]scale.Box{{Width: 160, Height: 160}}, 0},
		{[]scale.Box{{Width: 1600}, {Width: 320, Height: 240}, {Width: 320, Height: 320}}, 1},
		{[]scale.Box{{Width: 300, Height: 300}, {Height: 200}, {Width: 100, Height: 100}}, 1},
		{[]scale.Box{{Width: 200, Height: 300}, {Width: 300, Height: 200, Cover: true}}, 0},
	} {
		renditions := make([]aliases.Rendition, len(c.boxes))
		for i, box := range c.boxes {
			renditions[i].Box = box
		}
		got := suitable(renditions)
		if c.want < 0 && got != nil || c.want >= 0 && got != &renditions[c.want] {
			t.Errorf("%v: got %+v, want number %d", c.boxes, got, c.want)
		}
	}
}

// dated is a driver whose objects have given modification times.
type dated struct {
	*memory.Driver
	times map[string]time.Time
}

func (d dated) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := d.Driver.Stat(ctx, key)
	info.ModTime = d.times[key]
	return info, err
}

func (d dated) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.Driver.Open(ctx, key, rng)
	info.ModTime = d.times[key]
	return body, info, err
}

// TestPreviewOfVariant: the preview is the variant, or the image itself if the variant is older.
func TestPreviewOfVariant(t *testing.T) {
	t.Parallel()
	times := map[string]time.Time{}
	s := storagedrivers.New("dated", dated{memory.New(), times}, storagedrivers.Options{})
	t.Cleanup(func() { s.Close() })
	alias := &aliases.Alias{Kind: aliases.Image, Name: "content", Storage: s, Extensions: map[string]bool{"jpg": true}}
	long := strings.Repeat("n", 251) + ".jpg" // the name of a variant would be too long
	for i, step := range []struct{ image, store, want string }{
		{"a.jpg", "a.jpg", "a.jpg"}, {"a.jpg", "a.jpg.webp", "a.jpg.webp"}, {"a.jpg", "a.jpg", "a.jpg"}, {long, long, long},
	} {
		_, err := s.Put(t.Context(), step.store, strings.NewReader(step.store), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
		if err != nil {
			t.Fatal(err)
		}
		times[step.store] = time.Unix(int64(i), 0)
		object, err := new(Service).OpenPreview(t.Context(), Preview{Alias: alias, Filename: step.image})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(object)
		if err != nil || string(got) != step.want {
			t.Errorf("step %d shows %q (%v), want %q", i, got, err, step.want)
		}
		if err := object.Close(); err != nil {
			t.Error(err)
		}
	}
}

// noisy returns a PNG in random colours of about 3 bytes per pixel.
func noisy(t *testing.T, width, height int) string {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(img.Pix)
	for i := 3; i < len(img.Pix); i += 4 {
		img.Pix[i] = 255
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// thumbnail returns the media type and content of a preview for a list.
func thumbnail(t *testing.T, s *Service, kind Kind, filename string) (contentType, content string, err error) {
	t.Helper()
	alias, _ := s.Alias(kind, "content")
	opened, err := s.OpenPreview(t.Context(), Preview{Alias: alias, Filename: filename, Thumbnail: true})
	if err != nil {
		return "", "", err
	}
	b, err := io.ReadAll(opened)
	return opened.Info.ContentType, string(b), errors.Join(err, opened.Close())
}

// TestThumbnails: without a rendition the thumbnail of a large image is scaled and not stored. A
// small image, and one that cannot be rendered, is its own thumbnail.
func TestThumbnails(t *testing.T) {
	t.Parallel()
	s := start(t, configOf(t))
	large, damaged := noisy(t, 800, 400), strings.Repeat("x", 100_000)
	stored := map[string]string{
		"img/content/large.png": large, "file/content/large.png": large, "img/content/small.png": noisy(t, 40, 40),
		"img/content/damaged.jpg": damaged, "img/content/a.svg": damaged, "img/content/a.avif": damaged,
		"img/content/huge.svg": strings.Repeat("x", maxPreview+1),
	}
	storage, _ := s.Storage("default")
	for key, content := range stored {
		if _, err := storage.Put(t.Context(), key, strings.NewReader(content), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		kind     Kind
		filename string
		scaled   bool
	}{
		{Image, "large.png", true},
		{File, "large.png", true},
		{Image, "small.png", false},
		{Image, "damaged.jpg", false},
		{Image, "a.svg", false},
		{Image, "a.avif", false},
	} {
		contentType, content, err := thumbnail(t, s, c.kind, c.filename)
		if err != nil {
			t.Errorf("%s: %v", c.filename, err)
			continue
		}
		if !c.scaled {
			if content != stored["img/content/"+c.filename] || contentType != storagedrivers.ContentType(c.filename) {
				t.Errorf("%s is not its own thumbnail, but %d bytes of %s", c.filename, len(content), contentType)
			}
			continue
		}
		info, err := imaging.CheckImage(strings.NewReader(content), int64(len(content)), "webp", imaging.Options{})
		if err != nil || contentType != "image/webp" || info.Width != 320 || info.Height != 160 {
			t.Errorf("%s: %s, %+v, %v", c.filename, contentType, info, err)
		}
	}
	for _, filename := range []string{"none.png", "huge.svg"} {
		if _, _, err := thumbnail(t, s, Image, filename); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: error %v", filename, err)
		}
	}
	count := 0
	for range storage.All(t.Context(), "") {
		count++
	}
	if count != len(stored) {
		t.Errorf("%d objects are stored, want %d", count, len(stored))
	}
}

// TestThumbnailsBusy: while too many images are worked on, an image is its own thumbnail unless it is
// large.
func TestThumbnailsBusy(t *testing.T) {
	t.Parallel()
	config := configOf(t)
	config.Images = render.NewMaker(nil, render.Limits{Workers: 1, Wait: 10 * time.Millisecond})
	s := start(t, config)
	for range 2 { // for each worker
		_, leave, err := config.Images.Admit(t.Context(), "", false)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	storage, _ := s.Storage("default")
	for filename, want := range map[string]error{"medium.png": nil, "large.png": ErrBusy} {
		content := noisy(t, 100, map[error]int{nil: 400, ErrBusy: 1000}[want])
		_, err := storage.Put(t.Context(), "img/content/"+filename, strings.NewReader(content), storagedrivers.PutOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := thumbnail(t, s, Image, filename); !errors.Is(err, want) || err == nil && got != content {
			t.Errorf("%s: %d bytes, error %v, want %v", filename, len(got), err, want)
		}
	}
}
