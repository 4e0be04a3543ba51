package s3

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// partSize is the size of a part. Objects up to this size are sent whole.
	partSize = 5 << 20
	// maxBuffered is the most bytes that all uploads of a driver hold in memory together.
	maxBuffered = 128 << 20
	// minPooled is the smallest buffer that is kept for the next upload.
	minPooled = 1 << 20
)

// buffers hold objects while they are sent. A request can then be signed and repeated for any
// source, and an error of the source is known before anything is sent.
type buffers struct {
	room  *semaphore.Weighted
	parts sync.Pool // of *[partSize]byte
}

func newBuffers() *buffers {
	return &buffers{
		room:  semaphore.NewWeighted(maxBuffered),
		parts: sync.Pool{New: func() any { return new([partSize]byte) }},
	}
}

// get waits for room and returns a buffer of n bytes. The holder of one must not wait for another.
// The SDK does not read a body after its call has returned, even with an error.
func (b *buffers) get(ctx context.Context, n int64) (buffer []byte, release func(), err error) {
	if err := b.room.Acquire(ctx, weight(n)); err != nil {
		return nil, nil, err
	}
	buffer, release = b.take(n)
	return buffer, release, nil
}

// try returns a buffer of n bytes if there is room for it.
func (b *buffers) try(n int64) (buffer []byte, release func(), ok bool) {
	if !b.room.TryAcquire(weight(n)) {
		return nil, nil, false
	}
	buffer, release = b.take(n)
	return buffer, release, true
}

func (b *buffers) take(n int64) (buffer []byte, release func()) {
	if !pooled(n) {
		return make([]byte, n), func() { b.room.Release(weight(n)) }
	}
	part := b.parts.Get().(*[partSize]byte)
	return part[:n], func() {
		b.parts.Put(part)
		b.room.Release(weight(n))
	}
}

func pooled(n int64) bool { return n >= minPooled && n <= partSize }

// weight returns the room that a buffer takes. A part that is larger than all the room, for an
// object of terabytes, gets all of it.
func weight(n int64) int64 {
	if pooled(n) {
		return partSize
	}
	return min(n, maxBuffered)
}
