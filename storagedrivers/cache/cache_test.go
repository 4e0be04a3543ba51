package cache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// small is a policy with blocks of 64 KiB.
var small = Policy{Block: 64 * kib}

// TestWarm: stored bytes are not fetched again. Without a time of freshness the backend is asked.
func TestWarm(t *testing.T) {
	t.Parallel()
	content := random(1, 300*kib)
	for name, tt := range map[string]struct {
		policy Policy
		stats  int64
	}{
		"replaceable": {small, 1},
		"immutable":   {Policy{Block: 64 * kib, Immutable: true, Revalidate: time.Minute}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, c := newBackend(), &clock{}
			d := behind(t, b, c.on(open(t, t.TempDir(), 0)), tt.policy)
			put(t, d, "object", content)
			has(t, d, "object", all, content)
			// 1, 2 and 2 blocks
			b.did(t, "cold", 3, 0, 300*kib)
			has(t, d, "object", all, content)
			has(t, d, "object", storagedrivers.Range{Offset: 70 * kib, Length: 100 * kib}, content[70*kib:170*kib])
			_, err := d.Stat(t.Context(), "object")
			test.Is(t, err, nil)
			b.did(t, "warm", 0, 3*tt.stats, 0)
			c.advance(time.Minute)
			has(t, d, "object", all, content)
			b.did(t, "no longer fresh", 0, 1, 0)
			_, err = d.Stat(t.Context(), "missing")
			test.Is(t, err, fs.ErrNotExist)
			_, err = read(t.Context(), d, "object", storagedrivers.Range{Offset: 300 * kib})
			test.Is(t, err, storagedrivers.ErrInvalidRange)
		})
	}
}

// TestRange: a range fetches its blocks and no others.
func TestRange(t *testing.T) {
	t.Parallel()
	content := random(1, 1000*kib)
	for _, tt := range []struct{ offset, length, from, to int64 }{
		{0, 1, 0, 64},
		{500 * kib, 5 * kib, 448, 512},
		{510 * kib, 10 * kib, 448, 576},
		{990 * kib, 0, 960, 1000},
		{100 * kib, 300 * kib, 64, 448},
	} {
		b := newBackend()
		d := behind(t, b, open(t, t.TempDir(), 0), small)
		put(t, d, "object", content)
		length := tt.length
		if length == 0 {
			length = int64(len(content)) - tt.offset
		}
		rng := storagedrivers.Range{Offset: tt.offset, Length: tt.length}
		has(t, d, "object", rng, content[tt.offset:tt.offset+length])
		if _, _, sent := b.calls(); sent != (tt.to-tt.from)*kib {
			t.Errorf("%+v: %d bytes were fetched, want %d KiB", rng, sent, tt.to-tt.from)
		}
		has(t, d, "object", rng, content[tt.offset:tt.offset+length])
		b.did(t, "again", 0, 1, 0)
	}
}

// TestPartOfReader: a reader up to the end of the object that is closed early fetches only the
// blocks that it has read.
func TestPartOfReader(t *testing.T) {
	t.Parallel()
	content, b := random(1, 1000*kib), newBackend()
	d := behind(t, b, open(t, t.TempDir(), 0), small)
	put(t, d, "object", content)
	body, _, err := d.Open(t.Context(), "object", storagedrivers.Range{Offset: 500 * kib})
	test.Is(t, err, nil)
	got := make([]byte, 5*kib)
	_, err = io.ReadFull(body, got)
	test.Is(t, err, nil)
	test.Is(t, body.Close(), nil)
	d.(*cached).running.Wait()
	if !bytes.Equal(got, content[500*kib:505*kib]) {
		t.Error("other bytes")
	}
	b.did(t, "a part", 1, 0, 64*kib)
}

// TestSequential: reading a large object makes few requests.
func TestSequential(t *testing.T) {
	t.Parallel()
	content, b := random(1, 200*64*kib), newBackend()
	d := behind(t, b, open(t, t.TempDir(), 0), small)
	put(t, d, "object", content)
	has(t, d, "object", all, content)
	b.did(t, "200 blocks", 9, 0, int64(len(content))) // 1, 2, 4 ... 64, 64, 9
}

