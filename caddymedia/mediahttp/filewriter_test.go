package mediahttp

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// recorder is a connection: it takes readers, and remembers which.
type recorder struct {
	*httptest.ResponseRecorder
	readers []io.Reader
}

func (r *recorder) ReadFrom(from io.Reader) (int64, error) {
	r.readers = append(r.readers, from)
	return io.Copy(r.ResponseRecorder, from)
}

func (r *recorder) gotFile() bool {
	if len(r.readers) != 1 {
		return false
	}
	_, ok := r.readers[0].(*os.File)
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

func TestFileWriter(t *testing.T) {
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
				return local.New(t.TempDir(), false, slog.New(slog.DiscardHandler))
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
				http.ServeContent(newFileWriter(w, object), r, "a.txt", object.Info.ModTime, object)
				if got := w.Body.String(); got != c.want {
					t.Errorf("body %q, want %q", got, c.want)
				}
				if want := c.file && sort == "local"; w.gotFile() != want {
					t.Errorf("the connection got %T: the file itself is %t, want %t", w.readers, !want, want)
				}
			})
		}
	}
}

// TestFileWriterWithOtherReaders leaves readers alone that are not of the object.
func TestFileWriterWithOtherReaders(t *testing.T) {
	t.Parallel()
	object := objectOn(t, local.New(t.TempDir(), false, slog.New(slog.DiscardHandler)))
	w := &recorder{ResponseRecorder: httptest.NewRecorder()}
	to := newFileWriter(w, object).(io.ReaderFrom)
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

// TestFileWriterOnlyOverReaderFrom: without it there is nothing to win.
func TestFileWriterOnlyOverReaderFrom(t *testing.T) {
	t.Parallel()
	object := objectOn(t, local.New(t.TempDir(), false, slog.New(slog.DiscardHandler)))
	plain := httptest.NewRecorder()
	if w := newFileWriter(plain, object); w != http.ResponseWriter(plain) {
		t.Errorf("%T is wrapped in %T", plain, w)
	}
	w := newFileWriter(&recorder{ResponseRecorder: plain}, object)
	if unwrapper, ok := w.(interface{ Unwrap() http.ResponseWriter }); !ok || unwrapper.Unwrap() == w {
		t.Errorf("%T cannot be unwrapped", w)
	}
}

// TestFileWriterOverTheNetwork: the same bytes reach a client.
func TestFileWriterOverTheNetwork(t *testing.T) {
	t.Parallel()
	s := storagedrivers.New("test", local.New(t.TempDir(), false, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
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
		http.ServeContent(newFileWriter(w, object), r, "a.txt", object.Info.ModTime, object)
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
