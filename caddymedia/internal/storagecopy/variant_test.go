package storagecopy_test

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// pictureOf treats every key that ends in .webp as a variant.
func pictureOf(key string) string {
	picture, _ := strings.CutSuffix(key, ".webp")
	return picture
}

func newPicturePair(t *testing.T) *pair {
	t.Helper()
	p := newPair(t)
	p.opts.PictureOf = pictureOf
	p.put(p.opts.From, "img/a.jpg", "a picture")
	p.put(p.opts.From, "img/a.jpg-other", "no variant")
	p.put(p.opts.From, "img/a.jpg.webp", "its variant")
	p.put(p.opts.From, "img/b.jpg", "another picture")
	return p
}

// behind checks that the copy of the variant is not older than that of its picture. Otherwise the
// variant would not be served.
func (p *pair) behind() {
	p.t.Helper()
	picture, err := p.opts.To.Stat(p.t.Context(), "img/a.jpg")
	if err != nil {
		p.t.Fatal(err)
	}
	variant, err := p.opts.To.Stat(p.t.Context(), "img/a.jpg.webp")
	if err != nil || variant.ModTime.Before(picture.ModTime) {
		p.t.Errorf("the variant is of %v, its picture of %v, error %v", variant.ModTime, picture.ModTime, err)
	}
}

// TestVariantComesBehindItsPicture: a variant is stored after its picture, even if the picture
// takes long.
func TestVariantComesBehindItsPicture(t *testing.T) {
	t.Parallel()
	p := newPicturePair(t)
	slow := &slowPicture{Driver: p.to, others: make(chan struct{})}
	p.opts.To = storagedrivers.New("to", slow, storagedrivers.Options{})
	p.run(want{copied: 4})
	if at := slices.Index(slow.order, "img/a.jpg"); at < 0 || slices.Index(slow.order, "img/a.jpg.webp") < at {
		t.Errorf("they were stored in the order %q", slow.order)
	}
	p.behind()
	p.mustBeSame()
}

// slowPicture stores a picture only after the next one.
type slowPicture struct {
	*memory.Driver
	others chan struct{}

	mu    sync.Mutex
	order []string
}

func (s *slowPicture) Put(
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

// TestVariantOfReplacedPicture: an unchanged variant is stored again if its picture was replaced,
// because the picture is newer now.
func TestVariantOfReplacedPicture(t *testing.T) {
	t.Parallel()
	for _, journal := range []bool{false, true} {
		p := newPicturePair(t)
		path := filepath.Join(t.TempDir(), "journal")
		if journal {
			p.journal(path)
		}
		p.run(want{copied: 4})
		if err := p.opts.To.Delete(t.Context(), "img/a.jpg"); err != nil {
			t.Fatal(err)
		}
		if journal {
			p.journal(path)
			p.run(want{copied: 2, skipped: 2})
		} else {
			p.run(want{copied: 2, present: 2})
		}
		p.behind()
		p.mustBeSame()
	}
}

// TestVariantOfEarlierPicture: a variant of an earlier picture is not copied.
func TestVariantOfEarlierPicture(t *testing.T) {
	t.Parallel()
	p := newPicturePair(t)
	p.put(p.opts.From, "img/a.jpg", "a picture that came later")
	p.run(want{copied: 3, failed: 1})
	if err := p.failed["img/a.jpg.webp"]; err == nil || !strings.Contains(err.Error(), "older than its picture") {
		t.Errorf("failed are %v", p.failed)
	}
}

// TestVariantBesideAnotherPicture: a variant is not copied if the destination has another picture.
func TestVariantBesideAnotherPicture(t *testing.T) {
	t.Parallel()
	p := newPicturePair(t)
	p.put(p.opts.To, "img/a.jpg", "somebody else's")
	p.run(want{copied: 2, failed: 2})
	if _, ok := p.contents(p.opts.To)["img/a.jpg.webp"]; ok || p.failed["img/a.jpg.webp"] == nil {
		t.Errorf("failed are %v", p.failed)
	}
}

// TestVariantWithoutPicture: a variant without a picture is copied as any other item.
func TestVariantWithoutPicture(t *testing.T) {
	t.Parallel()
	p := newPicturePair(t)
	if err := p.opts.From.Delete(t.Context(), "img/a.jpg"); err != nil {
		t.Fatal(err)
	}
	p.run(want{copied: 3})
	p.mustBeSame()
}
