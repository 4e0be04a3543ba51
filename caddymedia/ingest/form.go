package ingest

import (
	"bufio"
	"errors"
	"io"
	"math"
	"mime/multipart"
	"net/textproto"
	"strings"
	"sync"

	"github.com/caddymedia/media/caddymedia/internal/bytesize"
)

// Limits of one request.
type Limits struct {
	// MaxFiles and MaxFields are the most parts with and without a file name.
	MaxFiles, MaxFields int
	// MaxFieldSize is the largest value of a field in bytes.
	MaxFieldSize int64
	// MaxPartHeader is the largest header of a part in bytes.
	MaxPartHeader int64
}

// Sizes of the buffers before and behind the multipart reader, which reads and returns only 4 KiB at
// a time. Large writes save system calls. A larger reader would save little and take more of the
// processor's cache.
const (
	readerSize = 64 << 10
	writerSize = 256 << 10
)

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, readerSize) }}

// form reads the parts of a multipart/form-data body, RFC 7578, within limits.
type form struct {
	limits        Limits
	buffer        *bufio.Reader
	guard         *headerGuard
	parts         *multipart.Reader
	current       *multipart.Part
	files, fields int
	skippable     int64 // bytes of refused parts that may still be skipped
}

// part is one part of a form. It is a file if its header has a file name.
type part struct {
	name     string
	file     bool
	filename string // as submitted, with any path
	body     io.Reader
}

// newForm returns the form of body. It skips at most skippable bytes of refused parts in all.
func newForm(body io.Reader, boundary string, limits Limits, skippable int64) *form {
	buffer := readers.Get().(*bufio.Reader) // the pool holds nothing else
	buffer.Reset(body)
	// The multipart reader accepts the end of the body within a header. Therefore it never sees
	// io.EOF: it does not read beyond the last boundary, and anywhere else the body is truncated.
	// The line break is for a last boundary without one.
	guard := &headerGuard{r: io.MultiReader(buffer, strings.NewReader("\r\n"), truncated{})}
	return &form{limits: limits, buffer: buffer, guard: guard, parts: multipart.NewReader(guard, boundary), skippable: skippable}
}

func (f *form) close() {
	f.buffer.Reset(nil)
	readers.Put(f.buffer)
	f.buffer = nil
}

// errSkipLimit is returned if the refused parts before the next one have too many bytes to skip.
var errSkipLimit = errors.New("the rest of the form is not read")

// next returns the next part, io.EOF after the last one. It skips the rest of the current part, or
// returns errSkipLimit. Other errors are *Failure.
func (f *form) next() (*part, error) {
	if f.current != nil {
		// NextRawPart would also skip the rest, but the guard would count its bytes.
		n, err := io.Copy(io.Discard, io.LimitReader(f.current, oneMore(f.skippable)))
		if err != nil {
			return nil, bodyFailure(err)
		}
		if f.skippable -= n; f.skippable < 0 {
			return nil, errSkipLimit
		}
	}
	f.guard.arm(f.limits.MaxPartHeader)
	var err error
	f.current, err = f.parts.NextRawPart()
	tripped := f.guard.disarm()
	switch {
	case tripped || err == nil && headerSize(f.current.Header) > f.limits.MaxPartHeader:
		return nil, failf(TooLarge, "the header of a part is larger than %s", bytesize.Format(f.limits.MaxPartHeader))
	case err == io.EOF: // the end is io.EOF itself; a wrapped one is a truncated body
		// net/http notices that a client disconnects only after the body is read to its end.
		_, _ = io.Copy(io.Discard, f.buffer)
		return nil, io.EOF
	case f.guard.err != nil: // the multipart reader may hide it
		return nil, bodyFailure(f.guard.err)
	case err != nil:
		return nil, bodyFailure(err)
	}
	return f.describe()
}

func (f *form) describe() (*part, error) {
	p, failure := parseDisposition(f.current.Header.Get("Content-Disposition"))
	if failure != nil {
		return nil, failure
	}
	if err := plainEncoding(f.current.Header.Get("Content-Transfer-Encoding")); err != nil {
		return nil, err
	}
	p.body = f.current
	if p.file {
		f.files++
	} else {
		f.fields++
	}
	switch {
	case f.files > f.limits.MaxFiles:
		return nil, failf(TooLarge, "more than %d files", f.limits.MaxFiles)
	case f.fields > f.limits.MaxFields:
		return nil, failf(TooLarge, "more than %d fields", f.limits.MaxFields)
	}
	return p, nil
}

// plainEncoding refuses an encoded part. RFC 7578 section 4.7 deprecates encodings, and decoding
// yields other bytes than filters in front of this server have seen.
func plainEncoding(encoding string) error {
	switch strings.ToLower(encoding) {
	case "", "7bit", "8bit", "binary":
		return nil
	default:
		return failf(BadContent, "a part has a Content-Transfer-Encoding: send the part without one")
	}
}

// oneMore returns the number of bytes to read in order to detect more than limit.
func oneMore(limit int64) int64 { return min(limit, math.MaxInt64-1) + 1 }

// value returns the value of a field.
func (f *form) value(p *part) (string, error) {
	b, err := io.ReadAll(io.LimitReader(p.body, oneMore(f.limits.MaxFieldSize)))
	if err != nil {
		return "", bodyFailure(err)
	}
	if int64(len(b)) > f.limits.MaxFieldSize {
		return "", failf(TooLarge, "a field is larger than %s", bytesize.Format(f.limits.MaxFieldSize))
	}
	return string(b), nil
}

func headerSize(header textproto.MIMEHeader) int64 {
	var n int64
	for name, values := range header {
		for _, value := range values {
			n += int64(len(name) + len(value) + len(": \r\n"))
		}
	}
	return n
}

// truncated is a reader for the end of a truncated body. It returns io.ErrUnexpectedEOF.
type truncated struct{}

func (truncated) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// headerGuard bounds the bytes that the multipart reader reads for the next part and its header.
// The multipart reader's own bound is 10 MiB.
type headerGuard struct {
	r       io.Reader
	left    int64
	armed   bool
	tripped bool
	err     error // of r, which the multipart reader may hide
}

// guardSlack is how far the multipart reader may read ahead beyond a header.
const guardSlack = 8 << 10

func (g *headerGuard) arm(limit int64) {
	g.left, g.armed, g.tripped = min(limit, math.MaxInt64-guardSlack)+guardSlack, true, false
}

func (g *headerGuard) disarm() (tripped bool) {
	g.armed = false
	return g.tripped
}

func (g *headerGuard) Read(p []byte) (int, error) {
	if g.armed {
		if g.left <= 0 {
			g.tripped = true
			return 0, io.ErrUnexpectedEOF
		}
		p = p[:min(int64(len(p)), g.left)]
	}
	n, err := g.r.Read(p)
	if g.armed {
		g.left -= int64(n)
	}
	if err != nil {
		g.err = err
	}
	return n, err
}
