package cache

import (
	"context"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
)

// buffers are for one chunk with its checksum, so that the memory of a reader does not depend on
// the size of a block.
var buffers = sync.Pool{New: func() any { return new([frameSize]byte) }}

// reader reads a part of an object block by block, from the store or the backend. It is for one
// goroutine.
type reader struct {
	ctx         context.Context //nolint:containedctx // by the contract, ctx governs readers
	d           *cached
	offset, end int64

	generation *generation // set once, with the driver's mu
	closed     bool        // guarded by the driver's mu

	buf     *[frameSize]byte // nil while no chunk is read
	chunk   []byte           // the unread bytes of buf
	flight  *flight          // nil unless the block comes from the backend
	counted int64            // the last block in the statistics
}

// Read reads from the current block.
func (r *reader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, fs.ErrClosed
	}
	for {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		if r.offset >= r.end {
			return 0, r.finish()
		}
		if len(p) == 0 {
			return 0, nil
		}
		number, within := r.offset/r.d.policy.Block, int(r.offset%r.d.policy.Block)
		if r.flight != nil {
			n, err := r.await(p, number, within)
			if n > 0 || err != nil {
				return n, err
			}
			continue
		}
		if len(r.chunk) > 0 || r.load(number, within) {
			n := copy(p, r.chunk)
			r.chunk = r.chunk[n:]
			r.offset += int64(n)
			if len(r.chunk) == 0 {
				r.recycle()
			}
			return n, nil
		}
		r.join(number)
	}
}

// begin waits for the first bytes, so that a failure of the backend is one of Open.
func (r *reader) begin() error {
	number, within := r.offset/r.d.policy.Block, int(r.offset%r.d.policy.Block)
	if r.offset >= r.end || r.load(number, within) {
		return nil
	}
	r.join(number)
	_, err := r.await(nil, number, within)
	return err
}

func (r *reader) join(number int64) {
	r.count(number, &r.d.store.misses)
	r.flight = r.d.join(r, number)
}

// load reads the chunk at the offset from the store.
func (r *reader) load(number int64, within int) bool {
	r.buf = buffers.Get().(*[frameSize]byte) //nolint:forcetypeassert // of this type only
	chunk, ok := r.d.store.chunk(blockID(r.generation.id, number), r.d.blockSize(r.generation.info, number),
		within/chunkSize, r.buf[:])
	if !ok || within%chunkSize >= len(chunk) {
		r.recycle()
		return false
	}
	r.count(number, &r.d.store.hits)
	chunk = chunk[within%chunkSize:]
	r.chunk = chunk[:min(int64(len(chunk)), r.end-r.offset)]
	return true
}

// recycle returns the buffer.
func (r *reader) recycle() {
	if r.buf != nil {
		buffers.Put(r.buf)
	}
	r.buf, r.chunk = nil, nil
}

// count counts a block once.
func (r *reader) count(number int64, counter *atomic.Int64) {
	if r.counted != number {
		r.counted = number
		counter.Add(1)
	}
}

// await copies bytes of the flight as they arrive. It returns no bytes and no error when the flight
// is over and the block is stored, or is another one than the reader's. Before the next block it
// waits for the end of the flight, which leaves its stream to the next one.
func (r *reader) await(p []byte, number int64, within int) (int, error) {
	f := r.flight
	for {
		f.mu.Lock()
		mine := f.number == number
		switch {
		case mine && f.buf != nil && within < f.n:
			n := copy(p, f.buf[within:min(int64(f.n), int64(within)+r.end-r.offset)])
			f.mu.Unlock()
			r.offset += int64(n)
			return n, nil
		case f.over:
			err := f.err
			f.mu.Unlock()
			r.leave()
			return 0, err
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-r.ctx.Done():
			r.leave()
			return 0, r.ctx.Err()
		}
	}
}

// finish returns io.EOF, or the error of the block that ends with the reader: some drivers verify
// the bytes when all of them have arrived.
func (r *reader) finish() error {
	if r.flight != nil && r.end%r.d.policy.Block == int64(r.flight.size)%r.d.policy.Block {
		if _, err := r.await(nil, -1, 0); err != nil {
			return err
		}
	}
	return io.EOF
}

func (r *reader) leave() {
	if r.flight != nil {
		r.d.leave(r, r.flight)
		r.flight = nil
	}
}

// Close ends the reader. A block that is being fetched is stored nevertheless, unless ctx is over.
func (r *reader) Close() error {
	if r.closed {
		return nil
	}
	r.recycle()
	r.leave()
	r.d.mu.Lock()
	r.closed = true
	var unused []*stream
	if g := r.generation; g != nil {
		unused = g.takeStreams(func(s *stream) bool { return s.reader == r })
		r.d.release(g)
	}
	r.d.mu.Unlock()
	for _, s := range unused {
		s.close()
	}
	return nil
}
