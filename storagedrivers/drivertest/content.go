package drivertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
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

var (
	create    = storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly}
	overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
	all       = storagedrivers.Range{}
)

// put stores c under key, which must succeed.
func (e *env) put(t *testing.T, key string, c content, opts storagedrivers.PutOptions) storagedrivers.Info {
	t.Helper()
	src := newSource(c)
	info, err := e.storage.Put(t.Context(), key, src, opts)
	test.Must(t, err, "storing", key)
	if src.closed {
		t.Errorf("storing %q closed the source", key)
	}
	if info.Key != key || info.Size != c.size {
		t.Errorf("stored %q of %d bytes, want %q of %d", info.Key, info.Size, key, c.size)
	}
	return info
}

// has asserts that key holds c.
func (e *env) has(t *testing.T, key string, c content) {
	t.Helper()
	body, info, err := e.storage.Open(t.Context(), key, all)
	if err != nil {
		t.Errorf("opening %q: %v", key, err)
		return
	}
	defer closed(t, body)
	if info.Key != key || info.Size != c.size {
		t.Errorf("opened %q of %d bytes, want %q of %d", info.Key, info.Size, key, c.size)
	}
	test.Is(t, equal(body, c.reader()), nil, "content of", key)
}

// hasNot asserts that there is no object under key.
func (e *env) hasNot(t *testing.T, key string) {
	t.Helper()
	_, err := e.storage.Stat(t.Context(), key)
	fails(t, err, fs.ErrNotExist, "stat of a missing object")
	body, _, err := e.storage.Open(t.Context(), key, all)
	if err == nil {
		closed(t, body)
	}
	fails(t, err, fs.ErrNotExist, "opening a missing object")
}

// open opens key, which must succeed. The reader is closed at the end of the test.
func (e *env) open(t *testing.T, key string) io.ReadCloser {
	t.Helper()
	body, _, err := e.storage.Open(t.Context(), key, all)
	test.Must(t, err, "opening", key)
	t.Cleanup(func() { _ = body.Close() }) // may be closed already
	return body
}

// fails asserts that err matches want.
func fails(t *testing.T, err, want error, what string) {
	t.Helper()
	test.Is(t, err, want, what)
}

// never asserts that err matches none of the wrong errors, which would mislead a caller.
func never(t *testing.T, err error, what string, wrong ...error) {
	t.Helper()
	for _, w := range wrong {
		if errors.Is(err, w) {
			t.Errorf("%s: error %v, which must not match %v", what, err, w)
		}
	}
}

// succeeds asserts that err is nil.
func succeeds(t *testing.T, err error, what string) {
	t.Helper()
	test.Is(t, err, nil, what)
}

// closed closes c, which must succeed.
func closed(t *testing.T, c io.Closer) {
	t.Helper()
	test.Is(t, c.Close(), nil, "closing")
}
