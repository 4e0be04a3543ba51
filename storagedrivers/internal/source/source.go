// Package source guards what a driver sends against what its libraries do with readers:
// close them, take their errors for the network's, or go on after the caller's end.
package source

import (
	"context"
	"io"
	"sync"
)

// Reader is a source on its way into a place. It offers io.Reader alone, so that nobody
// closes or measures what is behind it.
type Reader struct {
	ctx  context.Context //nolint:containedctx // it ends the reading, not a call
	r    io.Reader
	mu   sync.Mutex // a library may still read when its caller has its answer
	size int64
	err  error
}

// New gives the reader of r, which ends with ctx.
func New(ctx context.Context, r io.Reader) *Reader { return &Reader{ctx: ctx, r: r} }

// Read gives what the source has, or the error of ctx once that has ended.
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

// Size is how many bytes were read so far.
func (s *Reader) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// Err is what the source itself failed with, the end of ctx included; nil while it has
// not failed. It must be asked before a library's error is taken for the network's.
func (s *Reader) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == io.EOF { //nolint:errorlint // readers give it bare
		return nil
	}
	return s.err
}