// TestSharedMisses: readers of a cold object make the backend send each byte once.
func TestSharedMisses(t *testing.T) {
	t.Parallel()
	content := random(1, mib/2+5)
	for name, policy := range map[string]Policy{
		"replaceable": small,
		"immutable":   {Block: 64 * kib, Immutable: true, Revalidate: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackend()
			d := behind(t, b, open(t, t.TempDir(), 0), policy)
			put(t, d, "object", content)
			readers(t, 100, func(int) { has(t, d, "object", all, content) })
			if _, _, sent := b.calls(); sent != int64(len(content)) {
				t.Errorf("%d bytes were sent, want %d", sent, len(content))
			}
		})
	}
}

// together lets the first calls of Open begin when all of them have been made.
type together struct {
	*backend
	count atomic.Int64
	calls sync.WaitGroup
}

func (b *together) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	if b.count.Add(-1) >= 0 {
		b.calls.Done()
		b.calls.Wait()
	}
	return b.backend.Open(ctx, key, rng)
}

// TestSharedRanges: readers that open different blocks of a cold object at once share the blocks,
// with and without an ETag.
func TestSharedRanges(t *testing.T) {
	t.Parallel()
	const count = 20
	content := random(1, count*64*kib)
	for name, plain := range map[string]func() time.Time{"ETag": nil, "time": time.Now} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &together{backend: newBackend()}
			b.plain = plain
			b.count.Store(count)
			b.calls.Add(count)
			d := New(b, open(t, t.TempDir(), 0), "backend", Policy{Block: 64 * kib, Immutable: true})
			t.Cleanup(func() { test.Is(t, d.Close(), nil) })
			put(t, d, "object", content)
			readers(t, count, func(i int) {
				rng := storagedrivers.Range{Offset: int64(i) * 64 * kib, Length: 64 * kib}
				has(t, d, "object", rng, content[rng.Offset:rng.Offset+rng.Length])
			})
			b.did(t, "cold", count, 0, int64(len(content)))
			has(t, d, "object", all, content)
			b.did(t, "warm", 0, 1, 0)
		})
	}
}

// TestLeavingReader: a reader that leaves does not fail the others, and the last one ends the
// fetch.
func TestLeavingReader(t *testing.T) {
	t.Parallel()
	content, b := random(1, 300*kib), newBackend().blocked()
	d := behind(t, b, open(t, t.TempDir(), 0), small)
	put(t, d, "object", content)
	first, leave := context.WithCancel(t.Context())
	left, got := make(chan error), make(chan []byte)
	begin := func(ctx context.Context) {
		_, err := read(ctx, d, "object", all)
		left <- err
	}
	b.set(func() { b.entered = make(chan struct{}) })
	go begin(first)
	<-b.entered
	go func() {
		b, _ := read(t.Context(), d, "object", all)
		got <- b
	}()
	for d.(*cached).waiting() < 2 {
		time.Sleep(time.Millisecond)
	}
	leave()
	test.Is(t, <-left, context.Canceled)
	b.set(func() { b.entered = nil })
	close(b.held)
	if !bytes.Equal(<-got, content) {
		t.Error("the other reader has other bytes")
	}

	b.set(func() { b.held = make(chan struct{}); b.entered = make(chan struct{}) })
	put(t, d, "object", content)
	last, leave := context.WithCancel(t.Context())
	go begin(last)
	<-b.entered
	leave()
	test.Is(t, <-left, context.Canceled)
	d.(*cached).running.Wait() // the backend sends nothing more
}

// waiting returns the number of readers that wait for blocks.
func (d *cached) waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, f := range d.flights {
		n += f.readers
	}
	return n
}

