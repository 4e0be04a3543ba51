package serve

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// recorder is a connection that accepts admissions and records them.
type recorder struct {
	*httptest.ResponseRecorder
	admissions []io.Reader
}

func (r *recorder) ReadFrom(from io.Reader) (int64, error) {
	r.admissions = append(r.admissions, from)
	return io.Copy(r.ResponseRecorder, from)
}

func (r *recorder) gotFile() bool {
	if len(r.admissions) != 1 {
		return false
	}
	_, ok := r.admissions[0].(*os.File)
	return ok
}

const text = "0123456789abcdefghijklmnopqrstuvwxyz"

func objectOn(t *testing.T, d storagedrivers.Driver) *storagedrivers.Object {
	t.Helper()
	s := storagedrivers.New("test", d, storagedrivers.Options{})
	if _, err := s.Put(t.Context(), "a.txt", strings.NewReader(text), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	object, err := s.OpenSeeker(t.Context(), "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := object.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return object
}

// newTestWriter returns a writer for which the object is too large to be read completely.
func newTestWriter(w http.ResponseWriter, object *storagedrivers.Object) *itemWriter {
	out := newItemWriter(w, object, func() {})
	out.small = 0
	return out
}

func TestItemWriter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, ranges string
		want         string
		file         bool
	}{
		{"whole", "", text, true},
		{"up to the end", "bytes=10-", text[10:], true},
		{"the last bytes", "bytes=-3", text[len(text)-3:], true},
		{"all of them", "bytes=0-35", text, true},
		{"the first bytes", "bytes=0-4", text[:5], false},
		{"some bytes", "bytes=5-9", text[5:10], false},
	} {
		for sort, open := range map[string]func(t *testing.T) storagedrivers.Driver{
			"local": func(t *testing.T) storagedrivers.Driver {
				t.Helper()
				return local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))
			},
			"memory": func(*testing.T) storagedrivers.Driver { return memory.New() },
		} {
			t.Run(sort+" "+c.name, func(t *testing.T) {
				t.Parallel()
				object := objectOn(t, open(t))
				w := &recorder{ResponseRecorder: httptest.NewRecorder()}
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				if c.ranges != "" {
					r.Header.Set("Range", c.ranges)
				}
				out := newTestWriter(w, object)
				http.ServeContent(out, r, "a.txt", object.Info.ModTime, object)
				if err := out.finish(); err != nil {
					t.Error(err)
				}
				if got := w.Body.String(); got != c.want {
					t.Errorf("body %q, want %q", got, c.want)
				}
				if want := c.file && sort == "local"; w.gotFile() != want {
					t.Errorf("the connection got %T: the file itself is %t, want %t", w.admissions, !want, want)
				}
			})
		}
	}
}

// TestItemWriterWithOtherReaders: admissions of other content are copied unchanged.
func TestItemWriterWithOtherReaders(t *testing.T) {
	t.Parallel()
	object := objectOn(t, local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler)))
	w := &recorder{ResponseRecorder: httptest.NewRecorder()}
	to := newTestWriter(w, object)
	for _, from := range []io.Reader{
		strings.NewReader("one "), io.LimitReader(strings.NewReader("two "), int64(len(text))),
	} {
		if _, err := to.ReadFrom(from); err != nil {
			t.Error(err)
		}
	}
	if got := w.Body.String(); got != "one two " {
		t.Errorf("body %q", got)
	}
}

// TestItemWriterShort: a response that ends early is detected, sent as a file or copied.
func TestItemWriterShort(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]http.ResponseWriter{
		"as a file": &recorder{ResponseRecorder: httptest.NewRecorder()}, "copied": httptest.NewRecorder(),
	} {
		root := t.TempDir()
		object := objectOn(t, local.New(local.Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler)))
		get := httptest.NewRequest(http.MethodGet, "/", nil)
		whole := newTestWriter(w, object)
		http.ServeContent(whole, get, "a.txt", object.Info.ModTime, object)
		if whole.short(http.MethodGet) {
			t.Errorf("%s: a whole item counts as short: %d of %d", name, whole.sent, whole.promised)
		}
		if err := os.Truncate(filepath.Join(root, "a.txt"), 10); err != nil {
			t.Fatal(err)
		}
		if _, err := object.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		cut := newTestWriter(w, object)
		cut.WriteHeader(http.StatusOK) // the length is still in the header
		if _, err := cut.ReadFrom(io.LimitReader(object, object.Info.Size)); err != nil && name == "as a file" {
			t.Errorf("%s: %v", name, err)
		}
		if !cut.short(http.MethodGet) || cut.short(http.MethodHead) {
			t.Errorf("%s: an item cut to 10 bytes: %d of %d counts as whole", name, cut.sent, cut.promised)
		}
	}
}

