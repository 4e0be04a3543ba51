package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/caddymedia/media/storagedrivers"
)

// buffers are for one chunk with its checksum, so that the memory of a reader does not depend on
// the size of a block.
var buffers = sync.Pool{New: func() any { return new([frameSize]byte) }}

// reader reads a part of an object block by block, from the store or the backend. It is for one
// goroutine.
type reader struct {
	ctx         context.Context //nolint:containedctx // by the contract, ctx governs readers
	d           *cached
	key         string
	version     uint64 // of the object when it was opened
	offset, end int64

	object *object          // nil before it is open
	flight *flight          // the last one that it has joined, if any
	block  *block           // the last one of the store that it has read, if any
	number int64            // of block
	buf    *[frameSize]byte // nil before the first byte, and once it is closed
	chunk  []byte           // the unread bytes of buf
	closed bool
}

// Read reads from the current block.
func (r *reader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, fs.ErrClosed
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if r.offset >= r.end {
		return 0, r.finish()
	}
	if len(p) == 0 {
		return 0, nil
	}
	if err := r.fill(); err != nil {
		return 0, err
	}
	n := copy(p, r.chunk)
	r.chunk = r.chunk[n:]
	r.offset += int64(n)
	return n, nil
}

// open opens the object, and waits for the first bytes, so that a failure of the backend is one of
// Open. The error is ErrChanged if the object was replaced meanwhile.
func (r *reader) open(rng storagedrivers.Range) (storagedrivers.Info, error) {
	o, err := r.d.lookUp(r, true)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	n, err := rng.Within(o.Size)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	r.object, r.end = o, r.offset+n
	if n > 0 {
		err = r.fill()
	}
	return o.Info, err
}

// ask returns the object that the backend describes in answer to a flight, and whether r has
// started it. ErrBusy is the error of the owner of the flight; other readers ask again.
func (r *reader) ask(number int64) (o *object, started bool, err error) {
	for {
		started = r.d.join(r, number)
		f := r.flight
		waitErr := f.wait(r.ctx, func() bool {
			o, err = f.object, f.err
			return o != nil || f.over
		})
		if waitErr != nil {
			return nil, started, waitErr
		}
		if started || !errors.Is(err, storagedrivers.ErrBusy) {
			return o, started, err
		}
	}
}

// fill reads bytes at the offset, unless there are some: those of a flight as they arrive, or a
// chunk of the store.
func (r *reader) fill() error {
	if len(r.chunk) > 0 {
		return nil
	}
	if r.buf == nil {
		r.buf = buffers.Get().(*[frameSize]byte) //nolint:forcetypeassert // of this type only
	}
	number, within := r.offset/r.d.policy.Block, int(r.offset%r.d.policy.Block)
	for {
		if err := r.await(number, within); err != nil {
			return err
		}
		if len(r.chunk) > 0 || r.load(number, within) {
			r.chunk = r.chunk[:min(int64(len(r.chunk)), r.end-r.offset)]
			return nil
		}
		r.d.join(r, number)
	}
}

// load reads the chunk at the offset from the store.
func (r *reader) load(number int64, within int) bool {
	if r.block == nil || r.number != number {
		r.block.close()
		r.block, r.number = r.d.store.block(r.object.blockAt(number)), number
		if r.block == nil {
			return false
		}
		if r.flight == nil || r.flight.number != number { // otherwise it was a miss
			r.d.store.hits.Add(1)
		}
	}
	chunk, ok := r.block.chunk(within/chunkSize, r.buf[:])
	if !ok {
		r.block.close()
		r.block = nil
		return false
	}
	r.chunk = chunk[within%chunkSize:]
	return true
}

// await waits for bytes of the flight, and copies them. There are none when the flight is over and
// the block is stored, or is another one than the reader's. Before the next block the reader waits
// for the end of the flight, which leaves its stream to the next one.
func (r *reader) await(number int64, within int) error {
	f := r.flight
	if f == nil {
		return nil
	}
	if err := f.wait(r.ctx, func() bool {
		if f.number == number && within < min(f.n, len(f.buf)) && f.object.generation == r.object.generation {
			r.chunk = r.buf[:copy(r.buf[:chunkSize], f.buf[within:f.n])]
		}
		return len(r.chunk) > 0 || f.over
	}); err != nil || len(r.chunk) > 0 {
		return err
	}
	switch err := f.err; {
	case isGone(err) || errors.Is(err, errUncacheable):
		// The reader has opened an object, so that these would mislead its caller.
		return fmt.Errorf("%w: %s", storagedrivers.ErrChanged, err.Error())
	case err == nil && f.object.generation != r.object.generation:
		return storagedrivers.ErrChanged
	default:
		return err
	}
}

// finish returns io.EOF, or the error of the block that ends with the reader: some drivers verify
// the bytes when all of them have arrived.
func (r *reader) finish() error {
	if f := r.flight; f != nil && r.end == f.number*r.d.policy.Block+int64(r.object.size(f.number)) {
		if err := r.await(noBlock, 0); err != nil {
			return err
		}
	}
	return io.EOF
}

// Close ends the reader. A block that is being fetched is stored nevertheless, unless ctx is over.
func (r *reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.block.close()
	if r.buf != nil {
		buffers.Put(r.buf)
		r.buf, r.chunk = nil, nil
	}
	r.d.leave(r.flight, r.ctx.Err() != nil)
	r.flight = nil
	return nil
}
