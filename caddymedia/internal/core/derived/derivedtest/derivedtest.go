// Package derivedtest has storages with faults, aliases, images and makers for the tests of
// packages derived, upload, resumable and tus. It has no tests of its own. Begin with [Storages]
// and [NewMaker].
package derivedtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/scale"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/webp"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// Noon is the time of the clock.
var Noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

// itemLocks are the locks of all items of tests.
var itemLocks locks.Names

// NewAlias returns an alias for files without a sub folder.
func NewAlias(t testing.TB, name string, s *storagedrivers.Storage) *item.Alias {
	t.Helper()
	root, err := naming.ParseFormat("/")
	if err != nil {
		t.Fatal(err)
	}
	return &item.Alias{
		Locks: &itemLocks,
		Kind:  item.File, Name: name, Storage: s, Prefix: "file/" + name, SubFolder: root, Sanitize: true,
		Extensions: map[string]bool{"txt": true, "pdf": true}, MaxSize: 1 << 20,
		CacheControl: "no-cache", BaseURL: "https://cdn.example",
	}
}

// Images returns an alias for images with variants, at the root of the storage.
func Images(t testing.TB, s *storagedrivers.Storage) *item.Alias {
	t.Helper()
	alias := NewAlias(t, item.DefaultAlias, s)
	alias.Kind, alias.Prefix, alias.WebP = item.Image, "", new(render.Options)
	alias.Extensions = map[string]bool{"png": true, "jpg": true, "svg": true}
	return alias
}

// WithRenditions returns an alias for images below "pics" without variants, with two renditions as
// WebP: "soon" is made with the upload, "later" on request.
func WithRenditions(t testing.TB, s *storagedrivers.Storage) *item.Alias {
	t.Helper()
	alias := Images(t, s)
	alias.Prefix, alias.WebP = "pics", nil
	alias.Renditions = []item.Rendition{
		{Name: "later", Box: scale.Box{Width: 4}, Format: imaging.WebP},
		{Name: "soon", Box: scale.Box{Width: 6}, Format: imaging.WebP, Eager: true},
	}
	return alias
}

// NewMaker returns a maker with a constant clock that encodes with an encoder.
func NewMaker(encoder webp.Encoder, limits render.Limits) *derived.Maker {
	return &derived.Maker{
		Memory: derived.NewMemory(),
		Images: render.NewMaker(encoder, limits), Now: func() time.Time { return Noon }, Observer: observer{},
	}
}

type observer struct{}

func (observer) Rendered(*item.Alias, *item.Rendition, derived.RenditionResult, time.Duration) {
}

// Painter is an encoder whose variants name the colour of their images.
type Painter struct{}

// Name implements [webp.Encoder].
func (Painter) Name() string { return "painter" }

// Stops implements [webp.Encoder].
func (Painter) Stops() bool { return true }

// Memory implements [webp.Encoder].
func (Painter) Memory(webp.Task) int64 { return 0 }

// Animate implements [webp.Encoder].
func (Painter) Animate(context.Context, webp.Animation, webp.Options) ([]byte, error) {
	return nil, errors.New("it does not move")
}

// Encode implements [webp.Encoder].
func (Painter) Encode(_ context.Context, img image.Image, _ webp.Options) ([]byte, error) {
	c := color.NRGBAModel.Convert(img.At(0, 0)).(color.NRGBA)
	if c == Unloved {
		return nil, errors.New("this colour is not painted")
	}
	return []byte(WebPOf(c)), nil
}

// WebPOf returns the variant of an image in one colour.
func WebPOf(c color.NRGBA) string { return fmt.Sprintf("WebP in %02x%02x%02x", c.R, c.G, c.B) }

// The colours of images. An image in Unloved has no variant.
var (
	Red     = color.NRGBA{255, 0, 0, 255}
	Green   = color.NRGBA{0, 255, 0, 255}
	Blue    = color.NRGBA{0, 0, 255, 255}
	Unloved = color.NRGBA{1, 2, 3, 255}
)

