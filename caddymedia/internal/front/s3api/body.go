package s3api

import (
	"bufio"
	"crypto/md5"  //nolint:gosec // Content-MD5 detects damage only
	"crypto/sha1" //nolint:gosec // so does a checksum of the client's choice
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The forms of a body in x-amz-content-sha256, besides the hash of the whole body.
const (
	unsignedPayload        = "UNSIGNED-PAYLOAD"
	streamingSigned        = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	streamingSignedTrailer = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	streamingTrailer       = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

// nvme is the polynomial of CRC-64/NVME, reflected.
const nvme = 0x9a6c9329ac4bc9b5

// The tables of the polynomials of CRC-64/NVME and of CRC-32C.
var (
	crc64NVME = crc64.MakeTable(nvme)
	crc32C    = crc32.MakeTable(crc32.Castagnoli)
)

// checksums are the algorithms of x-amz-checksum-<name>.
var checksums = map[string]func() hash.Hash{
	"crc32":     func() hash.Hash { return crc32.NewIEEE() },
	"crc32c":    func() hash.Hash { return crc32.New(crc32C) },
	"crc64nvme": func() hash.Hash { return crc64.New(crc64NVME) },
	"sha1":      sha1.New,
	"sha256":    sha256.New,
}

const checksumPrefix = "X-Amz-Checksum-"

// body is the decoded body of a request. Its last Read returns an [*Error] in place of io.EOF if a
// signature, a hash, a checksum or the length of the body is wrong: what was read before must not
// be used then.
type body struct {
	io.Reader
	checks []check
	left   int64 // bytes that are still expected; negative if the length is not known
	err    error

	trailer map[string]string // the headers behind the body
}

// check is a hash of the body and what it must be.
type check struct {
	hash.Hash
	name   string // of a checksum, empty for others
	sum    []byte // nil if it is in the trailer
	failed *Error
}

// bodyOf returns the decoded body of a request with a verified signature. Its length is negative if
// it is not known before the end.
func bodyOf(r *http.Request, s *signature, secret string) (*body, int64, *Error) {
	b, failed := signedBody(r, s, secret)
	if failed == nil {
		failed = b.expectSent(r.Header)
	}
	if failed != nil {
		return nil, 0, failed
	}
	return b, b.left, nil
}

// signedBody is bodyOf without the checksums that the client sends besides: those of a completion
// are of the object.
func signedBody(r *http.Request, s *signature, secret string) (*body, *Error) {
	b := &body{Reader: r.Body, left: r.ContentLength, trailer: map[string]string{}}
	if !strings.HasPrefix(s.payload, "STREAMING-") && one(r.Header, "X-Amz-Decoded-Content-Length") != "" {
		return nil, errorOf(invalidRequest, "x-amz-content-sha256 does not say that the body is in chunks: send it without the header x-amz-decoded-content-length")
	}
	switch s.payload {
	case unsignedPayload:
	case streamingSigned, streamingSignedTrailer, streamingTrailer:
		length, err := strconv.ParseInt(one(r.Header, "X-Amz-Decoded-Content-Length"), 10, 64)
		if err != nil || length < 0 {
			return nil, errorOf(invalidRequest, "the header x-amz-decoded-content-length is missing or wrong")
		}
		b.left = length
		c := &chunks{in: bufio.NewReaderSize(r.Body, chunkBuffer), trailer: b.trailer, names: trailerNames(r.Header)}
		if s.payload != streamingTrailer {
			c.signer, c.key, c.previous = s, s.key(secret), s.sum
		}
		c.hasTrailer = s.payload != streamingSigned
		b.Reader = c
	default:
		sum, err := hex.DecodeString(s.payload)
		if err != nil || len(sum) != sha256.Size {
			return nil, errorOf(invalidRequest, "the header x-amz-content-sha256 is no hash and no form of a body that is known here")
		}
		b.checks = append(b.checks, check{sha256.New(), "", sum, errorOf(contentMismatch, "the body is not that of x-amz-content-sha256")})
	}
	return b, nil
}

// expectSent adds the checks of Content-MD5, and of checksums in headers and trailers.
func (b *body) expectSent(header http.Header) *Error {
	if sent, ok := header["Content-Md5"]; ok {
		sum, err := base64.StdEncoding.DecodeString(sent[0])
		if err != nil || len(sum) != md5.Size || len(sent) > 1 {
			return errorOf(invalidDigest, "Content-MD5 is no MD5 in base64")
		}
		b.checks = append(b.checks, check{md5.New(), "", sum, errorOf(badDigest, "the body is not that of Content-MD5")}) //nolint:gosec // see the import
	}
	for name, algorithm := range checksums {
		sent := header[http.CanonicalHeaderKey(checksumPrefix+name)]
		if sent == nil && !slices.Contains(trailerNames(header), "x-amz-checksum-"+name) {
			continue
		}
		c := check{algorithm(), name, nil, errorOf(badDigest, "the body is not that of x-amz-checksum-"+name)}
		if sent != nil {
			if c.sum = c.decode(sent[0]); c.sum == nil || len(sent) > 1 {
				return errorOf(invalidRequest, "the value of x-amz-checksum-"+name+" is no checksum of this kind")
			}
		}
		b.checks = append(b.checks, c)
	}
	return nil
}

// decode returns the sum in a header or trailer; nil if it is none of the kind.
func (c *check) decode(text string) []byte {
	sum, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sum) != c.Size() {
		return nil
	}
	return sum
}

// trailerNames returns the names in the header x-amz-trailer, in lower case.
func trailerNames(header http.Header) []string {
	var names []string
	for _, value := range header["X-Amz-Trailer"] {
		for name := range strings.SplitSeq(value, ",") {
			names = append(names, strings.ToLower(strings.TrimSpace(name)))
		}
	}
	return names
}

// Read reads the decoded bytes.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.Reader.Read(p)
	for _, c := range b.checks {
		_, _ = c.Write(p[:n]) // a hash never fails
	}
	if b.left >= 0 {
		if b.left -= int64(n); b.left < 0 {
			err = errorOf(incompleteBody, "the body is longer than it says")
			n, b.left = 0, 0
		}
	}
	if errors.Is(err, io.EOF) {
		err = b.end()
	}
	b.err = err
	return n, err
}

