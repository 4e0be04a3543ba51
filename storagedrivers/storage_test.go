package storagedrivers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	create    = storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
	all       = storagedrivers.Range{}
)

// stub is the memory driver with some methods replaced.
type stub struct {
	*memory.Driver
	put func(
		ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
	) (storagedrivers.Info, error)
	open func(
		ctx context.Context, key string, rng storagedrivers.Range,
	) (io.ReadCloser, storagedrivers.Info, error)
	stat     func(ctx context.Context, key string) (storagedrivers.Info, error)
	remove   func(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error
	features *storagedrivers.Features
}

func (s *stub) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	if s.put != nil {
		return s.put(ctx, key, r, opts)
	}
	return s.Driver.Put(ctx, key, r, opts)
}

func (s *stub) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	if s.open != nil {
		return s.open(ctx, key, rng)
	}
	return s.Driver.Open(ctx, key, rng)
}

func (s *stub) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	if s.stat != nil {
		return s.stat(ctx, key)
	}
	return s.Driver.Stat(ctx, key)
}

func (s *stub) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	if s.remove != nil {
		return s.remove(ctx, key, opts)
	}
	return s.Driver.Delete(ctx, key, opts)
}

func (s *stub) Features() storagedrivers.Features {
	if s.features != nil {
		return *s.features
	}
	return s.Driver.Features()
}

// open returns a storage that is closed at the end of the test.
func open(t *testing.T, d storagedrivers.Driver, opts storagedrivers.Options) *storagedrivers.Storage {
	t.Helper()
	s := storagedrivers.New("test", d, opts)
	t.Cleanup(func() {
		test.Is(t, s.Close(), nil, "closing the storage")
	})
	return s
}

// onEach returns a function that returns a new storage on d. Storages do not share a circuit.
func onEach(t *testing.T, d storagedrivers.Driver) func() *storagedrivers.Storage {
	t.Helper()
	t.Cleanup(func() { test.Is(t, d.Close(), nil) })
	return func() *storagedrivers.Storage {
		return open(t, d, storagedrivers.Options{Close: func() error { return nil }})
	}
}

// put stores text under key.
func put(t *testing.T, s *storagedrivers.Storage, key, text string) {
	t.Helper()
	_, err := s.Put(t.Context(), key, strings.NewReader(text), overwrite)
	test.Must(t, err)
}

// has asserts that key holds text.
func has(t *testing.T, s *storagedrivers.Storage, key, text string) {
	t.Helper()
	body, _, err := s.Open(t.Context(), key, all)
	test.Must(t, err)
	got, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil || string(got) != text {
		t.Errorf("%q holds %d bytes, want %d, equal %t, error %v", key, len(got), len(text), string(got) == text, err)
	}
}

// missing asserts that there is no object under key.
func missing(t *testing.T, s *storagedrivers.Storage, key string) {
	t.Helper()
	_, err := s.Stat(t.Context(), key)
	test.Is(t, err, fs.ErrNotExist)
}

// everyOp calls every method, each on another storage, and returns the errors by the name of the
// operation.
func everyOp(t *testing.T, storage func() *storagedrivers.Storage, key string) map[string]error {
	t.Helper()
	ctx := t.Context()
	closing := func(c io.Closer, err error) error {
		if err == nil {
			return c.Close()
		}
		return err
	}
	_, putErr := storage().Put(ctx, key, strings.NewReader("text"), overwrite)
	body, _, openErr := storage().Open(ctx, key, all)
	_, statErr := storage().Stat(ctx, key)
	_, listErr := storage().List(ctx, storagedrivers.ListOptions{})
	commitErr := commitText(ctx, t, storage(), key, "", create)
	return map[string]error{
		"put": putErr, "open": closing(body, openErr), "stat": statErr, "list": listErr,
		"delete": storage().Delete(ctx, key), "check": storage().Check(ctx), "commit": commitErr,
	}
}

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

			test.Is(t, commitText(t.Context(), t, s, "staged", "text", tt.opts), storagedrivers.ErrSizeMismatch)
			missing(t, s, "staged") // nothing stood there: rolled back in both modes
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
		test.Is(t, commitText(t.Context(), t, s, "a.png", "", opts), nil)
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

const mib = 1 << 20

// stage returns a staged object and writes parts to it.
func stage(t *testing.T, s *storagedrivers.Storage, parts ...string) storagedrivers.Staged {
	t.Helper()
	staged, err := s.Stage(t.Context())
	test.Must(t, err)
	for _, part := range parts {
		_, err := io.WriteString(staged, part)
		test.Must(t, err)
	}
	return staged
}

// TestSpoolBoundary: up to 1 MiB no file is created. The missing spool folder would fail it.
func TestSpoolBoundary(t *testing.T) {
	t.Parallel()
	s := open(t, memory.New(), storagedrivers.Options{SpoolDir: filepath.Join(t.TempDir(), "missing")})
	text := strings.Repeat("x", mib-1) + "y"
	staged := stage(t, s, text[:mib/2], text[mib/2:])
	_, err := io.WriteString(staged, "z")
	test.Is(t, err, fs.ErrNotExist)
	test.Is(t, staged.Close(), nil)

	test.Is(t, commitText(t.Context(), t, s, "key", text, create), nil)
	has(t, s, "key", text)
}

