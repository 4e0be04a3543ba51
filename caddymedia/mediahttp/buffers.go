package mediahttp

import (
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// smallItem is the largest item in bytes that is read completely before it is sent.
	smallItem = 256 << 10
	// pieceSize is the size of the reads of a larger item.
	pieceSize = 64 << 10
	// maxSmall bounds the memory of all items that are read completely. A client that does not read
	// its response holds its buffer until the connection times out.
	maxSmall = 64 << 20
)

// small are the buffers of all items that are being sent.
var small = newBuffers(maxSmall)

// sizes are the sizes of buffers.
var sizes = [...]int64{4 << 10, 16 << 10, pieceSize, smallItem}

// buffers are pools of buffers by size. Their memory is bounded together.
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

// piece returns a buffer of [pieceSize] for an item that stays open while it is sent. The bound on
// open items also bounds these buffers.
func (b *buffers) piece() (buffer []byte, release func()) {
	const class = 2
	pooled := b.pools[class].Get().(*[]byte)
	return *pooled, func() { b.pools[class].Put(pooled) }
}
