package storagecopy_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/storagecopy"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// imageOf treats every key that ends in .webp as a variant.
func imageOf(key string) string {
	image, _ := strings.CutSuffix(key, ".webp")
	return image
}

func newImagePair(t *testing.T) *pair {
	t.Helper()
	p := newPair(t)
	p.opts.ImageOf = imageOf
	p.put(p.opts.From, "img/a.jpg", "an image")
	p.put(p.opts.From, "img/a.jpg-other", "no variant")
	p.put(p.opts.From, "img/a.jpg.webp", "its variant")
	p.put(p.opts.From, "img/b.jpg", "another image")
	return p
}

// mustBeCurrent checks that the copy of the variant is not older than that of its image. Otherwise the
// variant would not be served.
func (p *pair) mustBeCurrent() {
	p.t.Helper()
	image, err := p.opts.To.Stat(p.t.Context(), "img/a.jpg")
	if err != nil {
		p.t.Fatal(err)
	}
	variant, err := p.opts.To.Stat(p.t.Context(), "img/a.jpg.webp")
	if err != nil || variant.ModTime.Before(image.ModTime) {
		p.t.Errorf("the variant is of %v, its image of %v, error %v", variant.ModTime, image.ModTime, err)
	}
}

// TestVariantComesAfterItsImage: a variant is stored after its image, even if the image
// takes long.
func TestVariantComesAfterItsImage(t *testing.T) {
	t.Parallel()
	p := newImagePair(t)
	slow := &slowImage{Driver: p.to, others: make(chan struct{})}
	p.opts.To = storagedrivers.New("to", slow, storagedrivers.Options{})
	p.run(want{copied: 4})
	if at := slices.Index(slow.order, "img/a.jpg"); at < 0 || slices.Index(slow.order, "img/a.jpg.webp") < at {
		t.Errorf("they were stored in the order %q", slow.order)
	}
	p.mustBeCurrent()
	p.mustBeSame()
}

// slowImage stores an image only after the next one.
type slowImage struct {
	*memory.Driver
	others chan struct{}

	mu    sync.Mutex
	order []string
}

func (s *slowImage) Put(
	ctx context.Context, key string, body io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	if key == "img/a.jpg" {
		<-s.others
	}
	info, err := s.Driver.Put(ctx, key, body, opts)
	s.mu.Lock()
	s.order = append(s.order, key)
	s.mu.Unlock()
	if key == "img/b.jpg" {
		close(s.others)
	}
	return info, err
}

// TestVariantOfReplacedImage: an unchanged variant is stored again if its image was replaced, because
// the image is newer now. That also holds if the earlier run ended between the two.
func TestVariantOfReplacedImage(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(p *pair) error{
		"by this run": func(p *pair) error { return p.opts.To.Delete(p.t.Context(), "img/a.jpg") },
		"by an interrupted run": func(p *pair) error {
			p.put(p.opts.To, "img/a.jpg", "an image")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newImagePair(t)
			p.run(want{copied: 4})
			if err := replace(p); err != nil {
				t.Fatal(err)
			}
			report, err := storagecopy.Run(t.Context(), p.opts)
			if err != nil || report.Copied.Items == 0 || report.Failed.Items != 0 {
				t.Errorf("%+v, error %v", report, err)
			}
			p.mustBeCurrent()
			p.mustBeSame()
			p.run(want{present: 4})
		})
	}
}

// TestVariantOfEarlierImage: a variant of an earlier image is not copied.
func TestVariantOfEarlierImage(t *testing.T) {
	t.Parallel()
	p := newImagePair(t)
	p.put(p.opts.From, "img/a.jpg", "an image that came later")
	p.run(want{copied: 3, failed: 1})
	if err := p.failed["img/a.jpg.webp"]; err == nil || !strings.Contains(err.Error(), "older than its image") {
		t.Errorf("failed are %v", p.failed)
	}
}

// TestVariantBesideAnotherImage: a variant is not copied if the destination has another image.
func TestVariantBesideAnotherImage(t *testing.T) {
	t.Parallel()
	p := newImagePair(t)
	p.put(p.opts.To, "img/a.jpg", "somebody else's")
	p.run(want{copied: 2, failed: 2})
	if _, ok := p.contents(p.opts.To)["img/a.jpg.webp"]; ok || p.failed["img/a.jpg.webp"] == nil {
		t.Errorf("failed are %v", p.failed)
	}
}

// TestVariantWithoutImage: a variant without an image is copied as any other item.
func TestVariantWithoutImage(t *testing.T) {
	t.Parallel()
	p := newImagePair(t)
	if err := p.opts.From.Delete(t.Context(), "img/a.jpg"); err != nil {
		t.Fatal(err)
	}
	p.run(want{copied: 3})
	p.mustBeSame()
}