// PNGOf returns a PNG in one colour.
func PNGOf(c color.NRGBA) string {
	img := image.NewNRGBA(image.Rect(0, 0, 8, 8))
	for i := range 64 {
		img.SetNRGBA(i%8, i/8, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.String()
}

// OnMemory returns a storage on [NewMemory].
func OnMemory(t testing.TB, fail func(op, key string) error) *storagedrivers.Storage {
	t.Helper()
	return Closed(t, "memory", NewMemory(t, fail), storagedrivers.Options{})
}

// OnLocal returns a storage on [NewLocal].
func OnLocal(t testing.TB, fail func(op, key string) error) *storagedrivers.Storage {
	t.Helper()
	return Closed(t, "local", NewLocal(t, fail), storagedrivers.Options{})
}

// Shared returns two storages on one backend, like those of two processes.
func Shared(t testing.TB, kind string, fail func(op, key string) error) (here, there *storagedrivers.Storage) {
	t.Helper()
	d := Drivers[kind](t, fail)
	notYet := func() error { return nil }
	return Closed(t, "here", d, storagedrivers.Options{}), Closed(t, "there", d, storagedrivers.Options{Close: notYet})
}

// Closed returns a storage that is closed at the end of the test. Nothing may use it any more then:
// staged data must be closed, too.
func Closed(t testing.TB, name string, d storagedrivers.Driver, opts storagedrivers.Options) *storagedrivers.Storage {
	t.Helper()
	released, end := false, opts.Close
	if end == nil {
		end = d.Close
	}
	opts.Close = func() error {
		released = true
		return end()
	}
	s := storagedrivers.New(name, d, opts)
	t.Cleanup(func() {
		if err := s.Close(); err != nil || !released {
			t.Errorf("closing storage %s: released %t, error %v", name, released, err)
		}
	})
	return s
}

// Opener returns a storage. fail is called as by [NewLocal].
type Opener = func(t testing.TB, fail func(op, key string) error) *storagedrivers.Storage

// Storages are the two sorts of storages: staging in the backend, and in memory.
var Storages = map[string]Opener{"memory": OnMemory, "local": OnLocal}

// OnEach runs a test on each sort of storage, in parallel.
func OnEach(t *testing.T, test func(t *testing.T, open Opener)) {
	t.Helper()
	for name, open := range Storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open)
		})
	}
}

// Put stores a new object.
func Put(t testing.TB, s *storagedrivers.Storage, key, value string) {
	t.Helper()
	_, err := s.Put(t.Context(), key, strings.NewReader(value), storagedrivers.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// Contents returns the content of all objects of a storage, by key.
func Contents(t testing.TB, s *storagedrivers.Storage) map[string]string {
	t.Helper()
	found := map[string]string{}
	for info, err := range s.All(context.Background(), "") {
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := s.Open(context.Background(), info.Key, storagedrivers.Range{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		found[info.Key] = string(b)
	}
	return found
}

// WantContents asserts the content of all objects of a storage.
func WantContents(t testing.TB, s *storagedrivers.Storage, want map[string]string) {
	t.Helper()
	got := Contents(t, s)
	for key, value := range want {
		if have, ok := got[key]; !ok || have != value {
			t.Errorf("%s holds %.40q (there: %t), want %.40q", key, have, ok, value)
		}
		delete(got, key)
	}
	for key := range got {
		t.Errorf("%s is there, unwanted", key)
	}
}

// Request returns a request for a rendition of an image.
func Request(t testing.TB, alias *item.Alias, rendition, filename string) *derived.RenditionRequest {
	t.Helper()
	r, ok := alias.Rendition(rendition)
	if !ok {
		t.Fatalf("there is no rendition %q", rendition)
	}
	return &derived.RenditionRequest{Alias: alias, Rendition: r, Filename: filename}
}

// Opened returns the content of a rendition, made if needed, as a request for it does.
func Opened(t testing.TB, m *derived.Maker, r *derived.RenditionRequest) (string, error) {
	t.Helper()
	for range 5 {
		object, _, err := r.OpenRendition(t.Context(), r.Alias.Storage.OpenSeeker)
		if errors.Is(err, derived.ErrNotMade) {
			if err := m.MakeRendition(t.Context(), r); err != nil {
				return "", err
			}
			continue
		}
		if err != nil {
			return "", err
		}
		content, err := io.ReadAll(object)
		return string(content), errors.Join(err, object.Close())
	}
	return "", derived.ErrNotMade
}

// WantRendition asserts the content of a rendition, made if needed.
func WantRendition(t testing.TB, m *derived.Maker, r *derived.RenditionRequest, want string) {
	t.Helper()
	if got, err := Opened(t, m, r); got != want || err != nil {
		t.Errorf("%s of %s is %q, %v, want %q", r.Rendition.Name, r.Filename, got, err, want)
	}
}

// Hashes are the parts of a key that depend on settings and generation.
var Hashes = regexp.MustCompile(`\.[0-9a-f]{8}\.[0-9a-f]{16}\.`)

// WantRenditions asserts the keys of the stored renditions of an alias, without [Hashes].
func WantRenditions(t testing.TB, alias *item.Alias, want ...string) {
	t.Helper()
	var got []string
	for info, err := range alias.Storage.All(context.Background(), alias.RenditionRoot()+"/") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, Hashes.ReplaceAllString(info.Key, "."))
	}
	if !slices.Equal(got, want) {
		t.Errorf("stored renditions %q, want %q", got, want)
	}
}

// Replace puts an object, also over another one, as another process does.
func Replace(t testing.TB, s *storagedrivers.Storage, key, value string) {
	t.Helper()
	_, err := s.Put(t.Context(), key, strings.NewReader(value), storagedrivers.PutOptions{Mode: storagedrivers.Overwrite})
	if err != nil {
		t.Error(err)
	}
}
