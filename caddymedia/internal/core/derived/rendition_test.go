package derived_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestRenditionMadeOnce: of many concurrent requests, one makes the rendition.
func TestRenditionMadeOnce(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	m, painted := counting(render.Limits{}, func(context.Context) error { return nil })
	put(t, alias.Storage, "pics/a.png", pngOf(red))
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { wantRendition(t, m, request(t, alias, "later", "a.png"), webpOf(red)) })
	}
	all.Wait()
	if n := painted.Load(); n != 2 { // lossy and lossless
		t.Errorf("it was painted %d times", n)
	}
}

// TestRenditionOvertaken: another process replaces or deletes the image while its rendition is
// made. No rendition of the earlier image is stored.
func TestRenditionOvertaken(t *testing.T) {
	t.Parallel()
	for name, overtake := range map[string]func(*testing.T, *storagedrivers.Storage) error{
		"replaced": func(t *testing.T, s *storagedrivers.Storage) error {
			t.Helper()
			replace(t, s, "pics/a.png", pngOf(green))
			return nil
		},
		"deleted": func(t *testing.T, s *storagedrivers.Storage) error {
			t.Helper()
			return s.Delete(t.Context(), "pics/a.png")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alias := withRenditions(t, onMemory(t, nil))
			put(t, alias.Storage, "pics/a.png", pngOf(red))
			var once sync.Once
			m, _ := counting(render.Limits{}, func(context.Context) (err error) {
				once.Do(func() { err = overtake(t, alias.Storage) })
				return err
			})
			r := request(t, alias, "later", "a.png")
			if name == "replaced" {
				wantRendition(t, m, r, webpOf(green))
				wantRenditions(t, alias, "pics@renditions/1/a.png/later.webp")
				return
			}
			if err := m.MakeRendition(t.Context(), r); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("error %v", err)
			}
			wantContents(t, alias.Storage, nil)
			if _, err := opened(t, m, r); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// untagged is a driver whose objects have no ETag.
type untagged struct{ *memory.Driver }

func (d untagged) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := d.Driver.Stat(ctx, key)
	info.ETag = ""
	return info, err
}

func (d untagged) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	r, info, err := d.Driver.Open(ctx, key, rng)
	info.ETag = ""
	return r, info, err
}

// TestRenditionLocks: an image without an ETag is not replaced while its rendition is made.
func TestRenditionLocks(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, derivedtest.Closed(t, "memory", untagged{memory.New()}, storagedrivers.Options{}))
	put(t, alias.Storage, "pics/a.png", pngOf(red))
	m, _ := counting(render.Limits{}, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if unlock, err := alias.Lock(ctx, "a.png"); err == nil {
			unlock()
			t.Error("the image is not locked")
		}
		return nil
	})
	wantRendition(t, m, request(t, alias, "later", "a.png"), webpOf(red))
}

