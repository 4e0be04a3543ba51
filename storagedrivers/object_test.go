package storagedrivers_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// counted returns a driver that counts its operations by name.
func counted() (*memory.Driver, map[string]int) {
	calls := map[string]int{}
	d := memory.New()
	d.Fail = func(op, _ string) error {
		calls[op]++
		return nil
	}
	return d, calls
}

// openSeeker opens "key". The object is closed at the end of the test.
func openSeeker(t *testing.T, s *storagedrivers.Storage) *storagedrivers.Object {
	t.Helper()
	return opened(t, s.OpenSeeker)
}

// openLazy is openSeeker with OpenLazy.
func openLazy(t *testing.T, s *storagedrivers.Storage) *storagedrivers.Object {
	t.Helper()
	return opened(t, s.OpenLazy)
}

func opened(
	t *testing.T, open func(context.Context, string) (*storagedrivers.Object, error),
) *storagedrivers.Object {
	t.Helper()
	o, err := open(t.Context(), "key")
	test.Must(t, err)
	t.Cleanup(func() { test.Is(t, o.Close(), nil) })
	return o
}

func reads(t *testing.T, r io.Reader, n int, want string) {
	t.Helper()
	got := make([]byte, n)
	if _, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Errorf("read %q, want %q, error %v", got, want, err)
	}
}

// ends asserts that r returns io.EOF, unwrapped.
func ends(t *testing.T, r io.Reader) {
	t.Helper()
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read %d bytes at the end, error %v", n, err)
	}
}

func seeks(t *testing.T, s io.Seeker, offset int64, whence int, want int64) {
	t.Helper()
	if at, err := s.Seek(offset, whence); err != nil || at != want {
		t.Errorf("seeking %d from %d: at %d, want %d, error %v", offset, whence, at, want, err)
	}
}

// TestObjectIsLazy: nothing is opened before the first Read.
func TestObjectIsLazy(t *testing.T) {
	t.Parallel()
	d, calls := counted()
	s := open(t, d, storagedrivers.Options{})
	put(t, s, "key", "0123456789")
	o := openLazy(t, s)
	seeks(t, o, 0, io.SeekEnd, 10)
	ends(t, o)
	seeks(t, o, 4, io.SeekStart, 4)
	if calls["open"] != 0 || o.Underlying() != nil {
		t.Errorf("opened %d times before the first Read", calls["open"])
	}
	reads(t, o, 2, "45")
	if calls["open"] != 1 || calls["stat"] != 1 || o.Underlying() == nil {
		t.Errorf("opened %d times, looked %d times, want once", calls["open"], calls["stat"])
	}
	lazy := openLazy(t, s)
	put(t, s, "key", "9876543210")
	_, err := lazy.Read(make([]byte, 1))
	test.Is(t, err, storagedrivers.ErrChanged)
	_, err = s.OpenLazy(t.Context(), "missing")
	test.Fails(t, err, "a missing object was opened")
}

// TestObjectIsOpenedOnce: Info and bytes come from one request. Only an offset before the reader's
// position, or far after it, needs a new one.
func TestObjectIsOpenedOnce(t *testing.T) {
	t.Parallel()
	d, calls := counted()
	s := open(t, d, storagedrivers.Options{})
	text := strings.Repeat("0123456789", 20_000)
	put(t, s, "key", text)
	o := openSeeker(t, s)
	put(t, s, "key", strings.Repeat("replaced..", 20_000))
	opened := func(want int) {
		t.Helper()
		if calls["open"] != want || calls["stat"] > 0 {
			t.Errorf("opened %d times, looked %d times, want %d and none", calls["open"], calls["stat"], want)
		}
	}
	seeks(t, o, 0, io.SeekEnd, int64(len(text)))
	seeks(t, o, 0, io.SeekStart, 0)
	reads(t, o, 2, "01")
	seeks(t, o, 2, io.SeekCurrent, 4)
	reads(t, o, 2, "45")
	seeks(t, o, 64<<10, io.SeekCurrent, 6+64<<10)
	reads(t, o, 2, "23") // 65,542
	opened(1)
	put(t, s, "key", text)
	o = openSeeker(t, s)
	opened(2)
	seeks(t, o, 150_003, io.SeekStart, 150_003)
	reads(t, o, 2, "34")
	opened(3)
	seeks(t, o, -2, io.SeekCurrent, 150_003)
	reads(t, o, 2, "34")
	opened(4)
	seeks(t, o, 0, io.SeekEnd, int64(len(text)))
	ends(t, o)
	opened(4)
	for _, whence := range []int{io.SeekStart, 3, -1} {
		_, err := o.Seek(-1, whence)
		test.Fails(t, err, "seeking to -1 from", whence, "succeeded")
	}
}