// TestItemWriterOverTheNetwork: the same bytes reach a client.
func TestItemWriterOverTheNetwork(t *testing.T) {
	t.Parallel()
	s := storagedrivers.New("test", local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	t.Cleanup(func() { s.Close() })
	large := bytes.Repeat([]byte(text), 100_000)
	if _, err := s.Put(t.Context(), "a.txt", bytes.NewReader(large), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		object, err := s.OpenSeeker(r.Context(), "a.txt")
		if err != nil {
			t.Error(err)
			return
		}
		defer object.Close()
		http.ServeContent(newTestWriter(w, object), r, "a.txt", object.Info.ModTime, object)
	}))
	t.Cleanup(server.Close)
	for ranges, want := range map[string][]byte{
		"": large, "bytes=1000000-": large[1_000_000:], "bytes=1000000-2999999": large[1_000_000:3_000_000],
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Range", ranges)
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %d bytes (%v), want %d", ranges, len(got), err, len(want))
		}
	}
}

// TestLeavesDuringRead: if the client disconnects during a read, the storage has not failed.
func TestLeavesDuringRead(t *testing.T) {
	t.Parallel()
	alias, d, _ := memoryAlias(t)
	store(t, alias, "a.jpg", strings.Repeat("x", 3*smallItem))
	ctx, cancel := context.WithCancel(t.Context())
	s := storagedrivers.New("left", leaving{d, cancel}, storagedrivers.Options{Close: func() error { return nil }})
	object, err := s.OpenSeeker(ctx, alias.Key("a.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	out := newItemWriter(httptest.NewRecorder(), object, func() {})
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	http.ServeContent(out, r, "", object.Info.ModTime, object)
	if err := out.finish(); err != nil {
		t.Error(err)
	}
	if !out.short(r.Method) || !errors.Is(out.failed, context.Canceled) || !out.aborted(ctx) {
		t.Errorf("short %t, aborted %t (%v)", out.short(r.Method), out.aborted(ctx), out.failed)
	}
	if err := errors.Join(object.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

// leaving is a remote driver. Its client disconnects after 100,000 bytes are read.
type leaving struct {
	*memory.Driver
	leave func()
}

func (d leaving) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.Driver.Open(ctx, key, rng)
	if err != nil {
		return nil, info, err
	}
	rest := readFunc(func() error {
		d.leave()
		return ctx.Err()
	})
	return io.NopCloser(io.MultiReader(io.LimitReader(body, 100_000), rest)), info, nil
}

// readFunc is a reader without any bytes.
type readFunc func() error

func (f readFunc) Read([]byte) (int, error) { return 0, f() }

func TestBuffers(t *testing.T) {
	t.Parallel()
	b := newBuffers(smallItem + 4<<10)
	large, release, ok := b.take(smallItem)
	if !ok || len(large) != smallItem {
		t.Fatalf("%d bytes, %t", len(large), ok)
	}
	if _, _, ok := b.take(smallItem); ok {
		t.Error("there is more than the room")
	}
	little, releaseLittle, ok := b.take(10)
	if !ok || len(little) != 10 {
		t.Errorf("%d bytes, %t", len(little), ok)
	}
	if _, _, ok := b.take(smallItem + 1); ok {
		t.Error("a buffer beyond the largest")
	}
	release()
	releaseLittle()
	again, release, ok := b.take(smallItem)
	if !ok || !bytes.Equal(again[:0], large[:0]) {
		t.Error("no room after all was released")
	}
	release()
}
