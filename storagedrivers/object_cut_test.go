package storagedrivers_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

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

// TestObjectCutBeforeItsFirstByte: an object whose connection breaks before the first byte is opened
// again, whether its readers seek or not, but never returns bytes of another generation.
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
