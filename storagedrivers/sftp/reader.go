package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"

	pkgsftp "github.com/pkg/sftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/source"
)

const (
	// packet is the size in bytes of one read request, which every host supports.
	packet = 32 << 10
	// firstRequests is the number of requests after an offset is set. Each consumed one adds
	// another, up to maxRequests, so that their number doubles with each round trip.
	firstRequests = 8
	// readAtOnce bounds the memory of one ReadAt, in addition to its caller's buffer.
	readAtOnce = 1 << 20
)

// reader reads a file at any offset. It reads ahead, so that not every packet costs a round trip;
// up to 2 MiB are in memory. Read and Seek are for one goroutine.
type reader struct {
	ctx     context.Context //nolint:containedctx // the contract has readers that ctx governs
	c       *conn
	file    *pkgsftp.File
	path    string
	handles handling
	info    storagedrivers.Info
	closing func()
	closed  atomic.Bool

	offset   int64    // of the next Read
	end      int64    // where the reading ends
	ahead    []*chunk // requests, in order
	next     int64    // where they end
	requests int      // how many they may be
	spare    [][]byte // buffers of chunks that were used up
}

// chunk is a requested part of the file.
type chunk struct {
	offset int64
	data   []byte // to be looked at when done
	err    error
	done   chan struct{}
}

// fetch requests the bytes from offset on that fill buffer.
func (r *reader) fetch(buffer []byte, offset int64) *chunk {
	c := &chunk{offset: offset, data: buffer, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = r.transfer(buffer, offset)
	}()
	return c
}

// transfer fills buffer from offset on. If the handle may change its file, the bytes only count if
// the path has the same generation after they have arrived.
func (r *reader) transfer(buffer []byte, offset int64) error {
	past := func() error { return nil }
	if r.handles != exact && offset+int64(len(buffer)) == r.info.Size {
		past = r.pastEnd()
	}
	n, err := r.file.ReadAt(buffer, offset)
	switch {
	case n == len(buffer):
		err = nil
	case err == io.EOF: //nolint:errorlint // the library returns it bare
		err = fmt.Errorf("the file ends at %d: %w", offset+int64(n), io.ErrUnexpectedEOF)
		if r.handles != exact { // another file may have been opened
			err = fmt.Errorf("%w: %w", storagedrivers.ErrChanged, err)
		}
	default:
		err = r.mapLoss(err)
	}
	if longer := past(); err == nil {
		err = longer
	}
	if r.handles < steady {
		if changed := r.changed(); changed != nil {
			err = errors.Join(changed, err)
		}
	}
	return err
}

// mapLoss drops the connection if err means that it is lost, and returns the contract's error.
func (r *reader) mapLoss(err error) error {
	if unavailable(err) {
		r.c.drop()
	}
	return mapError(err)
}

// pastEnd requests a byte after the end. The returned function waits for the reply.
func (r *reader) pastEnd() (wait func() error) {
	answer := make(chan error, 1)
	go func() {
		n, err := r.file.ReadAt(make([]byte, 1), r.info.Size)
		switch {
		case n > 0:
			err = fmt.Errorf("%w: it is longer", storagedrivers.ErrChanged)
		case err == io.EOF: //nolint:errorlint // the library returns it bare
			err = nil
		default:
			err = r.mapLoss(err)
		}
		answer <- err
	}()
	return func() error { return <-answer }
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

// wait waits until the chunk has arrived.
func (r *reader) wait(c *chunk) error {
	select {
	case <-c.done:
		return c.err
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
	c := r.ahead[0]
	if err := r.wait(c); err != nil {
		return 0, err
	}
	n := copy(p, c.data[r.offset-c.offset:])
	r.offset += int64(n)
	if r.offset == c.offset+int64(len(c.data)) {
		r.ahead, r.spare = r.ahead[1:], append(r.spare, c.data)
		r.requests = min(r.requests+1, maxRequests)
	}
	return n, nil
}

// request ensures that the first requested chunk is the one at the offset, and that as many chunks
// are requested as allowed.
func (r *reader) request() {
	if len(r.ahead) == 0 || r.offset < r.ahead[0].offset || r.offset >= r.next {
		r.ahead, r.next, r.requests = nil, r.offset, firstRequests
	}
	for len(r.ahead) > 0 && r.offset >= r.ahead[0].offset+packet {
		r.ahead = r.ahead[1:]
	}
	for len(r.ahead) < r.requests && r.next < r.end {
		buffer := r.buffer(min(packet, r.end-r.next))
		r.ahead = append(r.ahead, r.fetch(buffer, r.next))
		r.next += int64(len(buffer))
	}
}

// buffer returns a buffer of size bytes, at most a packet.
func (r *reader) buffer(size int64) []byte {
	if last := len(r.spare) - 1; last >= 0 {
		buffer := r.spare[last]
		r.spare = r.spare[:last]
		return buffer[:size]
	}
	return make([]byte, size, packet)
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
		size := min(int64(len(p)-read), r.end-offset, readAtOnce)
		var chunks []*chunk
		for at := int64(0); at < size; at += packet {
			chunks = append(chunks, r.fetch(make([]byte, min(packet, size-at)), offset+at))
		}
		for _, c := range chunks {
			if err := r.wait(c); err != nil {
				return read, err
			}
			read += copy(p[read:], c.data)
			offset += int64(len(c.data))
		}
	}
	return read, nil
}

// Close closes the reader, and the file in the background.
func (r *reader) Close() error {
	if r.closed.Swap(true) {
		return fs.ErrClosed
	}
	r.ahead, r.spare = nil, nil
	r.closing()
	return nil
}

// Interface guards
var (
	_ io.ReadSeekCloser = (*reader)(nil)
	_ io.ReaderAt       = (*reader)(nil)
)
