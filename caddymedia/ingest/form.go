package ingest

import (
	"bufio"
	"errors"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/textproto"
	"regexp"
	"strings"
	"sync"
)

// Limits of one request.
type Limits struct {
	// MaxFiles and MaxFields are the most parts of each sort.
	MaxFiles, MaxFields int
	// MaxFieldSize is the most bytes of a field's value.
	MaxFieldSize int64
	// MaxPartHeader is the most bytes of a part's header.
	MaxPartHeader int64
}

// bufferSize is the size of the buffers before and behind the multipart reader, which by itself
// reads and returns 4 KiB at a time. If system calls are expensive, 256 KiB are half as fast again
// as 64 KiB. If the processor's cache is small, they are a little slower.
const bufferSize = 256 << 10

var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, bufferSize) }}

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

// part is one part of a form: a file where its header has a file name.
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
	// The multipart reader accepts the end of the body within a header. So it never sees io.EOF: it
	// does not read beyond the last boundary, and anywhere else the body is truncated. The line
	// break is for a last boundary without one.
	guard := &headerGuard{r: io.MultiReader(buffer, strings.NewReader("\r\n"), truncated{})}
	return &form{limits: limits, buffer: buffer, guard: guard, parts: multipart.NewReader(guard, boundary), skippable: skippable}
}

func (f *form) close() {
	f.buffer.Reset(nil)
	readers.Put(f.buffer)
	f.buffer = nil
}

// errSkipLimit means that the rest of the form is behind too many bytes of refused parts.
var errSkipLimit = errors.New("the rest of the form is not read")

// next returns the next part, io.EOF after the last one. It skips the rest of the part before, or
// returns errSkipLimit. Other errors are *Failure.
func (f *form) next() (*part, error) {
	if f.current != nil {
		// NextRawPart would do it too, but against the guard.
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
		return nil, failf(TooLarge, "the header of a part is larger than %d bytes", f.limits.MaxPartHeader)
	case err == io.EOF: // the end is io.EOF itself; a wrapped one is a truncated body
		// A server notices that its client leaves only after the end of the body.
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
	disposition, params, err := mime.ParseMediaType(f.current.Header.Get("Content-Disposition"))
	if err != nil || disposition != "form-data" {
		return nil, failf(BadRequest, "a part has no valid Content-Disposition of form-data")
	}
	if err := plainEncoding(f.current.Header.Get("Content-Transfer-Encoding")); err != nil {
		return nil, err
	}
	if twoNames(f.current.Header.Get("Content-Disposition"), params["filename"]) {
		return nil, failf(BadRequest, "a part has different names in filename and filename*: send one")
	}
	p := &part{name: params["name"], body: f.current}
	p.filename, p.file = params["filename"]
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

// extendedName is the parameter of RFC 5987, and the pieces of one of RFC 2231.
var extendedName = regexp.MustCompile(`(?i)filename\*`)

// twoNames reports whether a header has another file name in the extended form, which RFC 7578
// section 4.2 forbids. The parser prefers it to the plain one, filters may not. Some clients send
// both forms of one name, and encode the plain one by RFC 2047.
func twoNames(disposition, name string) bool {
	if !extendedName.MatchString(disposition) {
		return false
	}
	const other = "extended"
	_, params, err := mime.ParseMediaType(extendedName.ReplaceAllString(disposition, other+"*"))
	if err != nil {
		return false
	}
	plain, hasPlain := params["filename"]
	_, hasExtended := params[other]
	if !hasPlain || !hasExtended || plain == name {
		return false
	}
	decoded, err := new(mime.WordDecoder).DecodeHeader(plain)
	return err != nil || decoded != name
}

// oneMore is the number of bytes to read in order to notice more than limit.
func oneMore(limit int64) int64 { return min(limit, math.MaxInt64-1) + 1 }

// value reads a field.
func (f *form) value(p *part) (string, error) {
	b, err := io.ReadAll(io.LimitReader(p.body, oneMore(f.limits.MaxFieldSize)))
	if err != nil {
		return "", bodyFailure(err)
	}
	if int64(len(b)) > f.limits.MaxFieldSize {
		return "", failf(TooLarge, "a field is larger than %d bytes", f.limits.MaxFieldSize)
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

// truncated is the end of a body that is read too far.
type truncated struct{}

func (truncated) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// headerGuard bounds the bytes that the multipart reader reads for the next part and its header. By
// itself it reads up to 10 MiB.
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
