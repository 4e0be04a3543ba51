package mediahttp

import (
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// smallItem is up to how many bytes an item is read whole before it is written.
	smallItem = 256 << 10
	// pieceSize is how much of a larger item is read at once.
	pieceSize = 64 << 10
	// maxSmall is how many bytes all items that are read whole have in memory together. Clients
	// that take nothing hold theirs until their connection's time-out.
	maxSmall = 64 << 20
)

// small are the buffers of all items that are being sent.
var small = newBuffers(maxSmall)

// sizes of buffers.
var sizes = [...]int64{4 << 10, 16 << 10, pieceSize, smallItem}

// buffers are pooled by size, and bounded together.
type buffers struct {
	room  *semaphore.Weighted
	pools [len(sizes)]sync.Pool
}

func newBuffers(room int64) *buffers {
	b := &buffers{room: semaphore.NewWeighted(room)}
	for i, size := range sizes {
		b.pools[i].New = func() any {
			buffer := make([]byte, size)
			return &buffer
		}
	}
	return b
}

// take returns a buffer of n bytes, at most [smallItem], if there is room for it.
func (b *buffers) take(n int64) (buffer []byte, release func(), ok bool) {
	for i, size := range sizes {
		if n > size {
			continue
		}
		if !b.room.TryAcquire(size) {
			return nil, nil, false
		}
		pooled := b.pools[i].Get().(*[]byte)
		return (*pooled)[:n], func() {
			b.pools[i].Put(pooled)
			b.room.Release(size)
		}, true
	}
	return nil, nil, false
}

// piece returns a buffer of [pieceSize] for an item that is open while it is sent. The number of
// those is bounded otherwise.
func (b *buffers) piece() (buffer []byte, release func()) {
	const class = 2
	pooled := b.pools[class].Get().(*[]byte)
	return *pooled, func() { b.pools[class].Put(pooled) }
}
