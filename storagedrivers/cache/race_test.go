package cache

import (
	"context"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// first calls a function at the first call of an operation.
type first struct {
	*backend
	done atomic.Bool
	put  func() // after the object is stored
	open func() // before the object is opened
}

func (f *first) Put(
	ctx context.Context, key string, r io.ReadSeeker, o storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	info, err := f.backend.Put(ctx, key, r, o)
	if f.put != nil && f.done.CompareAndSwap(false, true) {
		f.put()
	}
	return info, err
}

func (f *first) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	if f.open != nil && f.done.CompareAndSwap(false, true) {
		f.open()
	}
	return f.backend.Open(ctx, key, rng)
}

func behindFirst(t *testing.T, f *first, p Policy) storagedrivers.Driver {
	t.Helper()
	f.backend = newBackend()
	d := New(f, open(t, t.TempDir(), 0), "backend", p)
	t.Cleanup(func() { test.Is(t, d.Close(), nil) })
	return d
}

// TestFillLate: the bytes of an upload are not kept if the object is replaced or deleted before Put
// returns.
func TestFillLate(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(t *testing.T, d storagedrivers.Driver){
		"deleted": func(t *testing.T, d storagedrivers.Driver) {
			test.Is(t, d.Delete(t.Context(), "a", storagedrivers.DeleteOptions{}), nil)
		},
		"replaced": func(t *testing.T, d storagedrivers.Driver) { put(t, d, "a", []byte("newer")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &first{}
			d := behindFirst(t, f, Policy{Revalidate: time.Minute, FillOnUpload: true})
			f.put = func() { meanwhile(t, d) }
			put(t, d, "a", []byte("old"))
			if got, err := read(t.Context(), d, "a", all); string(got) == "old" {
				t.Errorf("the old object is served, error %v", err)
			}
		})
	}
}

// TestErrorOfAnother: a reader does not get the error of another one's range.
func TestErrorOfAnother(t *testing.T) {
	t.Parallel()
	f, entered, goOn := &first{}, make(chan struct{}), make(chan struct{})
	d := behindFirst(t, f, Policy{Immutable: true, Revalidate: time.Minute})
	f.open = func() {
		close(entered)
		<-goOn
	}
	put(t, d, "a", []byte("text"))
	var other sync.WaitGroup
	other.Go(func() {
		_, err := read(t.Context(), d, "a", storagedrivers.Range{Offset: 10 * mib})
		test.Is(t, err, storagedrivers.ErrInvalidRange)
	})
	<-entered
	time.AfterFunc(50*time.Millisecond, func() { close(goOn) })
	has(t, d, "a", all, []byte("text"))
	other.Wait()
}

// busy is a backend that is busy for one owner, when goOn is closed.
type busy struct {
	*backend
	goOn chan struct{}
}

func (b *busy) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	if storagedrivers.Owner(ctx) == "busy" {
		<-b.goOn
		return nil, storagedrivers.Info{}, storagedrivers.ErrBusy
	}
	return b.backend.Open(ctx, key, rng)
}

// TestBusyOfAnother: a reader is not refused because another one has too many operations.
func TestBusyOfAnother(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := &busy{newBackend(), make(chan struct{})}
		d := New(b, open(t, folder, 0), "backend", Policy{Immutable: true, Revalidate: time.Minute})
		put(t, d, "a", []byte("text"))
		var both sync.WaitGroup
		both.Go(func() {
			_, err := read(storagedrivers.WithOwner(t.Context(), "busy"), d, "a", all)
			test.Is(t, err, storagedrivers.ErrBusy)
		})
		synctest.Wait()
		both.Go(func() { has(t, d, "a", all, []byte("text")) })
		synctest.Wait()
		close(b.goOn)
		both.Wait()
		test.Is(t, d.Close(), nil)
	})
}

