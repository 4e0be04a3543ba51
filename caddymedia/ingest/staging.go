package ingest

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"

	"github.com/caddymedia/media/caddymedia/internal/queue"
	"github.com/caddymedia/media/storagedrivers"
)

// Staging bounds what items hold until their requests have arrived completely, shared fairly between
// accounts. The first bytes of an item wait in memory, so that many small items of slow clients hold no
// file descriptors.
type Staging struct {
	memory *queue.Pool // bytes
	files  *queue.Pool
}

// NewStaging returns a Staging of so many bytes of memory and so many files.
func NewStaging(memory, files int64) *Staging {
	return &Staging{memory: queue.NewPool(memory), files: queue.NewPool(files)}
}

// headSize is how much of an item waits in memory. A larger one is staged while it arrives.
const headSize = 64 << 10

var heads = sync.Pool{New: func() any { return new([headSize]byte) }}

// holding is what the items of a request hold of the Staging of its gate.
type holding struct {
	memory int64
	files  atomic.Int64 // several items are checked at a time
}

// takeMemory reports whether the request may hold n more bytes.
func (b *batch) takeMemory(n int64) bool {
	if b.uploader.Staging == nil {
		return true
	}
	if !b.uploader.Staging.memory.Acquire(b.req.Actor.Owner(), n) {
		return false
	}
	b.holds.memory += n
	return true
}

func (b *batch) giveMemory(n int64) {
	if b.uploader.Staging == nil {
		return
	}
	b.uploader.Staging.memory.Release(b.req.Actor.Owner(), n)
	b.holds.memory -= n
}

// release releases the memory and files that the request holds.
func (b *batch) release() {
	if b.uploader.Staging == nil {
		return
	}
	owner := b.req.Actor.Owner()
	b.uploader.Staging.memory.Release(owner, b.holds.memory)
	b.uploader.Staging.files.Release(owner, b.holds.files.Swap(0))
	b.holds.memory = 0
}

// begin stages an item, or its variant. Its file counts for the request until the end, or until end.
func (b *batch) begin(ctx context.Context, storage *storagedrivers.Storage) (storagedrivers.Staged, error) {
	if b.uploader.Staging != nil {
		if !b.uploader.Staging.files.Acquire(b.req.Actor.Owner(), 1) {
			return nil, failf(Busy, "too many uploads are under way, try again later")
		}
		b.holds.files.Add(1)
	}
	staged, err := storage.Stage(ctx)
	if err != nil {
		return nil, storageFailure(err)
	}
	return staged, nil
}

// end no longer counts one file that was closed.
func (b *batch) end() {
	if b.uploader.Staging == nil {
		return
	}
	b.uploader.Staging.files.Release(b.req.Actor.Owner(), 1)
	b.holds.files.Add(-1)
}

// receive reads an item of limit bytes at most, and one more byte where there are more. A small one
// waits in memory.
func (it *item) receive(ctx context.Context, b *batch, body io.Reader, limit int64, readFailure func(error) *Failure) error {
	body = io.LimitReader(body, oneMore(limit))
	if b.takeMemory(headSize) {
		head := heads.Get().(*[headSize]byte) // the pool holds nothing else
		defer heads.Put(head)
		from := &source{r: body}
		n, err := io.ReadFull(from, head[:])
		switch {
		case from.err != nil:
			return readFailure(from.err)
		case err != nil: // the end
			b.giveMemory(headSize - int64(n))
			it.held, it.size = bytes.Clone(head[:n]), int64(n)
			return nil
		}
		defer b.giveMemory(headSize)
		body = io.MultiReader(bytes.NewReader(head[:]), body)
	}
	var err error
	if it.staged, err = b.begin(ctx, it.storage); err != nil {
		return err
	}
	it.size, err = copyBuffered(it.staged, body, readFailure)
	return err
}

// stageHeld stages the items that wait in memory, when all of the request is there.
func (b *batch) stageHeld(ctx context.Context) error {
	for _, it := range b.items {
		if it.held == nil {
			continue
		}
		var err error
		if it.staged, err = b.begin(ctx, it.storage); err != nil {
			return err
		}
		if _, err := it.staged.Write(it.held); err != nil {
			return storageFailure(err)
		}
		b.giveMemory(int64(len(it.held)))
		it.held = nil
	}
	return nil
}