// end returns io.EOF, or the error of a body that is not as it was sent.
func (b *body) end() error {
	if b.left > 0 {
		return errorOf(incompleteBody, "the body is shorter than it says")
	}
	for _, c := range b.checks {
		if c.sum == nil {
			if c.sum = c.decode(b.trailer["x-amz-checksum-"+c.name]); c.sum == nil {
				return errorOf(invalidRequest, "the trailer x-amz-checksum-"+c.name+" is missing or wrong")
			}
		}
		if subtle.ConstantTimeCompare(c.Sum(nil), c.sum) != 1 {
			return c.failed
		}
	}
	return io.EOF
}

// sums returns the checksums of a body that was read to its end, by their algorithms.
func (b *body) sums() map[string]string {
	sums := map[string]string{}
	for _, c := range b.checks {
		if c.name != "" {
			sums[c.name] = base64.StdEncoding.EncodeToString(c.Sum(nil))
		}
	}
	return sums
}

const (
	chunkBuffer = 32 << 10
	// maxTrailers bounds the headers behind a body.
	maxTrailers = 16
)

// chunks reads the form aws-chunked,
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html. The signature of a chunk is
// known to be right only after its last byte.
type chunks struct {
	in         *bufio.Reader
	signer     *signature // nil if chunks are not signed
	key        []byte
	previous   string // the signature before that of the present chunk
	sum        hash.Hash
	wanted     string // the signature of the present chunk
	left       int64  // bytes of the present chunk
	begun      bool
	hasTrailer bool
	names      []string // of the trailers
	trailer    map[string]string
	err        error
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.err == nil && c.left == 0 {
		c.err = c.next()
	}
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.in.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if c.signer != nil {
		c.sum.Write(p[:n])
	}
	if errors.Is(err, io.EOF) {
		err = errCut
	}
	c.err = err
	return n, err
}

