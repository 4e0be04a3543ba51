package tus

import (
	"crypto/sha1" //nolint:gosec // the protocol demands it
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
)

// Bounds of the headers of a creation.
const (
	maxMetadata = 8 << 10
	maxParts    = 300 // of IDs alone, as many as fit into the headers that Caddy accepts
	maxConcat   = 128 << 10
)

// readConcat reads the header Upload-Concat.
func readConcat(header http.Header, rec *resumable.Record) error {
	value, err := single(header, headerConcat)
	if err != nil || value == "" {
		return err
	}
	if value == "partial" {
		rec.Form = resumable.Partial
		return nil
	}
	if len(value) > maxConcat || !isHeaderText(value) {
		return badRequest("Upload-Concat is larger than 128 KiB, or is no text")
	}
	list, ok := strings.CutPrefix(value, "final;")
	parts := strings.Fields(list)
	if !ok || len(parts) == 0 || len(parts) > maxParts {
		return badRequest(`Upload-Concat is "partial", or "final;" and up to 300 addresses`)
	}
	rec.Form, rec.Concat = resumable.Final, value
	for _, part := range parts {
		address, err := url.Parse(part)
		if err != nil {
			return badRequest("Upload-Concat has an invalid address")
		}
		rec.Parts = append(rec.Parts, path.Base(address.Path))
	}
	return nil
}

// readLength reads the headers Upload-Length and Upload-Defer-Length.
func readLength(header http.Header, rec *resumable.Record) error {
	text, err := single(header, headerLength)
	if err != nil {
		return err
	}
	deferred, err := single(header, headerDeferLength)
	switch {
	case err != nil:
		return err
	case deferred != "" && deferred != "1":
		return badRequest("the value of Upload-Defer-Length is 1")
	case rec.Form == resumable.Final && (text != "" || deferred != ""):
		return badRequest("a final upload has the length of its parts: leave out Upload-Length")
	case rec.Form == resumable.Final || deferred != "" && text == "":
		return nil
	case text == "" || deferred != "":
		return badRequest("send either Upload-Length or Upload-Defer-Length: 1")
	}
	rec.Length, err = number(headerLength, text)
	return err
}

// readMetadata reads the headers Upload-Metadata, and returns their pairs.
func readMetadata(header http.Header, rec *resumable.Record) (map[string]string, error) {
	value := joined(header, headerMetadata)
	if len(value) > maxMetadata {
		return nil, badRequest("Upload-Metadata is larger than 8 KiB")
	}
	if !isHeaderText(value) {
		return nil, badRequest("Upload-Metadata has control characters, or is no UTF-8")
	}
	rec.Metadata = value
	return parseMetadata(value)
}

// parseMetadata returns the pairs of the header Upload-Metadata.
func parseMetadata(header string) (map[string]string, error) {
	pairs := map[string]string{}
	if strings.TrimSpace(header) == "" {
		return pairs, nil
	}
	for pair := range strings.SplitSeq(header, ",") {
		key, encoded, _ := strings.Cut(strings.TrimSpace(pair), " ")
		value, err := base64.StdEncoding.DecodeString(encoded)
		if key == "" || err != nil {
			return nil, badRequest("Upload-Metadata is malformed: it consists of keys and values in Base64")
		}
		if _, twice := pairs[key]; twice {
			return nil, badRequest("Upload-Metadata has a key twice")
		}
		pairs[key] = string(value)
	}
	return pairs, nil
}

// readOffset reads the header Upload-Offset.
func readOffset(header http.Header) (int64, error) {
	text, err := single(header, headerOffset)
	if err != nil {
		return 0, err
	}
	if text == "" {
		return 0, badRequest("Upload-Offset is missing")
	}
	return number(headerOffset, text)
}

// readChecksum reads the header Upload-Checksum. sum is nil without one.
func readChecksum(header http.Header) (sum []byte, newHash func() hash.Hash, err error) {
	value, err := single(header, headerChecksum)
	if err != nil || value == "" {
		return nil, nil, err
	}
	algorithm, encoded, _ := strings.Cut(value, " ")
	switch algorithm {
	case "sha1":
		newHash = sha1.New
	case "sha256":
		newHash = sha256.New
	default:
		return nil, nil, badRequest("Upload-Checksum names an unknown algorithm: use " + strings.ReplaceAll(checksums, ",", " or "))
	}
	sum, err = base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(sum) != newHash().Size() {
		return nil, nil, badRequest("Upload-Checksum is malformed: it is an algorithm and a checksum in Base64")
	}
	return sum, newHash, nil
}

// hasBodyType reports whether the body of a request has bytes of an upload.
func hasBodyType(header http.Header) bool {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && mediaType == bodyType
}

// joined returns the values of a header as one, RFC 9110 section 5.3.
func joined(header http.Header, name string) string { return strings.Join(header.Values(name), ",") }

// single returns the value of a header that may be sent once; empty if it is not sent.
func single(header http.Header, name string) (string, error) {
	if len(header.Values(name)) > 1 {
		return "", badRequest(name + " is sent twice")
	}
	return header.Get(name), nil
}

// number returns the value of a header that is a non-negative integer. A larger one than the
// largest int64 is that.
func number(name, value string) (int64, error) {
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return 0, badRequest(name + " is no number of bytes")
	}
	n, _ := strconv.ParseInt(value, 10, 64) // out of range, it is the largest
	return n, nil
}

// isHeaderText reports whether a received value can be sent in a header and stored as JSON.
func isHeaderText(value string) bool {
	return utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl)
}