// TestObjectWithoutIdentity: if neither a tag nor a time identifies a generation, bytes of two
// readers are never combined.
func TestObjectWithoutIdentity(t *testing.T) {
	t.Parallel()
	d := &stub{Driver: memory.New()}
	d.stat = func(ctx context.Context, key string) (storagedrivers.Info, error) {
		info, err := d.Driver.Stat(ctx, key)
		info.ETag, info.ModTime = "", time.Time{}
		return info, err
	}
	d.open = func(
		ctx context.Context, key string, rng storagedrivers.Range,
	) (io.ReadCloser, storagedrivers.Info, error) {
		body, info, err := d.Driver.Open(ctx, key, rng)
		info.ETag, info.ModTime = "", time.Time{}
		return body, info, err
	}
	s := open(t, d, storagedrivers.Options{})
	put(t, s, "key", "old text")
	o := openLazy(t, s)
	seeks(t, o, 4, io.SeekStart, 4)
	reads(t, o, 2, "te")
	put(t, s, "key", "new text")
	seeks(t, o, 0, io.SeekStart, 0)
	_, err := o.Read(make([]byte, 1))
	test.Is(t, err, storagedrivers.ErrChanged)
}

// TestObjectChanged: after it is replaced, an object that must be opened again returns no more
// bytes, in any number of reads.
func TestObjectChanged(t *testing.T) {
	t.Parallel()
	later := time.Unix(1, 0)
	for name, strip := range map[string]func(*storagedrivers.Info){
		"by etag":     func(*storagedrivers.Info) {},
		"by mod time": func(i *storagedrivers.Info) { i.ETag = "" },
		"by size":     func(i *storagedrivers.Info) { i.ETag, i.ModTime = "", later },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &stub{Driver: memory.New()}
			d.stat = func(ctx context.Context, key string) (storagedrivers.Info, error) {
				info, err := d.Driver.Stat(ctx, key)
				strip(&info)
				return info, err
			}
			d.open = func(
				ctx context.Context, key string, rng storagedrivers.Range,
			) (io.ReadCloser, storagedrivers.Info, error) {
				body, info, err := d.Driver.Open(ctx, key, rng)
				strip(&info)
				return body, info, err
			}
			s := open(t, d, storagedrivers.Options{})
			put(t, s, "key", "old text")
			o := openSeeker(t, s)
			reads(t, o, 3, "old")
			second := "new text"
			if name == "by size" {
				second = "a longer text"
			}
			put(t, s, "key", second)
			reads(t, o, 5, " text")
			seeks(t, o, 0, io.SeekStart, 0)
			for range 3 {
				if b, err := io.ReadAll(o); len(b) > 0 || err == nil || !strings.Contains(err.Error(), "replaced") {
					t.Errorf("read %q of another generation, error %v", b, err)
				}
			}
		})
	}
}

func TestObjectClosed(t *testing.T) {
	t.Parallel()
	d, calls := counted()
	s := open(t, d, storagedrivers.Options{})
	put(t, s, "key", "text")
	o := openSeeker(t, s)
	test.Is(t, o.Close(), nil)
	_, err := o.Read(make([]byte, 1))
	test.Is(t, err, fs.ErrClosed)
	test.Equal(t, calls["open"], 1, "opened", "times")
	_, err = s.OpenSeeker(t.Context(), "missing")
	test.Is(t, err, fs.ErrNotExist)
}

// seekingBody is a reader like that of a driver that seeks.
type seekingBody struct {
	*bytes.Reader
	closes int
}

func (b *seekingBody) Close() error {
	b.closes++
	return nil
}

// TestObjectOfSeekingDriver: one reader serves all reads.
func TestObjectOfSeekingDriver(t *testing.T) {
	t.Parallel()
	body := &seekingBody{Reader: bytes.NewReader([]byte("0123456789"))}
	opens := 0
	d := &stub{
		Driver:   memory.New(),
		features: &storagedrivers.Features{Seek: true},
		open: func(context.Context, string, storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
			opens++
			return body, storagedrivers.Info{Key: "key", Size: 10}, nil
		},
	}
	s := open(t, d, storagedrivers.Options{})
	o, err := s.OpenSeeker(t.Context(), "key")
	test.Is(t, err, nil)
	test.Equal(t, o.Underlying(), io.Reader(body), "underlying")
	reads(t, o, 2, "01")
	seeks(t, o, -2, io.SeekEnd, 8)
	reads(t, o, 2, "89")
	ends(t, o)
	_, err = o.Seek(-1, io.SeekStart)
	test.Fails(t, err, "seeking to -1 succeeded")
	ends(t, o)
	seeks(t, o, 5, io.SeekStart, 5)
	reads(t, o, 5, "56789")
	test.Is(t, o.Close(), nil)
	if opens != 1 || body.closes != 1 {
		t.Errorf("opened %d times and closed %d times, want once", opens, body.closes)
	}
}