// TestReplacement: a replacement or delete through the driver counts at once, also if the old
// object is fetched meanwhile.
func TestReplacement(t *testing.T) {
	t.Parallel()
	old, now := random(1, 300*kib), random(2, 300*kib)
	b, immutable := newBackend(), Policy{Block: 64 * kib, Immutable: true, Revalidate: time.Hour}
	d := behind(t, b, open(t, t.TempDir(), 0), immutable)
	put(t, d, "object", old)
	has(t, d, "object", all, old)
	put(t, d, "object", now)
	has(t, d, "object", all, now)
	test.Is(t, d.Delete(t.Context(), "object", storagedrivers.DeleteOptions{}), nil)
	_, err := read(t.Context(), d, "object", all)
	test.Is(t, err, fs.ErrNotExist)

	put(t, d, "object", old)
	version := d.(*cached).store.version(d.(*cached).infoID("object"))
	info, err := b.Stat(t.Context(), "object")
	test.Is(t, err, nil)
	put(t, d, "object", now)
	c := d.(*cached)
	_, err = c.accept("object", version, info) // as a slow lookup does
	test.Is(t, err, nil)
	has(t, d, "object", all, now)

	put(t, d, "object", old)
	body, _, err := d.Open(t.Context(), "object", all)
	test.Is(t, err, nil)
	_, err = io.ReadFull(body, make([]byte, 100*kib))
	test.Is(t, err, nil)
	put(t, d, "object", now)
	rest, err := io.ReadAll(body)
	if err != nil {
		test.Is(t, err, storagedrivers.ErrChanged)
	}
	if !bytes.HasPrefix(old[100*kib:], rest) {
		t.Error("bytes of two generations")
	}
	test.Is(t, body.Close(), nil)
	has(t, d, "object", all, now)
}

// TestReplacedBehind: an object that another process has replaced or deleted is never mixed with
// the old one.
func TestReplacedBehind(t *testing.T) {
	t.Parallel()
	old, now := random(1, 300*kib), random(2, 300*kib)
	b := newBackend()
	d := behind(t, b, open(t, t.TempDir(), 0), small)
	put(t, d, "object", old)
	has(t, d, "object", storagedrivers.Range{Length: 100 * kib}, old[:100*kib])
	put(t, b, "object", now)
	has(t, d, "object", all, now)

	put(t, b, "object", old)
	has(t, d, "object", storagedrivers.Range{Length: 60 * kib}, old[:60*kib])
	body, _, err := d.Open(t.Context(), "object", all)
	test.Is(t, err, nil)
	put(t, b, "object", now)
	got, err := io.ReadAll(body)
	test.Is(t, err, storagedrivers.ErrChanged)
	if !bytes.Equal(got, old[:len(got)]) {
		t.Error("bytes of two generations")
	}
	test.Is(t, body.Close(), nil)
	has(t, d, "object", all, now)
	body, _, err = d.Open(t.Context(), "object", all)
	test.Is(t, err, nil)
	d.(*cached).store.Empty()
	test.Is(t, b.Delete(t.Context(), "object", storagedrivers.DeleteOptions{}), nil)
	_, err = io.ReadAll(body)
	test.Is(t, err, storagedrivers.ErrChanged)
	test.Is(t, body.Close(), nil)
	_, err = read(t.Context(), d, "object", all)
	test.Is(t, err, fs.ErrNotExist)
}

// TestWithoutETag: an object that only its time identifies is cached when no other one can get this
// time.
func TestWithoutETag(t *testing.T) {
	t.Parallel()
	start := time.Date(2020, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		at     time.Time
		policy Policy
		after  time.Duration // the object is cached; 0: never
	}{
		"seconds":   {start.Add(7 * time.Second), small, 11 * time.Second},
		"minutes":   {start, small, 71 * time.Second},
		"none":      {time.Time{}, small, 0},
		"immutable": {time.Time{}, Policy{Block: 64 * kib, Immutable: true}, time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, content := newBackend(), random(1, 200*kib)
			b.plain = func() time.Time { return tt.at }
			s, now := open(t, t.TempDir(), 0), start
			s.now = func() time.Time { return now }
			d := behind(t, b, s, tt.policy)
			put(t, d, "object", content)
			if !tt.policy.Immutable {
				now = tt.at.Add(max(tt.after-2*time.Second, 0))
				has(t, d, "object", all, content)
				b.calls()
				has(t, d, "object", all, content)
				if _, _, sent := b.calls(); sent != int64(len(content)) {
					t.Errorf("%d bytes were sent, want all again", sent)
				}
			}
			if tt.after != 0 {
				d.(*cached).running.Wait() // the next reader could get the answer of a flight that is ending
				now = now.Add(2 * time.Second)
				has(t, d, "object", all, content)
				b.calls()
				has(t, d, "object", all, content)
				b.did(t, "cached", 0, 1, 0)
			}
		})
	}
}

