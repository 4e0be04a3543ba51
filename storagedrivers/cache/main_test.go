package cache

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(childFolder); folder != "" {
		storeForever(folder)
		return
	}
	goleak.VerifyTestMain(m)
}

var (
	create    = storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
	all       = storagedrivers.Range{}
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// backend is a memory driver that counts calls and bytes.
type backend struct {
	*memory.Driver

	opens, stats, sent atomic.Int64
	mu                 sync.Mutex
	down               error                // of each call, if set
	silent             bool                 // calls wait for their context
	held               chan struct{}        // each read of a body waits for it, if set
	entered            chan struct{}        // gets a value before a body waits
	plain              func() time.Time     // objects have no ETag but this time, if set
	kept               map[string]time.Time // by ETag
}

func newBackend() *backend { return &backend{Driver: memory.New(), kept: map[string]time.Time{}} }

func (b *backend) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *backend) failure(ctx context.Context) (err error) {
	var silent bool
	b.set(func() { err, silent = b.down, b.silent })
	if silent {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// described removes the ETag if objects are to have none.
func (b *backend) described(info storagedrivers.Info) storagedrivers.Info {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.plain == nil || info.ETag == "" {
		return info
	}
	at, ok := b.kept[info.ETag]
	if !ok {
		at = b.plain()
		b.kept[info.ETag] = at
	}
	info.ETag, info.ModTime = "", at
	return info
}

func (b *backend) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	info, err := b.Driver.Put(ctx, key, r, opts)
	return b.described(info), err
}

func (b *backend) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	b.stats.Add(1)
	if err := b.failure(ctx); err != nil {
		return storagedrivers.Info{}, err
	}
	info, err := b.Driver.Stat(ctx, key)
	return b.described(info), err
}

func (b *backend) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	b.opens.Add(1)
	if err := b.failure(ctx); err != nil {
		return nil, storagedrivers.Info{}, err
	}
	body, info, err := b.Driver.Open(ctx, key, rng)
	if err != nil {
		return nil, info, err
	}
	return &counted{body, b, ctx}, b.described(info), nil
}

type counted struct {
	io.ReadCloser
	b   *backend
	ctx context.Context //nolint:containedctx // by the contract, ctx governs readers
}

func (c *counted) Read(p []byte) (int, error) {
	var held, entered chan struct{}
	c.b.set(func() { held, entered = c.b.held, c.b.entered })
	if held != nil {
		if entered != nil {
			entered <- struct{}{}
		}
		select {
		case <-held:
		case <-c.ctx.Done():
			return 0, c.ctx.Err()
		}
	}
	n, err := c.ReadCloser.Read(p)
	c.b.sent.Add(int64(n))
	return n, err
}

// calls returns the number of calls since the last one.
func (b *backend) calls() (opens, stats, sent int64) {
	return b.opens.Swap(0), b.stats.Swap(0), b.sent.Swap(0)
}

// did asserts the number of calls since the last one.
func (b *backend) did(t *testing.T, what string, opens, stats, sent int64) {
	t.Helper()
	o, s, n := b.calls()
	if o != opens || s != stats || n != sent {
		t.Errorf("%s: %d opens, %d stats, %d bytes, want %d, %d, %d", what, o, s, n, opens, stats, sent)
	}
}

// clock is a clock that tests move.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time           { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *clock) advance(d time.Duration)  { c.offset.Add(int64(d)) }
func (c *clock) on(s *Store) *Store       { s.now = c.now; return s }
func random(seed uint64, size int) []byte { return fill(make([]byte, size), seed) }
func within(folder string) *Store         { return NewStore(Options{Folder: folder}) }
func (b *backend) blocked() *backend      { b.held = make(chan struct{}); return b }

// files returns the paths of the files of a store, the largest first.
func files(t testing.TB, folder string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "?", "*"))
	test.Must(t, err)
	length := func(path string) int {
		_, n, _ := parseName(filepath.Base(path))
		return n
	}
	slices.SortFunc(paths, func(a, b string) int { return length(b) - length(a) })
	return paths
}

func fill(b []byte, seed uint64) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	rand.NewChaCha8(key).Read(b)
	return b
}

// open returns a store in a folder, and closes it at the end of the test.
func open(t testing.TB, folder string, maxSize int64) *Store {
	t.Helper()
	s := NewStore(Options{Folder: folder, MaxSize: maxSize})
	t.Cleanup(func() { s.Close() })
	return s
}

// behind returns b behind a store, and closes it at the end of the test.
func behind(t testing.TB, b *backend, s *Store, p Policy) storagedrivers.Driver {
	t.Helper()
	d := New(b, s, "backend", p)
	t.Cleanup(func() { d.Close() })
	return d
}

