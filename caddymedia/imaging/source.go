package imaging

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// bufferSize bounds what is held of a file while its blocks are walked.
const bufferSize = 64 << 10

// buffers keeps buffers for the next picture: most are smaller than one, and clearing it would be half the work.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}

// source reads a file through one bounded buffer. It remembers a failing reader, because decoders of the standard
// library drop the cause (image/gif formats it away).
type source struct {
	*bufio.Reader
	in *failing
}

// failing notes the first error of a reader that is not the end of the file.
type failing struct {
	r    io.ReadSeeker
	read int64 // bytes since the start of the file
	err  error
}

// Read reads and notes a failure.
func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.read += int64(n)
	f.note(err)
	return n, err
}

func (f *failing) note(err error) {
	if err != nil && err != io.EOF && f.err == nil { //nolint:errorlint // io.Reader demands io.EOF itself
		f.err = err
	}
}

// newSource starts at the beginning of r, wherever r stands. Without an error, release must follow.
func newSource(r io.ReadSeeker) (*source, error) {
	s := &source{Reader: buffers.Get().(*bufio.Reader), in: &failing{r: r}}
	if err := s.rewind(); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// release gives the buffer back. What was peeked at or taken is no longer valid.
func (s *source) release() {
	s.Reset(nil)
	buffers.Put(s.Reader)
	s.Reader = nil
}

// rewind goes back to the first byte.
func (s *source) rewind() error {
	if _, err := s.in.r.Seek(0, io.SeekStart); err != nil {
		s.in.note(err)
		return s.ioError()
	}
	s.in.read = 0
	s.Reset(s.in)
	return nil
}

// offset tells where in the file the next byte is.
func (s *source) offset() int64 { return s.in.read - int64(s.Buffered()) }

// ioError returns the failure of the reader beneath, nil when it never failed.
func (s *source) ioError() error {
	if s.in.err == nil {
		return nil
	}
	return fmt.Errorf("reading the upload: %w", s.in.err)
}

// take returns the next n bytes, which stay valid until the next read. n is at most bufferSize.
func (s *source) take(n int) ([]byte, error) {
	b, err := s.Peek(n)
	if err != nil {
		return nil, err
	}
	_, err = s.Discard(n)
	return b, err
}

// window returns the bytes that are buffered, at least n, without consuming them: the fast way to search.
func (s *source) window(n int) ([]byte, error) {
	if _, err := s.Peek(n); err != nil {
		return nil, err
	}
	return s.Peek(s.Buffered())
}

// head returns up to n bytes from the start of the file.
func (s *source) head(n int) ([]byte, error) {
	if err := s.rewind(); err != nil {
		return nil, err
	}
	b, _ := s.Peek(n) // short is fine, and a failure is noted
	return b, s.ioError()
}

func be16(b []byte) int   { return int(binary.BigEndian.Uint16(b)) }
func le16(b []byte) int   { return int(binary.LittleEndian.Uint16(b)) }
func be32(b []byte) int64 { return int64(binary.BigEndian.Uint32(b)) }
