package storagecopy_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/caddy/storagecopy"
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

// mustBeCurrent checks that the copy of the variant is not older than that of its image. Otherwise
// the variant would not be served.
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

// TestVariantOfReplacedImage: an unchanged variant is stored again if its image was replaced,
// because the image is newer now. That also holds if the earlier run ended between the two.
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

// dating is a driver whose objects have other times.
type dating struct {
	*memory.Driver
	date, list func(time.Time) time.Time
}

// dated returns a storage that changes the times of its objects.
func dated(driver *memory.Driver, date func(time.Time) time.Time) *storagedrivers.Storage {
	return storagedrivers.New("dated", &dating{driver, date, date}, storagedrivers.Options{})
}

func (d *dating) Put(
	ctx context.Context, key string, body io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	info, err := d.Driver.Put(ctx, key, body, opts)
	info.ModTime = d.date(info.ModTime)
	return info, err
}

func (d *dating) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.Driver.Open(ctx, key, rng)
	info.ModTime = d.date(info.ModTime)
	return body, info, err
}

func (d *dating) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := d.Driver.Stat(ctx, key)
	info.ModTime = d.date(info.ModTime)
	return info, err
}

func (d *dating) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	page, err := d.Driver.List(ctx, opts)
	for i := range page.Objects {
		page.Objects[i].ModTime = d.list(page.Objects[i].ModTime)
	}
	return page, err
}

// TestIsDone: an object in the destination is done if it has the same size and is later. Otherwise
// its bytes are compared.
func TestIsDone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.November, 20, 12, 0, 0, 400_000_000, time.UTC)
	at := func(d time.Duration) func(time.Time) time.Time {
		return func(time.Time) time.Time { return now.Add(d) }
	}
	second := now.Truncate(time.Second).Sub(now)
	const day = 24 * time.Hour
	for name, test := range map[string]struct {
		from, to, toList func(time.Time) time.Time // toList: as to
		there            string                    // "source" is in the source
		checksum         bool
		want             want
		reads            bool // the destination
	}{
		"later":                       {at(0), at(time.Hour), nil, "source", false, want{present: 1}, false},
		"later by far":                {at(0), at(3 * day), nil, "source", false, want{present: 1}, false},
		"later, other bytes":          {at(0), at(time.Hour), nil, "ecruos", false, want{present: 1}, false},
		"later, with --checksum":      {at(0), at(3 * day), nil, "source", true, want{present: 1}, true},
		"other bytes, --checksum":     {at(0), at(3 * day), nil, "ecruos", true, want{failed: 1}, true},
		"half":                        {at(0), at(3 * day), nil, "sou", false, want{failed: 1}, false},
		"older":                       {at(0), at(-time.Hour), nil, "source", false, want{present: 1}, true},
		"older, other bytes":          {at(0), at(-time.Hour), nil, "ecruos", false, want{failed: 1}, true},
		"same second":                 {at(0), at(second), nil, "ecruos", false, want{failed: 1}, true},
		"both in whole seconds":       {at(second), at(second), nil, "ecruos", false, want{failed: 1}, true},
		"source in whole seconds":     {at(second), at(0), nil, "ecruos", false, want{failed: 1}, true},
		"next second":                 {at(second), at(second + time.Second), nil, "source", false, want{present: 1}, false},
		"no times there":              {at(0), func(time.Time) time.Time { return time.Time{} }, nil, "ecruos", false, want{failed: 1}, true},
		"no times in the source":      {func(time.Time) time.Time { return time.Time{} }, at(0), nil, "ecruos", false, want{failed: 1}, true},
		"listed later than it is":     {at(0), at(-time.Hour), at(14 * time.Hour), "ecruos", false, want{failed: 1}, true},
		"listed earlier than it is":   {at(0), at(time.Hour), at(-14 * time.Hour), "source", false, want{present: 1}, false},
		"listed by the day of a zone": {at(0), at(-time.Hour), at(38 * time.Hour), "ecruos", false, want{failed: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			if test.toList == nil {
				test.toList = test.to
			}
			p.opts.From = dated(p.from, test.from)
			p.opts.To = storagedrivers.New("to", &dating{p.to, test.to, test.toList}, storagedrivers.Options{})
			p.opts.Checksum = test.checksum
			p.put(p.opts.From, "a", "source")
			p.put(p.opts.To, "a", test.there)
			read := false
			p.to.Fail = func(op, _ string) error {
				read = read || op == "open"
				return nil
			}
			p.run(test.want)
			if read != test.reads {
				t.Errorf("the destination was read: %v", read)
			}
			if test.want.failed > 0 {
				p.opts.Overwrite = true
				p.run(want{copied: 1})
				p.mustBeSame()
			}
		})
	}
}
