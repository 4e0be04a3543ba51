package storagedrivers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

func TestObserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := memory.New()
		d.Fail = func(op, _ string) error {
			time.Sleep(time.Second)
			if op == "stat" {
				return fs.ErrPermission
			}
			return nil
		}
		var seen []string
		s := open(t, d, storagedrivers.Options{Observe: func(op string, took time.Duration, err error) {
			seen = append(seen, fmt.Sprint(op, " ", took, " ", err))
		}})
		everyOp(t, func() *storagedrivers.Storage { return s }, "key")
		_, err := s.Stat(t.Context(), "../key")
		test.Is(t, err, storagedrivers.ErrInvalidKey)
		want := []string{
			"put 1s <nil>", "open 1s <nil>", "stat 1s permission denied", "list 1s <nil>",
			"commit 1s file already exists", "delete 1s <nil>", "check 1s <nil>",
		}
		test.Same(t, seen, want, "observed")
	})
}

// TestSizeMismatch: it is an error if the stored object is not as long as its source. The object is
// removed if it is certain to be new.
func TestSizeMismatch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		opts  storagedrivers.PutOptions
		stays bool
	}{
		{"create", create, false},
		{"overwrite", overwrite, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &stub{Driver: memory.New()}
			d.put = func(
				ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
			) (storagedrivers.Info, error) {
				b, err := io.ReadAll(r)
				if err != nil {
					return storagedrivers.Info{}, err
				}
				return d.Driver.Put(ctx, key, strings.NewReader(string(b[:len(b)-1])), opts)
			}
			s := open(t, d, storagedrivers.Options{})
			_, err := s.Put(t.Context(), "put", strings.NewReader("text"), tt.opts)
			test.Is(t, err, storagedrivers.ErrSizeMismatch)
			_, err = s.Stat(t.Context(), "put")
			if stays := err == nil; stays != tt.stays {
				t.Errorf("stayed %t, want %t", stays, tt.stays)
			}

			staged, err := s.Stage(t.Context())
			test.Is(t, err, nil)
			_, err = io.WriteString(staged, "text")
			test.Is(t, err, nil)
			err = commit(t.Context(), s, staged, "staged", tt.opts)
			test.Is(t, err, storagedrivers.ErrSizeMismatch)
			test.Is(t, staged.Close(), nil)
			_, err = s.Stat(t.Context(), "staged") // nothing stood there: rolled back in both modes
			test.Is(t, err, fs.ErrNotExist)
		})
	}
}

func TestContentTypeIsFilledIn(t *testing.T) {
	t.Parallel()
	d := &stub{Driver: memory.New()}
	var got []string
	d.put = func(
		ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
	) (storagedrivers.Info, error) {
		got = append(got, opts.ContentType)
		return d.Driver.Put(ctx, key, r, opts)
	}
	s := open(t, d, storagedrivers.Options{})
	for _, opts := range []storagedrivers.PutOptions{overwrite, {Mode: storagedrivers.Overwrite, ContentType: "x/y"}} {
		_, err := s.Put(t.Context(), "a.png", strings.NewReader("text"), opts)
		test.Is(t, err, nil)
		staged, err := s.Stage(t.Context())
		test.Is(t, err, nil)
		err = commit(t.Context(), s, staged, "a.png", opts)
		test.Is(t, err, nil)
		test.Is(t, staged.Close(), nil)
	}
	test.Same(t, got, []string{"image/png", "image/png", "x/y", "x/y"}, "drivers got")
}

// TestAllPages: All returns the objects of several pages, even while they are deleted.
func TestAllPages(t *testing.T) {
	t.Parallel()
	const n = 2*1000 + 1
	pages := 0
	d := memory.New()
	d.Fail = func(op, _ string) error {
		if op == "list" {
			pages++
		}
		return nil
	}
	s := open(t, d, storagedrivers.Options{})
	for i := range n {
		put(t, s, fmt.Sprintf("all/%04d", i), "")
	}
	i := 0
	for info, err := range s.All(t.Context(), "all/") {
		if want := fmt.Sprintf("all/%04d", i); err != nil || info.Key != want {
			t.Fatalf("%q, want %q, error %v", info.Key, want, err)
		}
		test.Is(t, s.Delete(t.Context(), info.Key), nil)
		i++
	}
	if i != n || pages != 3 {
		t.Errorf("%d objects on %d pages, want %d on 3", i, pages, n)
	}
}

func TestAllFails(t *testing.T) {
	t.Parallel()
	d := memory.New()
	d.Fail = func(string, string) error { return fs.ErrPermission }
	s := open(t, d, storagedrivers.Options{})
	n := 0
	for _, err := range s.All(t.Context(), "") {
		test.Is(t, err, fs.ErrPermission)
		n++
	}
	test.Equal(t, n, 1, "errors")
}

// TestClose: Options.Close is called instead of the driver's Close, its error is returned by the
// last release, and closing a reader twice counts once.
func TestClose(t *testing.T) {
	t.Parallel()
	failed := errors.New("closing failed")
	closes := 0
	s := storagedrivers.New("test", memory.New(), storagedrivers.Options{Close: func() error {
		closes++
		return failed
	}})
	put(t, s, "key", "text")
	first, _, err := s.Open(t.Context(), "key", all)
	test.Is(t, err, nil)
	second, _, err := s.Open(t.Context(), "key", all)
	test.Is(t, err, nil)
	o, err := s.OpenSeeker(t.Context(), "key")
	test.Is(t, err, nil)
	test.Is(t, s.Close(), nil)
	for range 3 {
		test.Is(t, first.Close(), nil)
		test.Is(t, o.Close(), nil)
	}
	if closes != 0 {
		t.Fatalf("closed under a reader")
	}
	test.Is(t, second.Close(), failed)
	test.Is(t, second.Close(), nil)
	test.Is(t, s.Close(), nil)
	test.Equal(t, closes, 1, "closed", "times")
}

func TestName(t *testing.T) {
	t.Parallel()
	test.Equal(t, open(t, memory.New(), storagedrivers.Options{}).Name(), "test", "name")
}

// brokenSeeker is a reader whose Seek fails.
type brokenSeeker struct{ *strings.Reader }

func (brokenSeeker) Seek(int64, int) (int64, error) { return 0, errCut }

func TestPutOfBrokenSeeker(t *testing.T) {
	t.Parallel()
	s := open(t, memory.New(), storagedrivers.Options{})
	_, err := s.Put(t.Context(), "key", brokenSeeker{strings.NewReader("text")}, create)
	test.Is(t, err, errCut)
}