// TestRecreated: an object with the size and time of a deleted one is not taken for it.
func TestRecreated(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.plain = func() time.Time { return time.Time{} }
	for name, fill := range map[string]bool{"fetched": false, "filled": true} {
		d := behind(t, b, open(t, t.TempDir(), 0), Policy{Immutable: true, Revalidate: time.Hour, FillOnUpload: fill})
		for seed := range uint64(3) {
			content := random(seed, 100*kib)
			put(t, d, name, content)
			b.calls()
			has(t, d, name, all, content)
			has(t, d, name, all, content)
			if opens, _, _ := b.calls(); opens > 1 || fill && opens > 0 {
				t.Errorf("%s: %d opens", name, opens)
			}
			test.Is(t, d.Delete(t.Context(), name, storagedrivers.DeleteOptions{}), nil)
		}
	}
}

// TestSilentBackend: an object that may be stale does not wait for a backend that does not answer.
func TestSilentBackend(t *testing.T) {
	t.Parallel()
	content, b, c := random(1, 100*kib), newBackend(), &clock{}
	policy := Policy{Immutable: true, Revalidate: time.Minute, StaleIfError: time.Hour}
	d := behind(t, b, c.on(open(t, t.TempDir(), 0)), policy)
	d.(*cached).staleTimeout = 10 * time.Millisecond
	put(t, d, "object", content)
	has(t, d, "object", all, content)
	c.advance(2 * time.Minute)
	b.set(func() { b.silent = true })
	has(t, d, "object", all, content)
	_, err := d.Stat(t.Context(), "object")
	test.Is(t, err, nil)
}

// TestStaleIfError: immutable objects are served for a while without the backend.
func TestStaleIfError(t *testing.T) {
	t.Parallel()
	content, folder := random(1, 200*kib), t.TempDir()
	down := storagedrivers.ErrUnavailable
	b, c := newBackend(), &clock{}
	policy := Policy{Block: 64 * kib, Immutable: true, Revalidate: time.Minute, StaleIfError: time.Hour}
	s := c.on(open(t, folder, 0))
	d := behind(t, b, s, policy)
	put(t, d, "object", content)
	has(t, d, "object", all, content)
	put(t, d, "half", content)
	has(t, d, "half", storagedrivers.Range{Length: 10}, content[:10])
	b.set(func() { b.down = down })
	c.advance(50 * time.Minute)
	b.calls()
	for range 3 {
		has(t, d, "object", all, content)
	}
	b.did(t, "down", 0, 1, 0) // it is not asked each time
	_, err := read(t.Context(), d, "half", all)
	test.Is(t, err, down)
	_, err = read(t.Context(), d, "other", all)
	test.Is(t, err, down)

	test.Is(t, s.Close(), nil)
	again := behind(t, b, c.on(open(t, folder, 0)), policy)
	has(t, again, "object", all, content)
	c.advance(20 * time.Minute)
	_, err = read(t.Context(), again, "object", all)
	test.Is(t, err, down)
	b.set(func() { b.down = errors.New("forbidden") })
	_, err = read(t.Context(), again, "object", all)
	test.Is(t, err, b.down)
	b.set(func() { b.down = nil })
	has(t, again, "object", all, content)

	replaceable := policy
	replaceable.Immutable = false
	other := behind(t, b, c.on(open(t, t.TempDir(), 0)), replaceable)
	has(t, other, "object", all, content)
	c.advance(2 * time.Minute)
	b.set(func() { b.down = down })
	_, err = read(t.Context(), other, "object", all)
	test.Is(t, err, down)
}