func put(t testing.TB, d storagedrivers.Driver, key string, content []byte) {
	t.Helper()
	_, err := d.Put(t.Context(), key, strings.NewReader(string(content)), overwrite)
	test.Must(t, err)
}

func read(ctx context.Context, d storagedrivers.Driver, key string, rng storagedrivers.Range) ([]byte, error) {
	body, _, err := d.Open(ctx, key, rng)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(body)
	return b, errors.Join(err, body.Close())
}

// has asserts that a range has a content.
func has(t testing.TB, d storagedrivers.Driver, key string, rng storagedrivers.Range, want []byte) {
	t.Helper()
	got, err := read(t.Context(), d, key, rng)
	if err != nil || string(got) != string(want) {
		t.Errorf("%s %+v: %d bytes, want %d, equal %t, error %v", key, rng, len(got), len(want), string(got) == string(want), err)
	}
}

// kept does not close the driver that several others are on.
type kept struct{ *memory.Driver }

func (kept) Close() error { return nil }

func TestConformance(t *testing.T) {
	for name, policy := range map[string]Policy{
		"revalidated": {},
		"filled":      {FillOnUpload: true, Block: 64 * kib},
	} {
		t.Run(name, func(t *testing.T) {
			var backends sync.Map // by test
			on := func(t *testing.T, b *memory.Driver) storagedrivers.Driver {
				return New(kept{b}, open(t, t.TempDir(), 0), "backend", policy)
			}
			at := func(t *testing.T) *memory.Driver {
				b, _ := backends.Load(t)
				return b.(*memory.Driver)
			}
			drivertest.Run(t, drivertest.Harness{
				New: func(t *testing.T) storagedrivers.Driver {
					b := memory.New()
					backends.Store(t, b)
					t.Cleanup(func() { backends.Delete(t) })
					return on(t, b)
				},
				Another: func(t *testing.T) storagedrivers.Driver { return on(t, at(t)) },
				Leftovers: func(t *testing.T) []string {
					page, err := at(t).List(t.Context(), storagedrivers.ListOptions{})
					test.Must(t, err)
					keys := make([]string, 0, len(page.Objects))
					for _, info := range page.Objects {
						keys = append(keys, info.Key)
					}
					return keys
				},
				MaxMemory:    512 * mib, // the objects are in it
				OtherSetting: policy.FillOnUpload,
			})
		})
	}
}

// size returns the sum of the sizes of all files.
func size(t testing.TB, folder string) int64 {
	t.Helper()
	var sum int64
	test.Is(t, filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			sum += info.Size()
		}
		return err
	}), nil)
	return sum
}

// readers calls f in n goroutines.
func readers(t testing.TB, n int, f func(i int)) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// TestCopy: a copy is made by the backend, and is read at once in place of the object that it
// replaces.
func TestCopy(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]Policy{
		"cached":  {Revalidate: time.Hour, FillOnUpload: true},
		"skipped": {Revalidate: time.Hour, Skip: func(string) bool { return true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := New(newBackend(), open(t, t.TempDir(), 0), "backend", policy)
			content := random(1, mib)
			put(t, d, "source", content)
			put(t, d, "object", random(2, mib))
			has(t, d, "object", all, random(2, mib))
			source, err := d.Stat(t.Context(), "source")
			test.Is(t, err, nil)
			_, err = d.Put(t.Context(), "object", nil, storagedrivers.PutOptions{Source: &source})
			test.Is(t, err, fs.ErrExist)
			_, err = d.Put(t.Context(), "object", nil, storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, Source: &source})
			test.Is(t, err, nil)
			has(t, d, "object", all, content)
			test.Is(t, d.Close(), nil)
		})
	}
}

// roomy is a backend that reports its space.
type roomy struct{ *backend }

func (roomy) Space(context.Context) (storagedrivers.Space, error) {
	return storagedrivers.Space{Free: 2, Total: 3}, nil
}

// TestSpace: the space is that of the backend, if it reports it.
func TestSpace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		backend storagedrivers.Driver
		space   storagedrivers.Space
		err     error
	}{
		{roomy{newBackend()}, storagedrivers.Space{Free: 2, Total: 3}, nil},
		{newBackend(), storagedrivers.Space{}, errors.ErrUnsupported},
	} {
		d := New(tt.backend, within(t.TempDir()), "backend", small)
		space, err := d.(storagedrivers.SpaceReporter).Space(t.Context())
		test.Is(t, err, tt.err)
		test.Equal(t, space, tt.space, "space")
	}
}
