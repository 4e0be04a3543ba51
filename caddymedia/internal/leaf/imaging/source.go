package imaging

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// bufferSize limits how much of a file is held in memory during the walk over its blocks.
const bufferSize = 64 << 10

// buffers are reused. Most images are smaller than one, and clearing a new buffer would be half
// the work.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}

// source reads a file through one bounded buffer. It records the first read error, because decoders
// of the standard library drop the cause (image/gif formats it away).
type source struct {
	*bufio.Reader
	in *errRecorder
}

// errRecorder records the first error of a reader other than io.EOF.
type errRecorder struct {
	in   io.ReadSeeker
	read int64 // bytes since the start of the file
	err  error
}

// Read reads and records a failure.
func (r *errRecorder) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.read += int64(n)
	r.record(err)
	return n, err
}

func (r *errRecorder) record(err error) {
	if err != nil && err != io.EOF && r.err == nil { //nolint:errorlint // io.Reader demands io.EOF itself
		r.err = err
	}
}

// Seek seeks and records a failure.
func (r *errRecorder) Seek(offset int64, whence int) (int64, error) {
	at, err := r.in.Seek(offset, whence)
	r.read = at
	r.record(err)
	return at, err
}

// newSource starts at the first byte of r. The caller must call release unless there is an error.
func newSource(r io.ReadSeeker) (*source, error) {
	s := &source{Reader: buffers.Get().(*bufio.Reader), in: &errRecorder{in: r}}
	if err := s.rewind(); err != nil {
		s.release()
		return nil, err
	}
	return s, nil
}

// release returns the buffer to the pool. Bytes from Peek, next or window become invalid.
func (s *source) release() {
	s.Reset(nil)
	buffers.Put(s.Reader)
	s.Reader = nil
}

// rewind goes back to the first byte.
func (s *source) rewind() error {
	if _, err := s.in.Seek(0, io.SeekStart); err != nil {
		return s.ioError()
	}
	s.Reset(s.in)
	return nil
}

// offset returns the position of the next byte in the file.
func (s *source) offset() int64 { return s.in.read - int64(s.Buffered()) }

// readAt returns n bytes at an offset. The next byte to read is the one behind them.
func (s *source) readAt(offset, n int64) ([]byte, error) {
	if _, err := s.in.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	s.Reset(s.in)
	b := make([]byte, n)
	return b, s.read(b)
}

// ioError returns the first read error, wrapped, or nil.
func (s *source) ioError() error {
	if s.in.err == nil {
		return nil
	}
	return fmt.Errorf("reading the upload: %w", s.in.err)
}

// next consumes and returns n bytes, which are valid until the next read. n is at most bufferSize.
func (s *source) next(n int) ([]byte, error) {
	b, err := s.Peek(n)
	if err != nil {
		return nil, err
	}
	_, err = s.Discard(n)
	return b, err
}

// read fills b with the next bytes. io.EOF means that the file is shorter.
func (s *source) read(b []byte) error {
	_, err := io.ReadFull(s, b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// window returns the buffered bytes, at least n, without consuming them. It is for fast searches.
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
	b, _ := s.Peek(n) // a short file is fine; a failure is recorded
	return b, s.ioError()
}

// skip discards n bytes.
func skip(s *source, n int64) error {
	for n > 0 {
		part := int(min(n, 1<<30))
		if _, err := s.Discard(part); err != nil {
			return err
		}
		n -= int64(part)
	}
	return nil
}

func be16(b []byte) int   { return int(binary.BigEndian.Uint16(b)) }
func le16(b []byte) int   { return int(binary.LittleEndian.Uint16(b)) }
func be32(b []byte) int64 { return int64(binary.BigEndian.Uint32(b)) }
func le24(b []byte) int   { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
func le32(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b)) }