// TestRestart: a store that is opened again serves its records, once the backend has confirmed
// them.
func TestRestart(t *testing.T) {
	t.Parallel()
	content, folder := random(1, 300*kib), t.TempDir()
	b, policy := newBackend(), Policy{Block: 64 * kib, Immutable: true, Revalidate: time.Hour}
	s := open(t, folder, 0)
	d := behind(t, b, s, policy)
	for _, key := range []string{"object", "gone"} {
		put(t, d, key, content)
		has(t, d, key, all, content)
	}
	test.Is(t, d.Delete(t.Context(), "gone", storagedrivers.DeleteOptions{}), nil)
	test.Is(t, s.Close(), nil)
	has(t, d, "object", all, content) // from the backend
	b.calls()
	again := open(t, folder, 0)
	d = behind(t, b, again, policy)
	has(t, d, "object", all, content)
	b.did(t, "the first use", 0, 1, 0)
	has(t, d, "object", all, content)
	b.did(t, "the second use", 0, 0, 0)
	if _, ok := again.record(d.(*cached).infoID("gone")); ok {
		t.Error("a deleted object is back")
	}
	test.Is(t, again.Empty(), nil)
	if stats := again.Stats(); stats.Entries != 0 || stats.Bytes != 0 || size(t, folder) != 0 {
		t.Errorf("%+v after emptying", stats)
	}
	has(t, d, "object", all, content)
	if _, _, sent := b.calls(); sent != int64(len(content)) {
		t.Errorf("%d bytes were sent after emptying, want all", sent)
	}
}

// TestFillOnUpload: the first reader of an upload fetches nothing.
func TestFillOnUpload(t *testing.T) {
	t.Parallel()
	content, b := random(1, 300*kib), newBackend()
	d := behind(t, b, open(t, t.TempDir(), 0), Policy{Block: 64 * kib, FillOnUpload: true})
	put(t, d, "object", content)
	put(t, d, "empty", nil)
	has(t, d, "object", all, content)
	b.did(t, "after an upload", 0, 1, 0)
	has(t, d, "empty", all, nil)
	_, err := d.Put(t.Context(), "object", strings.NewReader("x"), create)
	test.Is(t, err, fs.ErrExist)
	has(t, d, "object", all, content)
}

// TestIdleStream: a request that breaks while a reader waits is made again.
func TestIdleStream(t *testing.T) {
	t.Parallel()
	content, b := random(1, 640*kib), newBackend()
	d := behind(t, b, open(t, t.TempDir(), 0), small)
	put(t, d, "object", content)
	body, _, err := d.Open(t.Context(), "object", all)
	test.Is(t, err, nil)
	got := make([]byte, 65*kib, len(content))
	_, err = io.ReadFull(body, got)
	test.Is(t, err, nil)
	broken := 0
	for waiting := 1; waiting > 0; { // until the stream is idle
		c := d.(*cached)
		c.mu.Lock()
		for _, f := range c.parked {
			if s := f.stream; s.body != nil {
				s.body = struct {
					io.Reader
					io.Closer
				}{failing{}, s.body}
				broken++
			}
		}
		waiting = len(c.flights)
		c.mu.Unlock()
	}
	rest, err := io.ReadAll(body)
	test.Is(t, err, nil)
	test.Is(t, body.Close(), nil)
	if broken == 0 || !bytes.Equal(append(got, rest...), content) {
		t.Errorf("%d streams were broken, %d bytes, want %d", broken, len(got)+len(rest), len(content))
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, storagedrivers.ErrUnavailable }

// doubtful is a backend that verifies bytes when all have been read, and then fails.
type doubtful struct{ *backend }

func (d doubtful) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := d.backend.Open(ctx, key, rng)
	if err != nil {
		return nil, info, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(body, failing{}), body}, info, nil
}

// TestVerifiedAtEnd: bytes that a driver refuses at their end are not stored, and their reader
// fails.
func TestVerifiedAtEnd(t *testing.T) {
	t.Parallel()
	b := newBackend()
	s := open(t, t.TempDir(), 0)
	d := New(doubtful{b}, s, "backend", small)
	for _, size := range []int{10 * kib, 64 * kib, 100 * kib, 300 * kib} {
		put(t, d, "object", random(1, size))
		for range 2 {
			_, err := read(t.Context(), d, "object", all)
			test.Is(t, err, storagedrivers.ErrUnavailable)
		}
	}
	test.Equal(t, s.Stats().Hits, 0, "hits")
	test.Is(t, d.Close(), nil)
}