var (
	errCut   = errorOf(incompleteBody, "the body ends before its last chunk")
	errChunk = errorOf(invalidRequest, "the body is not of the form aws-chunked")
)

// next ends the present chunk and begins the next one. The error is io.EOF after the last one.
func (c *chunks) next() error {
	if c.begun {
		if failed := c.endChunk(); failed != nil {
			return failed
		}
	}
	c.begun = true
	line, failed := c.line()
	if failed != nil {
		return failed
	}
	size, extension, _ := strings.Cut(line, ";")
	length, err := strconv.ParseInt(size, 16, 64)
	if err != nil || length < 0 || size[0] == '+' {
		return errChunk
	}
	c.left = length
	if c.signer != nil {
		var ok bool
		if c.wanted, ok = strings.CutPrefix(extension, "chunk-signature="); !ok {
			return errChunk
		}
		c.sum = sha256.New()
	}
	if length > 0 {
		return nil
	}
	return c.last()
}

// endChunk reads the line break behind the bytes of a chunk, and checks their signature.
func (c *chunks) endChunk() error {
	if line, failed := c.line(); failed != nil {
		return failed
	} else if line != "" {
		return errChunk
	}
	return c.checkChunk()
}

func (c *chunks) checkChunk() error {
	if c.signer == nil {
		return nil
	}
	return c.match(c.wanted, "AWS4-HMAC-SHA256-PAYLOAD\n"+c.signer.at.Format(timeFormat)+"\n"+c.signer.credentialScope()+"\n"+
		c.previous+"\n"+sumOf("")+"\n"+hex.EncodeToString(c.sum.Sum(nil)))
}

// match returns an error unless sum is the signature of text. It is the previous one of the next.
func (c *chunks) match(sum, text string) error {
	c.previous = hex.EncodeToString(keyed(c.key, text))
	if subtle.ConstantTimeCompare([]byte(c.previous), []byte(sum)) != 1 {
		return errorOf(signatureDoesNotMatch, "the signature of a chunk or of the trailer is wrong")
	}
	return nil
}

// last reads what follows the last chunk.
func (c *chunks) last() error {
	if err := c.checkChunk(); err != nil {
		return err
	}
	var signed strings.Builder
	sent := ""
	for lines := 0; ; lines++ {
		line, failed := c.line()
		switch {
		case failed != nil && !c.hasTrailer && errors.Is(failed, errCut): // some clients send no line break here
			return io.EOF
		case failed != nil:
			return failed
		case line == "":
			return c.endTrailer(sent, signed.String())
		case !c.hasTrailer || lines == maxTrailers:
			return errChunk
		}
		name, value, ok := strings.Cut(line, ":")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch {
		case !ok:
			return errChunk
		case name == "x-amz-trailer-signature":
			sent = value
			continue
		case !slices.Contains(c.names, name):
			return errorOf(invalidRequest, "the header x-amz-trailer does not name a trailer of the body")
		}
		if _, twice := c.trailer[name]; twice {
			return errChunk
		}
		c.trailer[name] = value
		signed.WriteString(name + ":" + value + "\n")
	}
}

// endTrailer checks the signature of the trailer.
func (c *chunks) endTrailer(sent, text string) error {
	if c.signer == nil || !c.hasTrailer {
		return io.EOF
	}
	err := c.match(sent, "AWS4-HMAC-SHA256-TRAILER\n"+c.signer.at.Format(timeFormat)+"\n"+c.signer.credentialScope()+"\n"+
		c.previous+"\n"+sumOf(text))
	if err != nil {
		return err
	}
	return io.EOF
}

// line reads a line, without its end.
func (c *chunks) line() (string, error) {
	line, err := c.in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", errChunk
	case errors.Is(err, io.EOF):
		return "", errCut
	case err != nil:
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), nil
}