// TestShortenedBehind: of an object that is fresh, but shorter by now, a reader gets no bytes that
// it no longer has.
func TestShortenedBehind(t *testing.T) {
	t.Parallel()
	b := newBackend()
	d := behind(t, b, open(t, t.TempDir(), 0), Policy{Block: 64 * kib, Immutable: true, Revalidate: time.Hour})
	put(t, d, "a", random(1, 300*kib))
	has(t, d, "a", storagedrivers.Range{Length: 10}, random(1, 10))
	put(t, b, "a", []byte("short"))
	_, err := read(t.Context(), d, "a", storagedrivers.Range{Offset: 200 * kib})
	test.Is(t, err, storagedrivers.ErrInvalidRange)
	has(t, d, "a", all, []byte("short"))
}

// TestReplacedWhileIdle: a reader of a new object does not read on in the request of an idle reader
// of the old one.
func TestReplacedWhileIdle(t *testing.T) {
	t.Parallel()
	old, now := random(1, 640*kib), random(2, 640*kib)
	b := newBackend()
	d := behind(t, b, open(t, t.TempDir(), 0), small)
	put(t, d, "a", old)
	idle, _, err := d.Open(t.Context(), "a", all)
	test.Is(t, err, nil)
	_, err = io.ReadFull(idle, make([]byte, 128*kib)) // of the blocks 1 and 2, which are one request
	test.Is(t, err, nil)
	d.(*cached).running.Wait()
	put(t, b, "a", now)
	has(t, d, "a", storagedrivers.Range{Offset: 64 * kib}, now[64*kib:])
	_, err = io.ReadAll(idle)
	test.Is(t, err, storagedrivers.ErrChanged)
	test.Is(t, idle.Close(), nil)
}

// TestDriverPanics: a panic of the driver is an error of the reader, and the next one reads.
func TestDriverPanics(t *testing.T) {
	t.Parallel()
	content := random(1, 200*kib)
	f := &first{}
	d := behindFirst(t, f, small)
	f.open = func() { panic("driver") }
	put(t, d, "a", content)
	_, err := read(t.Context(), d, "a", all)
	test.Says(t, err, "panic: driver")
	has(t, d, "a", all, content)
	b := &panicking{backend: newBackend()}
	d = New(b, open(t, t.TempDir(), 0), "backend", small)
	t.Cleanup(func() { test.Is(t, d.Close(), nil) })
	put(t, d, "a", content)
	_, err = read(t.Context(), d, "a", all)
	test.Says(t, err, "panic: body")
	b.over.Store(true)
	has(t, d, "a", all, content)
}

// panicking is a backend whose bodies panic.
type panicking struct {
	*backend
	over atomic.Bool
}

type panickingBody struct{ io.ReadCloser }

func (panickingBody) Read([]byte) (int, error) { panic("body") }

func (p *panicking) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := p.backend.Open(ctx, key, rng)
	if err != nil || p.over.Load() {
		return body, info, err
	}
	return panickingBody{body}, info, nil
}

// TestFetchesWithoutReaders: of the blocks whose readers have left, only some are fetched to their
// end.
func TestFetchesWithoutReaders(t *testing.T) {
	t.Parallel()
	b := &trickling{backend: newBackend()}
	d := New(b, open(t, t.TempDir(), 0), "backend", small)
	t.Cleanup(func() { test.Is(t, d.Close(), nil) })
	put(t, d, "a", random(1, 100*64*kib))
	for i := range int64(100) { // one after the other
		_, err := read(t.Context(), d, "a", storagedrivers.Range{Offset: i * 64 * kib, Length: 1})
		test.Is(t, err, nil)
	}
	deadline := time.Now().Add(10 * time.Second)
	for b.running.Load() > maxOrphans && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond) // until those that are cancelled have ended
	}
	if n := b.running.Load(); n > maxOrphans {
		t.Errorf("%d fetches are running without readers, want at most %d", n, maxOrphans)
	}
}

// trickling is a backend whose bodies send their first bytes, and then wait for their context.
type trickling struct {
	*backend
	running atomic.Int64
}

type tricklingBody struct {
	io.ReadCloser
	b    *trickling
	ctx  context.Context //nolint:containedctx // by the contract, ctx governs readers
	sent bool
}