// signing is a backend that can presign; sweeping is one that has leftovers.
type (
	signing  struct{ *backend }
	sweeping struct{ *backend }
	both     struct {
		signing
		storagedrivers.Sweeper
	}
)

func (signing) Presign(context.Context, string, storagedrivers.PresignOptions) (string, error) {
	return "signed", nil
}

func (sweeping) Sweep(context.Context, storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	return nil, nil
}

func TestOptionalInterfaces(t *testing.T) {
	t.Parallel()
	b := newBackend()
	for _, inner := range []storagedrivers.Driver{b, signing{b}, sweeping{b}, both{signing{b}, sweeping{b}}} {
		d := New(inner, within(t.TempDir()), "backend", small)
		_, signs := inner.(storagedrivers.Presigner)
		_, sweeps := inner.(storagedrivers.Sweeper)
		want := errors.ErrUnsupported
		if sweeps {
			want = nil
		}
		if _, ok := d.(storagedrivers.Presigner); ok != signs {
			t.Errorf("%T: presigner %t", inner, ok)
		}
		_, err := d.(storagedrivers.Sweeper).Sweep(t.Context(), storagedrivers.SweepOptions{})
		test.Is(t, err, want)
	}
}

// TestBehindStorage: what the cache holds is served by a Storage whose circuit is open. The circuit
// of the cache keeps others from waiting for a dead backend.
func TestBehindStorage(t *testing.T) {
	t.Parallel()
	content := random(1, 100*kib)
	b := newBackend()
	d := behind(t, b, open(t, t.TempDir(), 0), Policy{Block: 64 * kib, Immutable: true, Revalidate: time.Hour})
	s := storagedrivers.New("far", d, storagedrivers.Options{Close: func() error { return nil }})
	t.Cleanup(func() { test.Is(t, s.Close(), nil) })
	for _, key := range []string{"kept", "other"} {
		put(t, d, key, content)
	}
	reads := func(key string) error {
		body, _, err := s.Open(t.Context(), key, all)
		if err != nil {
			return err
		}
		got, err := io.ReadAll(body)
		if err == nil && !bytes.Equal(got, content) {
			t.Errorf("%s: %d other bytes", key, len(got))
		}
		return errors.Join(err, body.Close())
	}
	test.Is(t, reads("kept"), nil)
	b.set(func() { b.down = storagedrivers.ErrUnavailable })
	deletes := 0
	b.Fail = func(string, string) error {
		deletes++
		return storagedrivers.ErrUnavailable
	}
	for range 5 {
		test.Is(t, s.Delete(t.Context(), "none"), storagedrivers.ErrUnavailable)
	}
	for range 5 {
		test.Is(t, reads("other"), storagedrivers.ErrUnavailable)
	}
	b.calls()
	test.Is(t, reads("other"), storagedrivers.ErrUnavailable)
	test.Is(t, s.Delete(t.Context(), "none"), storagedrivers.ErrUnavailable)
	b.did(t, "while both circuits are open", 0, 0, 0)
	if deletes != 15 { // three attempts each
		t.Errorf("%d deletions were tried, want 15", deletes)
	}
	test.Is(t, reads("kept"), nil)
	_, err := s.Stat(t.Context(), "kept")
	test.Is(t, err, nil)
}

// TestSkip: objects that the policy leaves out are read from the backend each time.
func TestSkip(t *testing.T) {
	t.Parallel()
	b := newBackend()
	policy := Policy{Immutable: true, Revalidate: time.Hour, FillOnUpload: true}
	policy.Skip = func(key string) bool { return strings.HasPrefix(key, "unfinished/") }
	store := open(t, t.TempDir(), 0)
	d := behind(t, b, store, policy)
	put(t, d, "unfinished/part", random(1, kib))
	for range 2 {
		has(t, d, "unfinished/part", all, random(1, kib))
		b.did(t, "a key that is left out", 1, 0, kib)
	}
	test.Is(t, d.Delete(t.Context(), "unfinished/part", storagedrivers.DeleteOptions{}), nil)
	test.Equal(t, store.Stats().Entries, 0, "entries")
}
