package sftp

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"

	pkgsftp "github.com/pkg/sftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
	"github.com/caddymedia/media/storagedrivers/internal/source"
)

// Sizes in bytes of the blocks that a reader requests: the first one after an offset is set, and
// the largest. Each is twice as large as the one before. The library requests the packets of a
// block at once.
const (
	firstBlock = 256 << 10
	maxBlock   = 1 << 20
)

// reader reads a file at any offset. While a block is read, the next one is on its way. Read and
// Seek are for one goroutine.
type reader struct {
	ctx     context.Context //nolint:containedctx // the contract has readers that ctx governs
	c       *conn
	file    *pkgsftp.File
	path    string
	exact   bool // the handle stays on its file
	info    storagedrivers.Info
	closing func()
	closed  atomic.Bool

	offset int64  // of the next Read
	end    int64  // where the reading ends
	block  *block // that is being read; nil at first
	ahead  *block // the next one; nil is none
	spare  []byte // the buffer of the last one
}

// block is a requested part of the file.
type block struct {
	offset int64
	data   []byte // to be looked at when done
	err    error
	done   chan struct{}
}

// end is where the block ends.
func (b *block) end() int64 { return b.offset + int64(len(b.data)) }

// fetch requests the bytes from offset on that fill buffer.
func (r *reader) fetch(buffer []byte, offset int64) *block {
	b := &block{offset: offset, data: buffer, done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.err = guard.Call(func() error { return r.transfer(buffer, offset) })
	}()
	return b
}

// transfer fills buffer from offset on. If the handle may change its file, the last bytes only
// count if the path has the same generation after they have arrived.
func (r *reader) transfer(buffer []byte, offset int64) error {
	n, err := r.file.ReadAt(buffer, offset)
	switch {
	case n == len(buffer):
		if !r.exact && offset+int64(n) == r.end {
			return r.changed()
		}
		return nil
	case err == io.EOF: //nolint:errorlint // the library returns it bare
		err = fmt.Errorf("the file ends at %d: %w", offset+int64(n), io.ErrUnexpectedEOF)
		if !r.exact { // another file may have been opened
			err = fmt.Errorf("%w: %w", storagedrivers.ErrChanged, err)
		}
		return err
	}
	return r.mapLoss(err)
}

// mapLoss drops the connection if err means that it is lost, and returns the contract's error.
func (r *reader) mapLoss(err error) error {
	if unavailable(err) {
		r.c.drop()
	}
	return mapError(err)
}

// changed returns an error unless the path still has the generation that was opened.
func (r *reader) changed() error {
	stat, err := r.c.Stat(r.path)
	switch {
	case unavailable(err):
		return r.mapLoss(err)
	case err != nil:
		return fmt.Errorf("%w: %w", storagedrivers.ErrChanged, err)
	case !newInfo(r.info.Key, stat).Same(r.info):
		return storagedrivers.ErrChanged
	}
	return nil
}

// wait waits until the block has arrived.
func (r *reader) wait(b *block) error {
	select {
	case <-b.done:
		return b.err
	case <-r.ctx.Done():
		return contextError(r.ctx)
	}
}

// unreadable returns the error of reading at offset.
func (r *reader) unreadable(offset int64) error {
	switch {
	case r.closed.Load():
		return fs.ErrClosed
	case r.ctx.Err() != nil:
		return contextError(r.ctx)
	case offset >= r.end:
		return io.EOF
	}
	return nil
}

// Read reads from the current offset on.
func (r *reader) Read(p []byte) (int, error) {
	if err := r.unreadable(r.offset); err != nil {
		return 0, err
	}
	r.request()
	if err := r.wait(r.block); err != nil {
		return 0, err
	}
	n := copy(p, r.block.data[r.offset-r.block.offset:])
	r.offset += int64(n)
	return n, nil
}

// request ensures that the block at the offset and the next one are requested.
func (r *reader) request() {
	switch b := r.block; {
	case b == nil || r.offset < b.offset || r.offset > b.end():
		r.block, r.ahead, r.spare = r.next(r.offset, firstBlock), nil, nil
	case r.offset == b.end():
		r.block, r.ahead, r.spare = r.ahead, nil, b.data
	}
	if at := r.block.end(); r.ahead == nil && at < r.end {
		r.ahead = r.next(at, min(2*int64(len(r.block.data)), maxBlock))
	}
}

// next requests a block of at most size bytes.
func (r *reader) next(at, size int64) *block {
	size = min(size, r.end-at)
	buffer := r.spare
	if r.spare = nil; int64(cap(buffer)) < size {
		buffer = make([]byte, size)
	}
	return r.fetch(buffer[:size], at)
}

// Seek sets the offset of the next Read.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	at, err := source.Seek(offset, whence, r.offset, r.end)
	r.offset = at
	return at, err
}

// ReadAt reads from offset on. It uses its own buffers, because the caller may reuse p after the
// end of ctx.
func (r *reader) ReadAt(p []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, fmt.Errorf("reading at %d: negative offset", offset)
	}
	read := 0
	for read < len(p) {
		if err := r.unreadable(offset); err != nil {
			return read, err
		}
		b := r.fetch(make([]byte, min(int64(len(p)-read), r.end-offset, maxBlock)), offset)
		if err := r.wait(b); err != nil {
			return read, err
		}
		read += copy(p[read:], b.data)
		offset = b.end()
	}
	return read, nil
}

// Close closes the reader, and the file in the background.
func (r *reader) Close() error {
	if r.closed.Swap(true) {
		return fs.ErrClosed
	}
	r.block, r.ahead, r.spare = nil, nil, nil
	r.closing()
	return nil
}

// Interface guards
var (
	_ io.ReadSeekCloser = (*reader)(nil)
	_ io.ReaderAt       = (*reader)(nil)
)