func (b *trickling) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := b.backend.Open(ctx, key, rng)
	if err != nil {
		return nil, info, err
	}
	b.running.Add(1)
	return &tricklingBody{body, b, ctx, false}, info, nil
}

func (r *tricklingBody) Read(p []byte) (int, error) {
	if r.sent {
		<-r.ctx.Done()
		return 0, r.ctx.Err()
	}
	r.sent = true
	return r.ReadCloser.Read(p[:1000])
}

func (r *tricklingBody) Close() error {
	r.b.running.Add(-1)
	return r.ReadCloser.Close()
}

// TestWithoutCache: a decision asks the backend.
func TestWithoutCache(t *testing.T) {
	t.Parallel()
	b := newBackend()
	d := behind(t, b, open(t, t.TempDir(), 0), Policy{Immutable: true, Revalidate: time.Hour})
	put(t, d, "a", []byte("text"))
	has(t, d, "a", all, []byte("text"))
	b.calls()
	for _, tt := range []struct {
		ctx   context.Context //nolint:containedctx // the case is about it
		stats int64
	}{{t.Context(), 0}, {storagedrivers.WithoutCache(t.Context()), 1}} {
		_, err := d.Stat(tt.ctx, "a")
		test.Is(t, err, nil)
		_, err = read(tt.ctx, d, "a", all)
		test.Is(t, err, nil)
		b.did(t, "stat and read", tt.stats, tt.stats, 4*tt.stats)
	}
}

// TestNotRepeated: an operation that the open circuit refuses is refused at once.
func TestNotRepeated(t *testing.T) {
	t.Parallel()
	b := newBackend()
	d := behind(t, b, open(t, t.TempDir(), 0), small)
	s := storagedrivers.New("far", d, storagedrivers.Options{Close: func() error { return nil }})
	t.Cleanup(func() { test.Is(t, s.Close(), nil) })
	b.set(func() { b.down = storagedrivers.ErrUnavailable })
	for range 3 {
		_, err := s.Stat(t.Context(), "a")
		test.Is(t, err, storagedrivers.ErrUnavailable)
	}
	begin := time.Now()
	for range 20 {
		_, err := s.Stat(t.Context(), "a")
		test.Is(t, err, storagedrivers.ErrUnavailable)
	}
	if took := time.Since(begin); took > 3*time.Second { // 20 repetitions with pauses take 6 s
		t.Errorf("refusals take %v", took)
	}
}

// asked counts the bytes that are requested.
type asked struct {
	*backend
	begun atomic.Bool
	first func() // called before the first Open
	bytes atomic.Int64
}

func (a *asked) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	if a.first != nil && a.begun.CompareAndSwap(false, true) {
		a.first()
	}
	body, info, err := a.backend.Open(ctx, key, rng)
	if err == nil {
		n, _ := rng.Within(info.Size)
		a.bytes.Add(n)
	}
	return body, info, err
}

// TestFetchedOnce: a block that is being opened is not fetched by another reader, which knows the
// object from a Stat meanwhile.
func TestFetchedOnce(t *testing.T) {
	t.Parallel()
	content := random(1, 300*kib)
	for name, rng := range map[string]storagedrivers.Range{"whole": all, "range": {Offset: 10, Length: 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				b, goOn := &asked{backend: newBackend()}, make(chan struct{})
				b.first = func() { <-goOn }
				d := New(b, open(t, folder, 0), "backend", Policy{Block: 64 * kib, Immutable: true, Revalidate: time.Minute})
				defer d.Close()
				put(t, d, "object", content)
				var group sync.WaitGroup
				group.Go(func() { has(t, d, "object", all, content) })
				synctest.Wait()
				_, err := d.Stat(t.Context(), "object")
				test.Is(t, err, nil)
				group.Go(func() {
					n, _ := rng.Within(int64(len(content)))
					has(t, d, "object", rng, content[rng.Offset:rng.Offset+n])
				})
				synctest.Wait()
				close(goOn)
				group.Wait()
				test.Equal(t, b.bytes.Load(), int64(len(content)), "bytes were requested of", len(content))
			})
		})
	}
}

