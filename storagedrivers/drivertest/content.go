package drivertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
)

// content is the content of an object. It describes itself: every block begins with the seed, the
// size and its number, which reveals parts of other contents or offsets.
type content struct {
	seed uint64
	size int64
}

const (
	kib = 1 << 10
	mib = 1 << 20

	blockSize  = kib
	headerSize = 24
)

// filling follows the headers of blocks; each seed starts at another offset.
var filling = func() []byte {
	b := make([]byte, 2*blockSize)
	rand.NewChaCha8([32]byte{}).Read(b) //nolint:errcheck,gosec // it never fails; nothing secret
	return b
}()

// ReadAt reads from offset on.
func (c content) ReadAt(p []byte, offset int64) (int, error) {
	n := 0
	for n < len(p) && offset < c.size {
		var block [blockSize]byte
		number := offset / blockSize
		binary.LittleEndian.PutUint64(block[0:], c.seed)
		binary.LittleEndian.PutUint64(block[8:], uint64(c.size))
		binary.LittleEndian.PutUint64(block[16:], uint64(number))
		copy(block[headerSize:], filling[c.seed*131%blockSize:])
		end := min(blockSize, c.size-number*blockSize)
		m := copy(p[n:], block[offset%blockSize:end])
		n += m
		offset += int64(m)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// reader returns a reader of all of the content.
func (c content) reader() *io.SectionReader { return io.NewSectionReader(c, 0, c.size) }

// part returns a reader of n bytes from offset on.
func (c content) part(offset, n int64) *io.SectionReader { return io.NewSectionReader(c, offset, n) }

// identify returns the content that b is.
func identify(b []byte) (content, error) {
	if len(b) < headerSize {
		return content{}, fmt.Errorf("%d bytes", len(b))
	}
	c := content{binary.LittleEndian.Uint64(b), int64(binary.LittleEndian.Uint64(b[8:]))}
	if c.size != int64(len(b)) {
		return c, fmt.Errorf("%d bytes of an object of %d", len(b), c.size)
	}
	return c, equal(bytes.NewReader(b), c.reader())
}

// equal returns an error that names the first difference between got and want.
func equal(got, want io.Reader) error {
	var a, b [64 * kib]byte
	for offset := int64(0); ; {
		n, err := io.ReadFull(got, a[:])
		m, _ := io.ReadFull(want, b[:])
		both := min(n, m)
		for i := 0; !bytes.Equal(a[i:both], b[i:both]); i++ {
			if a[i] != b[i] {
				return fmt.Errorf("byte %d differs", offset+int64(i))
			}
		}
		offset += int64(both)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("reading at %d: %w", offset, err)
		}
		if n != m {
			return fmt.Errorf("%d bytes and %d more, want %d more", offset, n-both, m-both)
		}
		if n < len(a) {
			return nil
		}
	}
}

// source is the source of an upload: a content with an event at one byte.
type source struct {
	io.ReadSeeker
	at     int64        // the number of bytes before the event
	event  func() error // reading goes on if it returns nil
	offset int64
	closed bool
}

func newSource(c content) *source { return &source{ReadSeeker: c.reader(), at: -1} }

// failing returns a source that fails with err after at bytes.
func failing(c content, at int64, err error) *source {
	return &source{ReadSeeker: c.reader(), at: at, event: func() error { return err }}
}

// Read reads up to the event, or after it.
func (s *source) Read(p []byte) (int, error) {
	if s.at >= 0 && s.offset >= s.at {
		if err := s.event(); err != nil {
			return 0, err
		}
		s.at = -1
	}
	if s.at >= 0 {
		p = p[:min(int64(len(p)), s.at-s.offset)]
	}
	n, err := s.ReadSeeker.Read(p)
	s.offset += int64(n)
	return n, err
}

// Seek moves the source. A driver does so to send it again.
func (s *source) Seek(offset int64, whence int) (int64, error) {
	at, err := s.ReadSeeker.Seek(offset, whence)
	if err == nil {
		s.offset = at
	}
	return at, err
}

// Close must not be called by a driver.
func (s *source) Close() error {
	s.closed = true
	return nil
}
