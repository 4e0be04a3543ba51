package upload

import (
	"context"
	"errors"
	"image"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/caddymedia/derived"
	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/scale"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestUnrenderableOnce: a picture that cannot be rendered is fetched once, and again only after some
// minutes or in another generation.
func TestUnrenderableOnce(t *testing.T) {
	t.Parallel()
	var opens atomic.Int64
	u, alias := withRenditions(t, onMemory(t, func(op, key string) error {
		if op == "open" && strings.HasPrefix(key, "pics/") {
			opens.Add(1)
		}
		return nil
	}))
	now := noon
	u.Derived.Now = func() time.Time { return now }
	want := func(filename string, n int64) {
		t.Helper()
		opens.Store(0)
		for range 5 {
			if _, err := opened(t, u, request(t, alias, "later", filename)); !derived.IsUnrenderable(err) {
				t.Errorf("%s: error %v", filename, err)
			}
		}
		if got := opens.Load(); got != n {
			t.Errorf("%s was fetched %d times, want %d", filename, got, n)
		}
	}
	put(t, alias.Storage, "pics/a.png", picture(unloved))
	put(t, alias.Storage, "pics/a.avif", "x")
	want("a.png", 1)
	want("a.png", 0)
	want("a.avif", 0)
	now = now.Add(time.Hour)
	want("a.png", 1)
	_, err := alias.Storage.Put(t.Context(), "pics/a.png", strings.NewReader(picture(red)), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
	if err != nil {
		t.Fatal(err)
	}
	wantRendition(t, u, request(t, alias, "later", "a.png"), webpOf(red))
}

// gated is a painter that waits until goOn is closed.
type gated struct {
	painter
	painted *atomic.Int64
	goOn    chan struct{}
}

func (p gated) Encode(ctx context.Context, img image.Image, opts webp.Options) ([]byte, error) {
	p.painted.Add(1)
	select {
	case <-p.goOn:
		return p.painter.Encode(ctx, img, opts)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TestSlowRendition: a rendition that takes too long is tried again after pauses that grow. It is never
// reported as one that cannot be made.
func TestSlowRendition(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	p := gated{painted: new(atomic.Int64), goOn: make(chan struct{})}
	u.Derived.Images = render.NewMaker(p, render.Limits{Time: time.Nanosecond})
	now := noon
	u.Derived.Now = func() time.Time { return now }
	put(t, alias.Storage, "pics/slow.png", picture(red))
	r := request(t, alias, "later", "slow.png")
	want := func(pause time.Duration, attempts int64) {
		t.Helper()
		_, err := opened(t, u, r)
		slow, ok := errors.AsType[*derived.SlowError](err)
		if !ok || slow.RetryAfter != pause || derived.IsUnrenderable(err) || !errors.Is(err, render.ErrBusy) {
			t.Errorf("error %v, want a pause of %v", err, pause)
		}
		if got := p.painted.Load(); got != attempts {
			t.Errorf("%d attempts, want %d", got, attempts)
		}
	}
	for i, pause := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 5 * time.Minute} {
		want(pause, int64(i+1))
		now = now.Add(pause - time.Second)
		want(time.Second, int64(i+1))
		now = now.Add(time.Second)
	}
	close(p.goOn)
	wantRendition(t, u, r, webpOf(red))
}

// TestRenditionGoesOn: a rendition is made, although its callers have waited long enough or have left.
// Later callers join the work.
func TestRenditionGoesOn(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	p := gated{painted: new(atomic.Int64), goOn: make(chan struct{})}
	u.Derived.Images = render.NewMaker(p, render.Limits{Wait: 50 * time.Millisecond})
	put(t, alias.Storage, "pics/a.png", picture(red))
	var held atomic.Int64
	r := request(t, alias, "later", "a.png")
	r.Hold = func() (func(), error) {
		held.Add(1)
		return func() { held.Add(-1) }, nil
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := u.Derived.MakeRendition(gone, r); !errors.Is(err, context.Canceled) {
		t.Errorf("one that left: %v", err)
	}
	for range 2 {
		if err := u.Derived.MakeRendition(t.Context(), r); !errors.Is(err, render.ErrBusy) {
			t.Errorf("one that waited: %v", err)
		}
	}
	if held.Load() != 1 {
		t.Error("the storage may be closed meanwhile")
	}
	close(p.goOn)
	for errors.Is(u.Derived.MakeRendition(t.Context(), r), render.ErrBusy) {
	}
	if p.painted.Load() != 2 || held.Load() != 0 { // lossy and lossless
		t.Errorf("encoded %d times, held %d times", p.painted.Load(), held.Load())
	}
	wantRendition(t, u, r, webpOf(red))
}

// TestEqualRenditions: two renditions of the same settings are both stored.
func TestEqualRenditions(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	alias.Renditions[1].Box = alias.Renditions[0].Box
	put(t, alias.Storage, "pics/a.png", picture(red))
	var both sync.WaitGroup
	for _, name := range []string{"later", "soon"} {
		both.Go(func() {
			if err := u.Derived.MakeRendition(t.Context(), request(t, alias, name, "a.png")); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	wantRenditions(t, alias, "pics@renditions/1/a.png/later.webp", "pics@renditions/1/a.png/soon.webp")
}

// faultyStat is a driver with a fault.
type faultyStat struct{ *memory.Driver }

func (faultyStat) Stat(context.Context, string) (storagedrivers.Info, error) { panic("a fault") }

// TestRenditionPanic: a panic while a rendition is made fails its request, not the process.
func TestRenditionPanic(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, closed(t, "memory", faultyStat{memory.New()}, storagedrivers.Options{}))
	if err := u.Derived.MakeRendition(t.Context(), request(t, alias, "later", "a.png")); !errors.Is(err, render.ErrPanic) {
		t.Errorf("error %v", err)
	}
}

// hungry is an encoder that needs much memory for wide pictures.
type hungry struct{ painter }

func (hungry) Memory(task webp.Task) int64 { return int64(task.Width) << 25 }

// TestImpossibleRendition: a rendition that a picture cannot have hides no other.
func TestImpossibleRendition(t *testing.T) {
	t.Parallel()
	u, alias := withRenditions(t, onMemory(t, nil))
	alias.Renditions = []aliases.Rendition{
		{Name: "large", Box: scale.Box{Width: 100}, Format: imaging.WebP},
		{Name: "small", Box: scale.Box{Width: 1}, Format: imaging.WebP},
	}
	u.Derived.Images = render.NewMaker(hungry{}, render.Limits{Memory: 100 << 20})
	items, failures := uploadPictures(t, u, file("a.png", picture(red)))
	if failures != nil || !slices.Equal(slices.Collect(maps.Keys(items[0].Renditions)), []string{"small"}) {
		t.Errorf("renditions %v, %v", items, failures)
	}
	if sizes, err := u.Derived.Sizes(t.Context(), alias, "a.png"); len(sizes) != 2 || err != nil {
		t.Errorf("sizes %v, %v", sizes, err)
	}
}

// TestRenditionOfDeleted: an item that is deleted right after its commit gets no renditions.
func TestRenditionOfDeleted(t *testing.T) {
	t.Parallel()
	var u *Uploader
	var alias *aliases.Alias
	deleted := make(chan error, 1)
	s := onMemory(t, func(op, key string) error {
		if op == "put" && strings.Contains(key, "@renditions") {
			go func() { deleted <- u.Delete(context.Background(), alias, "a.png", aliases.Actor{}) }()
			time.Sleep(20 * time.Millisecond) // the deletion waits for the name
		}
		return nil
	})
	u, alias = withRenditions(t, s)
	if _, failures := uploadPictures(t, u, file("a.png", picture(red))); failures != nil {
		t.Fatal(failures)
	}
	if err := <-deleted; err != nil {
		t.Error(err)
	}
	wantContents(t, s, nil)
}