// TestOpenLocal: opening has a time-out, unless the driver is local.
func TestOpenLocal(t *testing.T) {
	t.Parallel()
	for _, local := range []bool{false, true} {
		d := &stub{Driver: memory.New(), features: &storagedrivers.Features{Local: local}}
		d.open = func(
			ctx context.Context, key string, rng storagedrivers.Range,
		) (io.ReadCloser, storagedrivers.Info, error) {
			if bounded := ctx != t.Context(); bounded == local {
				t.Errorf("local %t: a context of its own: %t", local, bounded)
			}
			return d.Driver.Open(ctx, key, rng)
		}
		s := open(t, d, storagedrivers.Options{})
		put(t, s, "key", "text")
		reads(t, openSeeker(t, s), 4, "text")
	}
}

// TestObjectCutShort: an object does not end where a reader ends early. Another reader reads the
// rest, a few times, if it is certain to be of the same generation.
func TestObjectCutShort(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		each int64 // bytes before each cut
		etag bool
		want string
		err  error
	}{
		"rarely":          {3, true, "0123456789", nil},
		"all the time":    {1, true, "0123", io.ErrUnexpectedEOF},
		"without an etag": {3, false, "012", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &stub{Driver: memory.New()}
			strip := func(info storagedrivers.Info) storagedrivers.Info {
				if !tt.etag {
					info.ETag = ""
				}
				return info
			}
			d.stat = func(ctx context.Context, key string) (storagedrivers.Info, error) {
				info, err := d.Driver.Stat(ctx, key)
				return strip(info), err
			}
			d.open = func(
				ctx context.Context, key string, rng storagedrivers.Range,
			) (io.ReadCloser, storagedrivers.Info, error) {
				body, info, err := d.Driver.Open(ctx, key, rng)
				return io.NopCloser(io.LimitReader(body, tt.each)), strip(info), err
			}
			s := open(t, d, storagedrivers.Options{})
			put(t, s, "key", "0123456789")
			b, err := io.ReadAll(openSeeker(t, s))
			test.Is(t, err, tt.err)
			test.Equal(t, string(b), tt.want, "read", b)
		})
	}
}

// TestObjectCutBeforeItsFirstByte: an object whose connection breaks before the first byte is
// opened again, whether its readers seek or not, but never returns bytes of another generation.
func TestObjectCutBeforeItsFirstByte(t *testing.T) {
	t.Parallel()
	cut := storagedrivers.ErrUnavailable
	for name, tt := range map[string]struct {
		seeks    bool
		cuts     int
		by       error
		replaced bool
		err      error
	}{
		"a stream":                {false, 1, cut, false, nil},
		"a seeker":                {true, 1, cut, false, nil},
		"again and again":         {true, 3, cut, false, nil},
		"all the time":            {true, 9, cut, false, cut},
		"silent":                  {true, 1, errors.Join(cut, os.ErrDeadlineExceeded), false, os.ErrDeadlineExceeded},
		"replaced meanwhile":      {true, 1, cut, true, storagedrivers.ErrChanged},
		"a stream, then replaced": {false, 1, cut, true, storagedrivers.ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &stub{Driver: memory.New(), features: &storagedrivers.Features{Seek: tt.seeks}}
			var s *storagedrivers.Storage
			cut := func() error {
				if tt.replaced {
					put(t, s, "key", "9876543210")
				}
				return tt.by
			}
			cuts := tt.cuts
			d.open = func(
				ctx context.Context, key string, rng storagedrivers.Range,
			) (io.ReadCloser, storagedrivers.Info, error) {
				body, info, err := d.Driver.Open(ctx, key, rng)
				info.ETag = ""
				if cuts == 0 || err != nil {
					return body, info, err
				}
				cuts--
				return &cutBody{bytes.NewReader([]byte("0123456789")), cut}, info, nil
			}
			s = open(t, d, storagedrivers.Options{})
			put(t, s, "key", "0123456789")
			o := openSeeker(t, s)
			seeks(t, o, 0, io.SeekEnd, 10)
			seeks(t, o, 0, io.SeekStart, 0)
			b, err := io.ReadAll(o)
			test.Is(t, err, tt.err)
			test.Equal(t, string(b), map[bool]string{true: "0123456789"}[tt.err == nil], "read", b)
			if tt.err == nil {
				seeks(t, o, -3, io.SeekEnd, 7)
				reads(t, o, 3, "789")
				ends(t, o)
			}
		})
	}
}

// cutBody is a reader whose connection breaks at the first Read.
type cutBody struct {
	*bytes.Reader
	read func() error
}

func (b *cutBody) Read([]byte) (int, error) { return 0, b.read() }

func (*cutBody) Close() error { return nil }