// TestSpoolFile: an object beyond 1 MiB is in a file without a name.
func TestSpoolFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, memory.New(), storagedrivers.Options{SpoolDir: dir})
	text := strings.Repeat("0123456789", mib/5)
	staged := stage(t, s, text[:mib], text[mib:mib+1], text[mib+1:])
	names, err := os.ReadDir(dir)
	if err != nil || len(names) > 0 {
		t.Errorf("the spool folder holds %v, error %v", names, err)
	}
	seeks(t, staged, 0, io.SeekEnd, int64(len(text)))
	seeks(t, staged, mib-1, io.SeekStart, mib-1)
	reads(t, staged, 2, text[mib-1:mib+1])
	for _, key := range []string{"key", "other"} {
		put(t, s, "key", "taken")
		err = commit(t.Context(), s, staged, key, create)
	}
	test.Is(t, err, nil)
	test.Is(t, staged.Close(), nil)
	has(t, s, "key", "taken")
	has(t, s, "other", text)
}

// brokenStager is a Stager whose Stage fails.
type brokenStager struct {
	*memory.Driver
	storagedrivers.Stager
}

func (brokenStager) Commit(context.Context, []storagedrivers.Change) ([]storagedrivers.Info, error) {
	return nil, storagedrivers.ErrNoSpace
}

func (brokenStager) Stage(context.Context) (storagedrivers.Staged, error) {
	return nil, storagedrivers.ErrNoSpace
}

func TestStageFails(t *testing.T) {
	t.Parallel()
	closes := 0
	s := storagedrivers.New("test", brokenStager{Driver: memory.New()}, storagedrivers.Options{Close: func() error {
		closes++
		return nil
	}})
	_, err := s.Stage(t.Context())
	test.Is(t, err, storagedrivers.ErrNoSpace)
	test.Is(t, s.Close(), nil)
	test.Equal(t, closes, 1, "closed", "times after a failed stage")
}

// TestSpoolsTogether: many small objects at once move to files before they exceed the memory, which
// is free again after them.
func TestSpoolsTogether(t *testing.T) { // not parallel: all spools share this memory
	const limit = 64
	text := strings.Repeat("x", mib)
	s := open(t, memory.New(), storagedrivers.Options{SpoolDir: t.TempDir()})
	full := open(t, memory.New(), storagedrivers.Options{SpoolDir: filepath.Join(t.TempDir(), "missing")})
	for range 2 {
		spools := make([]storagedrivers.Staged, limit)
		large := stage(t, s, text, "in a file")
		for i := range spools {
			spools[i] = stage(t, full, text)
		}
		one := stage(t, full)
		_, err := io.WriteString(one, "x")
		test.Is(t, err, fs.ErrNotExist)
		small := stage(t, s, "small")
		err = commit(t.Context(), s, small, "small", overwrite)
		test.Is(t, err, nil)
		has(t, s, "small", "small")
		for _, staged := range append(spools, large, one, small) {
			test.Is(t, staged.Close(), nil)
		}
	}
}

// roomy is a driver that reports its space.
type roomy struct {
	*memory.Driver
	err error
}

func (r roomy) Space(context.Context) (storagedrivers.Space, error) {
	return storagedrivers.Space{Free: 2, Total: 3}, r.err
}

// TestSpace: the space is that of the driver. One that does not report it is asked nothing.
func TestSpace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		driver storagedrivers.Driver
		want   error
	}{
		{memory.New(), errors.ErrUnsupported},
		{roomy{memory.New(), errors.ErrUnsupported}, errors.ErrUnsupported},
		{roomy{memory.New(), storagedrivers.ErrUnavailable}, storagedrivers.ErrUnavailable},
		{roomy{memory.New(), nil}, nil},
	} {
		space, err := open(t, tt.driver, storagedrivers.Options{}).Space(t.Context())
		test.Is(t, err, tt.want)
		if opErr, ok := errors.AsType[*storagedrivers.OpError](err); tt.want != nil && (!ok || opErr.Op != "space") {
			t.Errorf("error %#v, want an OpError", err)
		}
		if want := (storagedrivers.Space{Free: 2, Total: 3}); (space == want) != (err == nil) || err != nil && space != (storagedrivers.Space{}) {
			t.Errorf("space %+v, error %v", space, err)
		}
	}
}

// TestSpaceOf: impossible values of a host do no harm.
func TestSpaceOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		size, available, all uint64
		want                 storagedrivers.Space
	}{
		{512, 3, 10, storagedrivers.Space{Free: 1536, Total: 5120}},
		{512, 0, 10, storagedrivers.Space{Total: 5120}},
		{1, 11, 10, storagedrivers.Space{Free: 10, Total: 10}},
		{4096, math.MaxUint64, math.MaxUint64, storagedrivers.Space{Free: math.MaxInt64, Total: math.MaxInt64}},
		{1, 1, math.MaxUint64, storagedrivers.Space{Free: 1, Total: math.MaxInt64}},
		{0, 1, 1, storagedrivers.Space{}},
		{512, 0, 0, storagedrivers.Space{}},
	} {
		got, err := storagedrivers.SpaceOf(tt.size, tt.available, tt.all)
		if got != tt.want || (err == nil) != (tt.want.Total > 0) {
			t.Errorf("%+v: %+v, error %v", tt, got, err)
		}
	}
}
