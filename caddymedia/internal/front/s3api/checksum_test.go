package s3api_test

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// algorithms are those of checksums, by the names in their elements.
var algorithms = map[string]func() hash.Hash{
	"CRC32":     func() hash.Hash { return crc32.NewIEEE() },
	"CRC32C":    func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
	"CRC64NVME": func() hash.Hash { return crc64.New(crc64.MakeTable(0x9a6c9329ac4bc9b5)) },
	"SHA1":      sha1.New,
	"SHA256":    sha256.New,
}

func checksumOf(algorithm string, b []byte) []byte {
	h := algorithms[algorithm]()
	h.Write(b)
	return h.Sum(nil)
}

// TestCompletionChecks: what a client says of the parts and of the object at the end must be true,
// and nothing is stored if it is not.
func TestCompletionChecks(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	parts := [][]byte{randomBytes(5 << 20), randomBytes(5<<20 + 77), []byte("the end")}
	whole := bytes.Join(parts, nil)
	// complete stores an object of the parts. They are sent with a checksum, or only the upload has an
	// algorithm.
	complete := func(declared, sent string, header http.Header, element func(i int) string) answer {
		const target = docs + "/a.bin"
		created := f.do(t, call{method: http.MethodPost, key: target, query: "uploads=", header: http.Header{"X-Amz-Checksum-Algorithm": {declared}}})
		id := created.uploadID(t)
		var list strings.Builder
		for i, part := range parts {
			c := call{method: http.MethodPut, key: target, query: fmt.Sprintf("partNumber=%d&uploadId=%s", i+1, id), body: string(part)}
			if sent != "" {
				c.header = http.Header{"X-Amz-Checksum-" + sent: {base64.StdEncoding.EncodeToString(checksumOf(sent, part))}}
			}
			a := f.do(t, c)
			fmt.Fprintf(&list, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag>%s</Part>", i+1, a.header.Get("ETag"), element(i))
		}
		return f.do(t, call{method: http.MethodPost, key: target, query: "uploadId=" + id, header: header, body: "<CompleteMultipartUpload>" + list.String() + "</CompleteMultipartUpload>"})
	}
	none := func(int) string { return "" }
	check := func(name string, a answer, code string) {
		t.Helper()
		stored := f.taken(t)
		for key := range stored {
			if strings.HasPrefix(key, "@uploads/") {
				delete(stored, key)
			}
		}
		if a.Code != code || (code == "") != (stored["file/docs/a.bin"] == string(whole)) {
			t.Errorf("%s: %d %s %s, want %q; stored are %d", name, a.status, a.Code, a.Message, code, len(stored))
		}
	}
	for algorithm := range algorithms {
		of := func(b []byte) string { return base64.StdEncoding.EncodeToString(checksumOf(algorithm, b)) }
		element := func(sum string) string { return fmt.Sprintf("<Checksum%[1]s>%[2]s</Checksum%[1]s>", algorithm, sum) }
		right := func(i int) string { return element(of(parts[i])) }
		header := func(sum, kind string) http.Header {
			h := http.Header{}
			h.Set("X-Amz-Checksum-"+algorithm, sum)
			if kind != "" {
				h.Set("X-Amz-Checksum-Type", kind)
			}
			return h
		}
		check(algorithm+" of parts", complete("", algorithm, nil, right), "")
		check(algorithm+" of parts that were sent without", complete(algorithm, "", nil, right), "")
		check(algorithm+" of parts that is not known", complete("", "", nil, right), "InvalidRequest")
		check(algorithm+" of another part", complete("", algorithm, nil, func(int) string { return element(of(parts[1])) }), "BadDigest")
		joined := slices.Concat(checksumOf(algorithm, parts[0]), checksumOf(algorithm, parts[1]), checksumOf(algorithm, parts[2]))
		check(algorithm+" of all parts", complete("", algorithm, header(of(joined), "COMPOSITE"), none), "")
		check(algorithm+" of all parts with their number", complete(algorithm, "", header(of(joined)+"-3", ""), none), "")
		check(algorithm+" of all parts with another number", complete(algorithm, "", header(of(joined)+"-2", ""), none), "BadDigest")
		full, other := "", "BadDigest"
		if strings.HasPrefix(algorithm, "SHA") {
			full, other = "InvalidRequest", "InvalidRequest"
		}
		check(algorithm+" of the object", complete(algorithm, "", header(of(whole), "FULL_OBJECT"), none), full)
		check(algorithm+" of another object", complete(algorithm, "", header(of(joined), "FULL_OBJECT"), none), other)
		check(algorithm+" of an object that is not known", complete("", "", header(of(whole), ""), none), "InvalidRequest")
		check(algorithm+" of no kind", complete("", algorithm, header(of(whole), "x"), none), "InvalidArgument")
	}
	for size, code := range map[string]string{fmt.Sprint(len(whole)): "", fmt.Sprint(len(whole) - 1): "InvalidRequest", "-1": "InvalidArgument", "x": "InvalidArgument"} {
		check("size "+size, complete("", "", http.Header{"X-Amz-Mp-Object-Size": {size}}, none), code)
	}
	a := f.do(t, call{method: http.MethodPost, key: docs + "/a.bin", query: "uploads=", header: http.Header{"X-Amz-Checksum-Algorithm": {"MD5"}}})
	if a.Code != "InvalidRequest" {
		t.Errorf("an unknown algorithm: %d %s", a.status, a.body)
	}
}