// TestRenditionOfSVG: an SVG is its own rendition.
func TestRenditionOfSVG(t *testing.T) {
	t.Parallel()
	const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`
	alias := withRenditions(t, onMemory(t, nil))
	put(t, alias.Storage, "pics/a.svg", svg)
	wantRendition(t, newMaker(), request(t, alias, "later", "a.svg"), svg)
	wantRenditions(t, alias)
}

// TestRenditionNegotiated: a rendition in the format of the image is also made as WebP.
func TestRenditionNegotiated(t *testing.T) {
	t.Parallel()
	m, alias := newMaker(), withRenditions(t, onMemory(t, nil))
	alias.WebP, alias.Negotiate = new(render.Options), true
	for i := range alias.Renditions {
		alias.Renditions[i].Format = ""
	}
	put(t, alias.Storage, "pics/a.png", pngOf(red))
	if made, err := m.RenewRenditions(t.Context(), alias, "a.png", false); made != 2 || err != nil {
		t.Errorf("made %d, %v", made, err)
	}
	wantRenditions(t, alias, "pics@renditions/1/a.png/soon.png", "pics@renditions/1/a.png/soon.webp")
	for _, name := range []string{"soon", "later"} {
		r := request(t, alias, name, "a.png")
		r.WebP = true
		wantRendition(t, m, r, webpOf(red))
		r.WebP = false
		if got, err := opened(t, m, r); !strings.HasPrefix(got, "\x89PNG") || err != nil {
			t.Errorf("%s is %.10q, %v", name, got, err)
		}
	}
}

// TestSizes: renditions that an image cannot have are left out.
func TestSizes(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	alias.Renditions = []item.Rendition{
		{Name: "large", Box: scale.Box{Width: 100}, Format: imaging.WebP},
		{Name: "small", Box: scale.Box{Width: 1}, Format: imaging.WebP},
	}
	put(t, alias.Storage, "pics/a.png", pngOf(red))
	m := derivedtest.NewMaker(hungry{}, render.Limits{Memory: 100 << 20})
	sizes, err := m.Sizes(t.Context(), alias, "", "a.png")
	if len(sizes) != 2 || sizes[1].Rendition.Name != "small" || err != nil {
		t.Errorf("sizes %v, %v", sizes, err)
	}
}

// staleStat is a driver that does not know the last replacement of an object.
type staleStat struct {
	*memory.Driver
	info storagedrivers.Info
}

func (d *staleStat) Stat(context.Context, string) (storagedrivers.Info, error) { return d.info, nil }

// TestSizesOfReplaced: the header of an image that replaces another one before it is read is not
// remembered for that one.
func TestSizesOfReplaced(t *testing.T) {
	t.Parallel()
	opens := 0
	d := &staleStat{Driver: memory.New()}
	d.Fail = func(op, _ string) error {
		if op == "open" {
			opens++
		}
		return nil
	}
	alias := imageAlias(t, derivedtest.Closed(t, "memory", d, storagedrivers.Options{}))
	put(t, alias.Storage, "a.png", pngOf(red))
	var err error
	if d.info, err = d.Driver.Stat(t.Context(), "a.png"); err != nil {
		t.Fatal(err)
	}
	replace(t, alias.Storage, "a.png", pngOf(blue))
	for range 2 {
		opens = 0
		if _, err := newMaker().Sizes(t.Context(), alias, "", "a.png"); err != nil || opens == 0 {
			t.Errorf("opened %d times, error %v", opens, err)
		}
	}
}

// hungry is an encoder that needs much memory for wide images.
type hungry struct{ derivedtest.Painter }

func (hungry) Memory(task webp.Task) int64 { return int64(task.Width) << 25 }

// TestUnrenderableOnce: an image that cannot be rendered is fetched once, and again only after some
// minutes or in another generation.
func TestUnrenderableOnce(t *testing.T) {
	t.Parallel()
	var opens atomic.Int64
	m, alias := newMaker(), withRenditions(t, onMemory(t, func(op, key string) error {
		if op == "open" && strings.HasPrefix(key, "pics/") {
			opens.Add(1)
		}
		return nil
	}))
	now := noon
	m.Now = func() time.Time { return now }
	want := func(filename string, n int64) {
		t.Helper()
		opens.Store(0)
		for range 5 {
			if _, err := opened(t, m, request(t, alias, "later", filename)); !derived.IsUnrenderable(err) {
				t.Errorf("%s: error %v", filename, err)
			}
		}
		if got := opens.Load(); got != n {
			t.Errorf("%s was fetched %d times, want %d", filename, got, n)
		}
	}
	put(t, alias.Storage, "pics/a.png", pngOf(unloved))
	put(t, alias.Storage, "pics/a.avif", "x")
	put(t, alias.Storage, "pics/damaged.png", "no image")
	want("a.png", 1)
	want("a.png", 0)
	want("a.avif", 0)
	want("damaged.png", 1)
	now = now.Add(time.Hour)
	want("a.png", 1)
	replace(t, alias.Storage, "pics/a.png", pngOf(red))
	wantRendition(t, m, request(t, alias, "later", "a.png"), webpOf(red))
	wantRenditions(t, alias, "pics@renditions/1/a.png/later.webp")
	if _, err := opened(t, m, request(t, alias, "later", "none.png")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without an image: %v", err)
	}
}

// TestSlowRendition: a rendition that takes too long is tried again after pauses that grow. It is
// never reported as one that cannot be made.
func TestSlowRendition(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	goOn := make(chan struct{})
	m, painted := counting(render.Limits{Time: 200 * time.Millisecond}, until(goOn))
	m.Images.Clock = render.Elapsed
	now := noon
	m.Now = func() time.Time { return now }
	put(t, alias.Storage, "pics/slow.png", pngOf(red))
	r := request(t, alias, "later", "slow.png")
	want := func(pause time.Duration, attempts int64) {
		t.Helper()
		_, err := opened(t, m, r)
		slow, ok := errors.AsType[*derived.SlowError](err)
		if !ok || slow.RetryAfter != pause || derived.IsUnrenderable(err) || !errors.Is(err, render.ErrBusy) {
			t.Errorf("error %v, want a pause of %v", err, pause)
		}
		if got := painted.Load(); got != attempts {
			t.Errorf("%d attempts, want %d", got, attempts)
		}
	}
	for i, pause := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 5 * time.Minute} {
		want(pause, int64(i+1))
		now = now.Add(pause - time.Second)
		want(time.Second, int64(i+1))
		now = now.Add(time.Second)
	}
	close(goOn)
	wantRendition(t, m, r, webpOf(red))
}

// TestRenditionGoesOn: a rendition is made, although its callers have waited long enough or have
// left. Later callers join the work.
func TestRenditionGoesOn(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	goOn := make(chan struct{})
	m, painted := counting(render.Limits{Wait: 50 * time.Millisecond}, until(goOn))
	put(t, alias.Storage, "pics/a.png", pngOf(red))
	var held atomic.Int64
	r := request(t, alias, "later", "a.png")
	r.Hold = func() (func(), error) {
		held.Add(1)
		return func() { held.Add(-1) }, nil
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := m.MakeRendition(gone, r); !errors.Is(err, context.Canceled) {
		t.Errorf("one that left: %v", err)
	}
	for range 2 {
		if err := m.MakeRendition(t.Context(), r); !errors.Is(err, render.ErrBusy) {
			t.Errorf("one that waited: %v", err)
		}
	}
	if held.Load() != 1 {
		t.Error("the storage may be closed meanwhile")
	}
	close(goOn)
	for errors.Is(m.MakeRendition(t.Context(), r), render.ErrBusy) {
	}
	if painted.Load() != 2 || held.Load() != 0 { // lossy and lossless
		t.Errorf("encoded %d times, held %d times", painted.Load(), held.Load())
	}
	wantRendition(t, m, r, webpOf(red))
}

// TestEqualRenditions: two renditions of the same settings are both stored.
func TestEqualRenditions(t *testing.T) {
	t.Parallel()
	m, alias := newMaker(), withRenditions(t, onMemory(t, nil))
	alias.Renditions[1].Box = alias.Renditions[0].Box
	put(t, alias.Storage, "pics/a.png", pngOf(red))
	var both sync.WaitGroup
	for _, name := range []string{"later", "soon"} {
		both.Go(func() {
			if err := m.MakeRendition(t.Context(), request(t, alias, name, "a.png")); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	wantRenditions(t, alias, "pics@renditions/1/a.png/later.webp", "pics@renditions/1/a.png/soon.webp")
}

// faulty is a driver whose open objects have a fault.
type faulty struct{ *memory.Driver }

func (d faulty) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	object, info, err := d.Driver.Open(ctx, key, rng)
	return faultyObject{object}, info, err
}

type faultyObject struct{ io.ReadCloser }

func (faultyObject) Read([]byte) (int, error) { panic("a fault") }

// TestRenditionPanic: a panic while a rendition is made fails its request, not the process.
func TestRenditionPanic(t *testing.T) {
	t.Parallel()
	m, alias := newMaker(), withRenditions(t, derivedtest.Closed(t, "memory", faulty{memory.New()}, storagedrivers.Options{}))
	put(t, alias.Storage, "pics/a.png", pngOf(red))
	if err := m.MakeRendition(t.Context(), request(t, alias, "later", "a.png")); !errors.Is(err, render.ErrPanic) {
		t.Errorf("error %v", err)
	}
}

func TestRenewRenditions(t *testing.T) {
	t.Parallel()
	m, alias := newMaker(), withRenditions(t, onMemory(t, nil))
	put(t, alias.Storage, "pics/a.png", pngOf(red))
	for _, c := range []struct {
		all           bool
		missing, made int
	}{{false, 1, 1}, {false, 0, 0}, {true, 1, 1}, {true, 0, 0}} {
		missing, err := derived.MissingRenditions(t.Context(), alias, "a.png", c.all)
		if len(missing) != c.missing || err != nil {
			t.Errorf("missing %v, %v, want %d", missing, err, c.missing)
		}
		made, err := m.RenewRenditions(t.Context(), alias, "a.png", c.all)
		if made != c.made || err != nil {
			t.Errorf("made %d, %v, want %d", made, err, c.made)
		}
	}
	wantRenditions(t, alias, "pics@renditions/1/a.png/later.webp", "pics@renditions/1/a.png/soon.webp")
	put(t, alias.Storage, "pics/b.png", pngOf(unloved))
	if made, err := m.RenewRenditions(t.Context(), alias, "b.png", true); made != 0 || !errors.Is(err, render.ErrNone) {
		t.Errorf("of an image that cannot be rendered: %d, %v", made, err)
	}
	for _, filename := range []string{"a.svg", "a.txt"} {
		if made, err := m.RenewRenditions(t.Context(), alias, filename, true); made != 0 || err != nil {
			t.Errorf("of %s: %d, %v", filename, made, err)
		}
	}
}

func TestOutdatedRenditions(t *testing.T) {
	t.Parallel()
	m, alias := newMaker(), withRenditions(t, onMemory(t, nil))
	for _, filename := range []string{"a.png", "b.png", "in/c.png"} {
		put(t, alias.Storage, "pics/"+filename, pngOf(red))
		if _, err := m.RenewRenditions(t.Context(), alias, filename, true); err != nil {
			t.Fatal(err)
		}
	}
	put(t, alias.Storage, "pics@renditions/foreign", "x")
	outdated := func() []string {
		var keys []string
		for info, err := range derived.OutdatedRenditions(t.Context(), alias, later()) {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, hashes.ReplaceAllString(info.Key, "."))
		}
		return keys
	}
	if got := outdated(); got != nil {
		t.Errorf("outdated %q", got)
	}
	if err := alias.Storage.Delete(t.Context(), "pics/a.png"); err != nil { // in the backend itself
		t.Fatal(err)
	}
	if _, err := alias.Storage.Put(t.Context(), "pics/b.png", strings.NewReader(pngOf(green)), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}); err != nil {
		t.Fatal(err)
	}
	alias.Renditions[0].Quality = 1
	want := []string{
		"pics@renditions/1/a.png/later.webp", "pics@renditions/1/a.png/soon.webp",
		"pics@renditions/1/b.png/later.webp", "pics@renditions/1/b.png/soon.webp",
		"pics@renditions/2/in/c.png/later.webp",
	}
	if got := outdated(); !slices.Equal(got, want) {
		t.Errorf("outdated %q, want %q", got, want)
	}
	for info, err := range derived.OutdatedRenditions(t.Context(), alias, noon.AddDate(-100, 0, 0)) {
		t.Errorf("%s is outdated and old, %v", info.Key, err)
	}
	for info := range derived.OutdatedRenditions(t.Context(), alias, later()) {
		if err := item.Remove(t.Context(), alias.Storage, info.Key); err != nil {
			t.Error(err)
		}
	}
	if got := outdated(); got != nil {
		t.Errorf("still outdated %q", got)
	}
	wantRenditions(t, alias, "pics@renditions/2/in/c.png/soon.webp", "pics@renditions/foreign")
}

// TestStoreRenditionsOfReplaced: renditions that were made of a replaced image are not stored.
func TestStoreRenditionsOfReplaced(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := withRenditions(t, s)
	key := alias.Key("a.png")
	put(t, s, key, pngOf(red))
	image, err := s.Stat(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, s, key, pngOf(blue))
	files := []derived.MadeRendition{{RenditionFile: alias.RenditionFiles("a.png", true)[0], Made: render.Made{File: []byte("x")}}}
	if _, err := newMaker().StoreRenditions(t.Context(), alias, "a.png", image, files, 0); err != nil {
		t.Error(err)
	}
	wantRenditions(t, alias)
}

// thumbnail returns a request for the thumbnail of an image.
func thumbnail(alias *item.Alias, filename string, webp bool) *derived.RenditionRequest {
	r := item.Thumbnail
	if webp {
		r.Format = imaging.WebP
	}
	return &derived.RenditionRequest{Alias: alias, Rendition: &r, Filename: filename}
}

// TestThumbnail: a thumbnail is made once and stored beside the renditions, but is none of the
// alias. That of a replaced image is another one; the old one is outdated.
func TestThumbnail(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	m, painted := counting(render.Limits{}, func(context.Context) error { return nil })
	put(t, alias.Storage, "pics/a.png", pngOf(red))
	for range 3 {
		wantRendition(t, m, thumbnail(alias, "a.png", true), webpOf(red))
	}
	if n := painted.Load(); n != 2 { // lossy and lossless
		t.Errorf("it was painted %d times", n)
	}
	wantRenditions(t, alias, "pics@renditions/1/a.png/@thumbnail.webp")
	if _, ok := alias.Rendition(item.Thumbnail.Name); ok || alias.RenditionURLs("", "a.png")[item.Thumbnail.Name] != "" {
		t.Error("it has a public address")
	}
	wantOutdated(t, alias)
	replace(t, alias.Storage, "pics/a.png", pngOf(blue))
	wantRendition(t, m, thumbnail(alias, "a.png", true), webpOf(blue))
	wantOutdated(t, alias, "@thumbnail.webp")
}

// wantOutdated asserts the names of the outdated renditions of an alias.
func wantOutdated(t *testing.T, alias *item.Alias, want ...string) {
	t.Helper()
	var got []string
	for info, err := range derived.OutdatedRenditions(t.Context(), alias, noon.AddDate(100, 0, 0)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, hashes.ReplaceAllString(info.Key[strings.LastIndexByte(info.Key, '/')+1:], "."))
	}
	if !slices.Equal(got, want) {
		t.Errorf("outdated are %q, want %q", got, want)
	}
}

// TestThumbnailUnstored: where nothing can be stored, the thumbnail is made for each request.
// Nothing is read or written among the items of an alias without a folder for renditions.
func TestThumbnailUnstored(t *testing.T) {
	t.Parallel()
	readOnly := withRenditions(t, onMemory(t, func(op, key string) error {
		if op == "put" && strings.Contains(key, "@renditions") {
			return fmt.Errorf("read only: %w", fs.ErrPermission)
		}
		return nil
	}))
	root := withRenditions(t, onMemory(t, nil))
	root.Prefix = ""
	files := withRenditions(t, onMemory(t, nil))
	files.Kind = item.File
	for name, alias := range map[string]*item.Alias{"read only": readOnly, "no folder": root, "files": files} {
		put(t, alias.Storage, alias.Key("a.png"), pngOf(red))
		m := newMaker()
		for range 2 {
			_, err := opened(t, m, thumbnail(alias, "a.png", true))
			made, ok := errors.AsType[*derived.UnstoredError](err)
			if !ok || string(made.File) != webpOf(red) {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantContents(t, alias.Storage, map[string]string{alias.Key("a.png"): pngOf(red)})
	}
}

// TestThumbnailForms: a thumbnail is upright, fits the box and does not move. Without an encoder
// for WebP it has the format of its image.
func TestThumbnailForms(t *testing.T) {
	t.Parallel()
	alias := withRenditions(t, onMemory(t, nil))
	m := derivedtest.NewMaker(nil, render.Limits{})
	var photo, drawing, film bytes.Buffer
	if err := jpeg.Encode(&photo, image.NewYCbCr(image.Rect(0, 0, 800, 600), image.YCbCrSubsampleRatio420), nil); err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(&drawing, image.NewNRGBA(image.Rect(0, 0, 400, 1000))); err != nil {
		t.Fatal(err)
	}
	frame := func(c color.Color) *image.Paletted {
		return image.NewPaletted(image.Rect(0, 0, 640, 320), color.Palette{c})
	}
	if err := gif.EncodeAll(&film, &gif.GIF{Image: []*image.Paletted{frame(red), frame(blue)}, Delay: []int{10, 10}}); err != nil {
		t.Fatal(err)
	}
	// An Exif segment with the orientation 6: shown turned to the right.
	const exif = "\xff\xe1\x00\x22Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	turned := photo.String()[:2] + exif + photo.String()[2:]
	for _, c := range []struct {
		filename, content, kind string
		width, height           int
	}{
		{"form.jpg", photo.String(), "jpeg", 320, 240},
		{"turned.jpg", turned, "jpeg", 240, 320},
		{"form.png", drawing.String(), "png", 128, 320},
		{"form.gif", film.String(), "", 320, 160}, // of any still format
	} {
		put(t, alias.Storage, alias.Key(c.filename), c.content)
		got, err := opened(t, m, thumbnail(alias, c.filename, false))
		if err != nil {
			t.Errorf("%s: %v", c.filename, err)
			continue
		}
		img, kind, err := image.Decode(strings.NewReader(got))
		if err != nil || c.kind != "" && kind != c.kind || img.Bounds().Size() != image.Pt(c.width, c.height) {
			t.Errorf("%s: %s of %v, %v", c.filename, kind, img.Bounds(), err)
		}
		if c.filename == "form.gif" && color.NRGBAModel.Convert(img.At(9, 9)) != red {
			t.Errorf("the first frame is not shown, but %v", img.At(9, 9))
		}
	}
	put(t, alias.Storage, "pics/still.gif", film.String())
	wantRendition(t, newMaker(), thumbnail(alias, "still.gif", true), webpOf(red)) // its encoder makes no animation
}
