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

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

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