// TestStoredNotFetched: a reader fetches no block that is stored.
func TestStoredNotFetched(t *testing.T) {
	t.Parallel()
	const block = 64 * kib
	content := random(1, 16*block)
	b := &asked{backend: newBackend()}
	d := New(b, open(t, t.TempDir(), 0), "backend", Policy{Block: block, Immutable: true, Revalidate: time.Minute})
	defer d.Close()
	put(t, d, "object", content)
	for number := int64(8); number < 16; number++ {
		has(t, d, "object", storagedrivers.Range{Offset: number * block, Length: 1}, content[number*block:number*block+1])
	}
	d.(*cached).running.Wait() // their blocks are stored
	b.bytes.Store(0)
	has(t, d, "object", all, content)
	if n := b.bytes.Load(); n != 8*block {
		t.Errorf("%d blocks were requested, want 8", n/block)
	}
}

// TestMemory: blocks on their way share a bounded memory, and owners take turns.
func TestMemory(t *testing.T) {
	t.Parallel()
	const block, fit, count = 64 * kib, 2, 10
	content := random(1, 2*count*block)
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, b := open(t, folder, 0), newBackend().blocked()
		s.fetching = newFetching(fit * block)
		d := behind(t, b, s, Policy{Block: block, Immutable: true, Revalidate: time.Minute})
		put(t, d, "object", content)
		var group sync.WaitGroup
		for i := range 2 * count {
			group.Go(func() {
				ctx := storagedrivers.WithOwner(t.Context(), strconv.Itoa(i%2))
				at := int64(i) * block
				got, err := read(ctx, d, "object", storagedrivers.Range{Offset: at, Length: block})
				if err != nil || string(got) != string(content[at:at+block]) {
					t.Errorf("block %d: %d bytes, error %v", i, len(got), err)
				}
			})
		}
		synctest.Wait()
		test.Equal(t, d.(*cached).inMemory(), fit, "blocks are in memory")
		close(b.held)
		group.Wait()
		test.Equal(t, s.fetching.Busy(), 0, "blocks are still counted")
	})
}

// TestMemoryLeft: a fetch whose reader leaves waits for no memory.
func TestMemoryLeft(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, b := open(t, folder, 0), newBackend()
		s.fetching = newFetching(64 * kib)
		d := behind(t, b, s, small)
		put(t, d, "object", random(1, 64*kib))
		slot, err := s.acquire(t.Context(), 64*kib)
		test.Is(t, err, nil)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := read(ctx, d, "object", all)
			left <- err
		}()
		synctest.Wait()
		leave()
		test.Is(t, <-left, context.Canceled)
		d.(*cached).running.Wait()
		slot.Release()
		has(t, d, "object", all, random(1, 64*kib))
	})
}

// inMemory returns the number of blocks that are being received.
func (d *cached) inMemory() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, f := range d.flights {
		f.mu.Lock()
		if f.buf != nil {
			n++
		}
		f.mu.Unlock()
	}
	return n
}

// sameTime is a backend whose objects all have one time.
type sameTime struct{ *backend }

func (b sameTime) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := b.backend.Stat(ctx, key)
	info.ModTime = time.Unix(1_700_000_000, 0)
	return info, err
}

func (b sameTime) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := b.backend.Open(ctx, key, rng)
	info.ModTime = time.Unix(1_700_000_000, 0)
	return body, info, err
}

// TestReplacedBehindInTime: two generations of the same size and time differ by their entity tags.
func TestReplacedBehindInTime(t *testing.T) {
	t.Parallel()
	old, now := random(1, 300*kib), random(2, 300*kib)
	b := sameTime{newBackend()}
	d := New(b, open(t, t.TempDir(), 0), "backend", small)
	t.Cleanup(func() { d.Close() })
	put(t, b, "object", old)
	has(t, d, "object", all, old)
	put(t, b, "object", now)
	has(t, d, "object", all, now)
}
