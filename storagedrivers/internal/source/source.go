// Package source protects a driver's source from libraries that close readers, mistake their errors
// for the network's, or continue after the end of the caller's context. It neither buffers nor
// repeats what was read. Begin with [New].
package source

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// Reader reads a source until its context ends. It has only Read, so that libraries neither close
// nor measure the source.
type Reader struct {
	ctx  context.Context //nolint:containedctx // it ends the reading, not a call
	r    io.Reader
	mu   sync.Mutex // a library may still read when its caller has its answer
	size int64
	err  error
}

// New returns a reader of r that ends with ctx.
func New(ctx context.Context, r io.Reader) *Reader { return &Reader{ctx: ctx, r: r} }

// Read reads from the source. After the end of ctx it returns the error of ctx.
func (s *Reader) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = context.Cause(s.ctx)
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	s.size += int64(n)
	s.err = err
	return n, err
}

// Size returns the number of bytes read so far.
func (s *Reader) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// Err returns the error of the source itself, including the end of ctx. It must be checked before a
// library's error is treated as one of the network.
func (s *Reader) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == io.EOF { //nolint:errorlint // callers compare it with ==
		return nil
	}
	return s.err
}

// Seek returns the offset that a Seek from the offset at leads to, in an object that ends at end.
func Seek(offset int64, whence int, at, end int64) (int64, error) {
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += at
	case io.SeekEnd:
		offset += end
	default:
		return at, fmt.Errorf("seeking: whence %d", whence)
	}
	if offset < 0 {
		return at, fmt.Errorf("seeking to %d: negative offset", offset)
	}
	return offset, nil
}
