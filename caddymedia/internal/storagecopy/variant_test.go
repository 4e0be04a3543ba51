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

// pictureOf takes every name of WebP for a variant.
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

// behind looks whether the copy of the variant is no older than that of its picture, as it
// must be to be served in its place.
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

// TestVariantComesBehindItsPicture, however long that takes.
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

// slowPicture stores a picture only when the next one is stored.
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

// TestVariantOfReplacedPicture is stored anew, the same as it is: its picture is newer now.
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

// TestVariantOfEarlierPicture does not become that of the one that is there now.
func TestVariantOfEarlierPicture(t *testing.T) {
	t.Parallel()
	p := newPicturePair(t)
	p.put(p.opts.From, "img/a.jpg", "a picture that came later")
	p.run(want{copied: 3, failed: 1})
	if err := p.failed["img/a.jpg.webp"]; err == nil || !strings.Contains(err.Error(), "older than its picture") {
		t.Errorf("failed are %v", p.failed)
	}
}

// TestVariantBesideAnotherPicture: what is not of the picture in the destination does not
// come there.
func TestVariantBesideAnotherPicture(t *testing.T) {
	t.Parallel()
	p := newPicturePair(t)
	p.put(p.opts.To, "img/a.jpg", "somebody else's")
	p.run(want{copied: 2, failed: 2})
	if _, ok := p.contents(p.opts.To)["img/a.jpg.webp"]; ok || p.failed["img/a.jpg.webp"] == nil {
		t.Errorf("failed are %v", p.failed)
	}
}

// TestVariantWithoutPicture is an item as any other.
func TestVariantWithoutPicture(t *testing.T) {
	t.Parallel()
	p := newPicturePair(t)
	if err := p.opts.From.Delete(t.Context(), "img/a.jpg"); err != nil {
		t.Fatal(err)
	}
	p.run(want{copied: 3})
	p.mustBeSame()
}
