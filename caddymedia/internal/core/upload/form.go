package upload

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caddymedia/media/caddymedia/internal/leaf/bytesize"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
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

// Sizes of the buffers before and behind the multipart reader, which reads and returns only 4 KiB
// at a time. Large reads and writes save system calls: with a reader of 64 KiB a large file takes 5
// to 10 % more processor time.
const (
	readerSize = 256 << 10
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

// urlField is the name of the fields with addresses to import. They count as files.
const urlField = "url"

// newForm returns the form of body. It skips at most skippable bytes of refused parts in all.
func newForm(body io.Reader, boundary string, limits Limits, skippable int64) *form {
	buffer := readers.Get().(*bufio.Reader) // the pool holds nothing else
	buffer.Reset(body)
	// The multipart reader accepts the end of the body within a header. Therefore it never sees
	// io.EOF: it does not read beyond the last boundary, and anywhere else the body is truncated.
	// The line break is for a last boundary without one.
	guard := &headerGuard{r: io.MultiReader(buffer, strings.NewReader("\r\n"))}
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
	g := f.guard
	g.left, g.armed, g.tripped = min(f.limits.MaxPartHeader, math.MaxInt64-guardSlack)+guardSlack, true, false
	var err error
	f.current, err = f.parts.NextRawPart()
	g.armed = false
	switch {
	case g.tripped || err == nil && headerSize(f.current.Header) > f.limits.MaxPartHeader:
		return nil, item.Failf(item.TooLarge, "the header of a part is larger than %s", bytesize.Format(f.limits.MaxPartHeader))
	case err == io.EOF: // the end is io.EOF itself; a wrapped one is a truncated body
		// net/http notices that a client disconnects only after the body is read to its end.
		_, _ = io.Copy(io.Discard, f.buffer)
		return nil, io.EOF
	case g.err != nil: // the multipart reader may hide it
		return nil, bodyFailure(g.err)
	case err != nil:
		return nil, bodyFailure(err)
	}
	return f.describe()
}

// describe returns the current part, and counts it.
func (f *form) describe() (*part, error) {
	p, failure := parseDisposition(f.current.Header.Get("Content-Disposition"))
	if failure != nil {
		return nil, failure
	}
	switch strings.ToLower(f.current.Header.Get("Content-Transfer-Encoding")) {
	case "", "7bit", "8bit", "binary":
	default:
		// RFC 7578 section 4.7 deprecates encodings, and decoding yields other bytes than filters
		// in front of this server have seen.
		return nil, item.Failf(item.BadContent, "a part has a Content-Transfer-Encoding: send the part without one")
	}
	p.body = f.current
	if p.file || p.name == urlField {
		f.files++
	} else {
		f.fields++
	}
	switch {
	case f.files > f.limits.MaxFiles:
		return nil, item.Failf(item.TooLarge, "more than %d files", f.limits.MaxFiles)
	case f.fields > f.limits.MaxFields:
		return nil, item.Failf(item.TooLarge, "more than %d fields", f.limits.MaxFields)
	}
	return p, nil
}

// oneMore returns the number of bytes to read in order to detect more than limit.
func oneMore(limit int64) int64 { return min(limit, math.MaxInt64-1) + 1 }

// value returns the value of a field in UTF-8. One of another declared character set is decoded,
// and one of an unknown character set is returned as it is.
func (f *form) value(p *part) (string, error) {
	b, err := io.ReadAll(io.LimitReader(p.body, oneMore(f.limits.MaxFieldSize)))
	if err != nil {
		return "", bodyFailure(err)
	}
	if int64(len(b)) > f.limits.MaxFieldSize {
		return "", item.Failf(item.TooLarge, "a field is larger than %s", bytesize.Format(f.limits.MaxFieldSize))
	}
	if !utf8.Valid(b) {
		_, params, _ := mime.ParseMediaType(f.current.Header.Get("Content-Type")) // one that is malformed declares nothing
		if decoded, err := naming.FromCharset(params["charset"], string(b)); err == nil {
			return decoded, nil
		}
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

// headerGuard bounds the bytes that the multipart reader reads for the next part and its header.
// The multipart reader's own bound is 10 MiB. The end of r is io.ErrUnexpectedEOF.
type headerGuard struct {
	r       io.Reader
	left    int64
	armed   bool
	tripped bool
	err     error // of r, which the multipart reader may hide
}

// guardSlack is how far the multipart reader may read ahead beyond a header.
const guardSlack = 8 << 10

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
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		g.err = err
	}
	return n, err
}

func tooLarge(limit int64) *item.Failure {
	return item.Failf(item.TooLarge, "larger than %s", bytesize.Format(limit))
}

// bodyFailure returns the failure for an error of reading a form.
func bodyFailure(err error) *item.Failure {
	return requestFailure(err, "the body is no valid multipart form")
}

// rawBodyFailure returns the failure for an error of reading a body that is a file.
func rawBodyFailure(err error) *item.Failure {
	return requestFailure(err, "the body could not be read to its end")
}

// requestFailure returns the failure for an error of reading a request. otherwise is the message of
// an unknown error.
func requestFailure(err error, otherwise string) *item.Failure {
	var (
		tooLarge *http.MaxBytesError
		known    *item.Failure
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooLarge):
		return item.Failf(item.TooLarge, "the request is larger than %s", bytesize.Format(tooLarge.Limit))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &item.Failure{Reason: item.BadRequest, Message: "the upload stood still for too long", Err: err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &item.Failure{Reason: item.BadRequest, Message: "the body ends too early", Err: err}
	default:
		return &item.Failure{Reason: item.BadRequest, Message: otherwise, Err: err}
	}
}

// sourceFailure returns the failure for an error of reading a single file.
func sourceFailure(err error) *item.Failure {
	if why, ok := errors.AsType[*item.Failure](err); ok {
		return why
	}
	return &item.Failure{Reason: item.BadRequest, Message: "the item could not be read to its end", Err: err}
}

// baseName returns the file name without the client's encodings and folders.
func (p *part) baseName() string { return naming.FileNameOf(p.filename) }

// FormFilename returns the file name in the Content-Disposition header of a part of a form, without
// the client's encodings and folders. It is empty if the part is not a file.
func FormFilename(disposition string) (string, *item.Failure) {
	p, failure := parseDisposition(disposition)
	if failure != nil {
		return "", failure
	}
	return p.baseName(), nil
}

// parseDisposition returns the part that a Content-Disposition header describes, without its body.
func parseDisposition(header string) (*part, *item.Failure) {
	disposition, params, err := mime.ParseMediaType(header)
	if err != nil || disposition != "form-data" {
		return nil, item.Failf(item.BadRequest, "a part has no valid Content-Disposition of form-data: quote its name and filename")
	}
	p := &part{name: params["name"]}
	p.filename, p.file = params["filename"]
	extended, found, err := naming.ExtendedName(header)
	switch {
	case err != nil:
		return nil, &item.Failure{Reason: item.BadRequest, Message: err.Error()}
	case found:
		p.filename, p.file = extended, true
	default:
		p.filename = naming.UnescapeForm(p.filename)
	}
	return p, nil
}

// PieceOf returns the failure of a request whose header, or fields, say that it has a piece of a
// file. Clients that send files in pieces take each success for one of theirs. It returns nil for
// other requests.
func PieceOf(kind item.Kind, header http.Header, fields url.Values) *item.Failure {
	hasPiece := len(header.Values("Content-Range"))+len(header.Values("Upload-Offset")) > 0
	for name, values := range fields {
		for _, value := range values {
			hasPiece = hasPiece || isPiece(name, value)
		}
	}
	if hasPiece {
		return pieceFailure(kind)
	}
	return nil
}

func pieceFailure(kind item.Kind) *item.Failure {
	return item.Failf(item.BadRequest, "the request has a piece of a file: send the whole file, without Content-Range or chunks, "+
		"or use /api/upload/%s/resumable", kind.Name())
}

// pieceTotals matches the fields with the number of pieces of a file: those of Plupload, Dropzone,
// Resumable.js, Flow.js, simple-uploader, Syncfusion and FineUploader.
var pieceTotals = regexp.MustCompile(`(?i)^(chunks|(dz|resumable|flow|metadata\.)?total[-_]?chunks?(count)?|qqtotalparts)$`)

// isPiece reports whether a field says that the file is one of several pieces. A single piece is a
// whole file.
func isPiece(name, value string) bool {
	total := value
	switch {
	case name == "metadata", name == "chunkMetadata": // of Kendo, Telerik and DevExtreme
		var metadata struct{ TotalChunks, TotalCount json.Number }
		_ = json.Unmarshal([]byte(value), &metadata) // other clients have other metadata
		total = max(metadata.TotalChunks.String(), metadata.TotalCount.String())
	case !pieceTotals.MatchString(name):
		return false
	}
	n, err := strconv.Atoi(strings.TrimSpace(total))
	return err == nil && n > 1
}
