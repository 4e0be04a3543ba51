package serve

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

var overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}

// memoryAlias returns an alias of images with variants, on a storage in memory that counts its
// calls.
func memoryAlias(t *testing.T) (*item.Alias, *memory.Driver, map[string]int) {
	t.Helper()
	calls := map[string]int{}
	d := memory.New()
	d.Fail = func(op, _ string) error {
		calls[op]++
		return nil
	}
	s := storagedrivers.New("test", d, storagedrivers.Options{})
	t.Cleanup(func() { s.Close() })
	return &item.Alias{
		Kind: item.Image, Name: "content", Prefix: "img/content", Storage: s,
		Extensions: map[string]bool{"jpg": true}, WebP: &render.Options{}, CacheControl: "no-cache",
	}, d, calls
}

func store(t *testing.T, alias *item.Alias, filename, text string) {
	t.Helper()
	if _, err := alias.Storage.Put(t.Context(), alias.Key(filename), strings.NewReader(text), overwrite); err != nil {
		t.Fatal(err)
	}
}

// TestRequestsToTheStorage: a GET is one request, and a response without a body transfers no
// content.
func TestRequestsToTheStorage(t *testing.T) {
	t.Parallel()
	alias, _, calls := memoryAlias(t)
	store(t, alias, "a.jpg", text)
	info, err := alias.Storage.Stat(t.Context(), alias.Key("a.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		method, header, value string
		status, opens, stats  int
	}{
		"GET":        {http.MethodGet, "Accept", "*/*", 200, 1, 0},
		"HEAD":       {http.MethodHead, "Accept", "*/*", 200, 0, 1},
		"unchanged":  {http.MethodGet, "If-None-Match", info.ETag, 304, 0, 1},
		"changed":    {http.MethodGet, "If-None-Match", `"other"`, 200, 1, 1},
		"range":      {http.MethodGet, "Range", "bytes=3-5", 206, 1, 1},
		"past range": {http.MethodGet, "Range", "bytes=100-", 416, 0, 1},
	} {
		clear(calls)
		r := httptest.NewRequestWithContext(t.Context(), tt.method, "/", nil)
		r.Header.Set(tt.header, tt.value)
		w := httptest.NewRecorder()
		object, _, err := target{alias: alias, maker: derivedtest.NewMaker(nil, render.Limits{}), filename: "a.jpg"}.open(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		setHeaders(w.Header(), target{alias: alias}, object.Info)
		out := newItemWriter(w, object, func() {})
		http.ServeContent(out, r, "", object.Info.ModTime, object)
		if err := out.finish(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if w.Code != tt.status || calls["open"] != tt.opens || calls["stat"] != tt.stats {
			t.Errorf("%s: status %d, opened %d times, looked %d times, want %d, %d, %d",
				name, w.Code, calls["open"], calls["stat"], tt.status, tt.opens, tt.stats)
		}
		if err := object.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReplacedBeforeTheFirstByte: nothing is sent of an item that is replaced between open and the
// first read, so that the response can start again.
func TestReplacedBeforeTheFirstByte(t *testing.T) {
	t.Parallel()
	alias, _, _ := memoryAlias(t)
	store(t, alias, "a.jpg", text)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Range", "bytes=3-5")
	w := httptest.NewRecorder()
	object, _, err := target{alias: alias, maker: derivedtest.NewMaker(nil, render.Limits{}), filename: "a.jpg"}.open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	store(t, alias, "a.jpg", strings.ToUpper(text))
	out := newItemWriter(w, object, func() {})
	http.ServeContent(out, r, "", object.Info.ModTime, object)
	if err := out.finish(); !errors.Is(err, storagedrivers.ErrChanged) {
		t.Errorf("error %v, want that it was replaced", err)
	}
	if out.started || w.Body.Len() > 0 {
		t.Errorf("%q was sent", w.Body)
	}
}

// TestSmallItemIsClosedFirst: a small item, or a small range, is closed before the first byte is
// written, so that a client that does not read holds no file.
func TestSmallItemIsClosedFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size   int
		ranges string
		closed bool
	}{
		"empty": {0, "", true}, "small": {100, "", true}, "largest": {smallItem, "", true}, "large": {smallItem + 1, "", false},
		"small range": {4 * smallItem, "bytes=100003-100012", true}, "rest": {100, "bytes=5-", true},
	} {
		alias, _, _ := memoryAlias(t)
		content := strings.Repeat("x", c.size)
		store(t, alias, "a.jpg", content)
		object, err := alias.Storage.OpenSeeker(t.Context(), alias.Key("a.jpg"))
		if err != nil {
			t.Fatal(err)
		}
		closed := false
		w := &onWrite{ResponseRecorder: httptest.NewRecorder()}
		w.do = func() {
			if closed != c.closed {
				t.Errorf("%s: closed before it is written: %t, want %t", name, closed, c.closed)
			}
		}
		out := newItemWriter(w, object, func() { closed = true })
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Range", c.ranges)
		http.ServeContent(out, r, "", object.Info.ModTime, object)
		if err := out.finish(); err != nil || c.ranges == "" && w.Body.String() != content {
			t.Errorf("%s: %d bytes were sent, error %v", name, w.Body.Len(), err)
		}
		if err := object.Close(); err != nil {
			t.Error(err)
		}
	}
}

type onWrite struct {
	*httptest.ResponseRecorder
	do func()
}

func (w *onWrite) Write(p []byte) (int, error) {
	w.do()
	return w.ResponseRecorder.Write(p)
}

// failing is a connection that fails after some bytes.
type failing struct {
	*httptest.ResponseRecorder
	after int
}

func (w *failing) Write(p []byte) (int, error) {
	if w.Body.Len()+len(p) > w.after {
		return 0, &wrapped{syscall.ECONNRESET}
	}
	return w.ResponseRecorder.Write(p)
}

type wrapped struct{ error }

// TestWhoBrokeOff: a client that disconnects is distinguished from a storage that fails.
func TestWhoBrokeOff(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("x", 3*smallItem)
	for name, tt := range map[string]struct {
		broken  int64 // where the storage breaks off
		hangsUp int
		aborted bool
	}{
		"client":  {4 * smallItem, 1000, true},
		"storage": {100_000, 4 * smallItem, false},
	} {
		alias, d, _ := memoryAlias(t)
		store(t, alias, "a.jpg", content)
		s := storagedrivers.New("cut", cutting{d, tt.broken}, storagedrivers.Options{Close: func() error { return nil }})
		object, err := s.OpenSeeker(t.Context(), alias.Key("a.jpg"))
		if err != nil {
			t.Fatal(err)
		}
		out := newItemWriter(&failing{httptest.NewRecorder(), tt.hangsUp}, object, func() {})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		http.ServeContent(out, r, "", object.Info.ModTime, object)
		if err := out.finish(); name == "storage" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if aborted := out.aborted(r.Context()); !out.short(r.Method) || aborted != tt.aborted {
			t.Errorf("%s: short %t, aborted %t (%v), want %t", name, out.short(r.Method), aborted, out.err, tt.aborted)
		}
		if err := errors.Join(object.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// cutting is a driver whose admissions fail early, and whose objects have no tag to resume by.
type cutting struct {
	*memory.Driver
	after int64
}

func (d cutting) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.Driver.Open(ctx, key, rng)
	if err != nil {
		return nil, info, err
	}
	info.ETag = ""
	return io.NopCloser(io.LimitReader(body, d.after)), info, nil
}

// dated is a driver of objects with set times.
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

// TestStaleVariant: a variant that is older than its image, or has no image, is not served, under
// neither address.
func TestStaleVariant(t *testing.T) {
	t.Parallel()
	alias, d, calls := memoryAlias(t)
	alias.Overwrite = true
	times := map[string]time.Time{}
	alias.Storage = storagedrivers.New("dated", dated{d, times}, storagedrivers.Options{Close: func() error { return nil }})
	now := time.Unix(1_000, 0)
	store := func(t *testing.T, alias *item.Alias, filename, text string) {
		t.Helper()
		store(t, alias, filename, text)
		times[alias.Key(filename)] = now
	}
	get := func() error {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		object, _, err := target{alias: alias, filename: "a.jpg.webp"}.open(t.Context(), r)
		if err == nil {
			err = object.Close()
		}
		return err
	}
	is := func(when string, want error) {
		t.Helper()
		if err := get(); !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", when, err, want)
		}
	}
	negotiated := func(when, want string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Accept", "image/webp")
		object, _, err := target{alias: alias, maker: derivedtest.NewMaker(nil, render.Limits{}), filename: "a.jpg"}.open(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		defer object.Close()
		if object.Info.Key != alias.Key(want) {
			t.Errorf("%s: negotiated %s, want %s", when, object.Info.Key, want)
		}
	}
	alias.Negotiate = true
	store(t, alias, "a.jpg", "image")
	is("no variant yet", fs.ErrNotExist)
	negotiated("no variant yet", "a.jpg")
	store(t, alias, "a.jpg.webp", "variant")
	is("of the same second", nil)
	negotiated("of the same second", "a.jpg.webp")
	now = now.Add(time.Second)
	store(t, alias, "a.jpg", "replaced")
	is("of the image before", fs.ErrNotExist)
	negotiated("of the image before", "a.jpg")
	alias.Overwrite = false
	clear(calls)
	is("never replaced", nil)
	if calls["stat"] > 0 {
		t.Error("the image was looked at that is never replaced")
	}
	alias.Overwrite = true
	store(t, alias, "a.jpg.webp", "variant")
	is("made anew", nil)
	if err := alias.Storage.Delete(t.Context(), alias.Key("a.jpg")); err != nil {
		t.Fatal(err)
	}
	is("without an image", fs.ErrNotExist)
}

// TestNegotiationFails: an image whose header cannot be read is closed, so that its storage can be.
func TestNegotiationFails(t *testing.T) {
	t.Parallel()
	alias, d, _ := memoryAlias(t)
	closed := false
	alias.Storage = storagedrivers.New("closed", d, storagedrivers.Options{Close: func() error { closed = true; return nil }})
	alias.Negotiate = true
	store(t, alias, "a.jpg", "image")
	d.Fail = func(op, _ string) error {
		if op == "open" {
			return fs.ErrPermission
		}
		return nil
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Accept", webpType)
	if _, _, err := (target{alias: alias, maker: derivedtest.NewMaker(nil, render.Limits{}), filename: "a.jpg"}).open(t.Context(), r); err == nil {
		t.Error("opened")
	}
	if err := alias.Storage.Close(); err != nil || !closed {
		t.Errorf("the storage is in use: closed %t, error %v", closed, err)
	}
}
