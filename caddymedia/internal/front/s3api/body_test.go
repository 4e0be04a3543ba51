package s3api

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// amazon are the examples of Amazon's pages about chunks, with and without a trailer.
var amazon = struct {
	secret, seed, seedTrailer string
	chunks, trailerChunks     []string
	trailer                   string
}{
	secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
	seed:   "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
	chunks: []string{
		"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
		"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
		"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
	},
	seedTrailer: "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
	trailerChunks: []string{
		"b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
		"1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
		"2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
	},
	trailer: "x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n",
}

func amazonSignature(payload, sum string) *signature {
	return &signature{
		payload: payload, sum: sum, date: "20130524", region: "us-east-1",
		at: time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC),
	}
}

// signedChunks returns the body of 65 KiB in chunks of 64 KiB.
func signedChunks(signatures []string, trailer string) string {
	var b strings.Builder
	for i, size := range []int{64 << 10, 1 << 10, 0} {
		fmt.Fprintf(&b, "%x;chunk-signature=%s\r\n%s", size, signatures[i], strings.Repeat("a", size))
		if size > 0 {
			b.WriteString("\r\n")
		}
	}
	return b.String() + trailer + "\r\n"
}

// readBody returns the decoded body, or the code of its error.
func readBody(header http.Header, s *signature, secret, sent string, length int64, wrap func(io.Reader) io.Reader) (text, code string) {
	r := httptest.NewRequest(http.MethodPut, "/", io.NopCloser(wrap(strings.NewReader(sent))))
	r.Header, r.ContentLength = header, length
	b, _, failed := bodyOf(r, s, secret)
	if failed != nil {
		return "", failed.Code
	}
	all, err := io.ReadAll(b)
	if failed, ok := errors.AsType[*Error](err); ok {
		return string(all), failed.Code
	}
	if err != nil {
		return string(all), err.Error()
	}
	return string(all), ""
}

func whole(r io.Reader) io.Reader { return r }

func TestChunksOfAmazon(t *testing.T) {
	t.Parallel()
	want := strings.Repeat("a", 65<<10)
	header := http.Header{"X-Amz-Decoded-Content-Length": {"66560"}}
	withTrailer := http.Header{"X-Amz-Decoded-Content-Length": {"66560"}, "X-Amz-Trailer": {"x-amz-checksum-crc32c"}}
	for _, wrap := range []func(io.Reader) io.Reader{whole, iotest.HalfReader, iotest.DataErrReader} {
		text, code := readBody(header, amazonSignature(streamingSigned, amazon.seed), amazon.secret, signedChunks(amazon.chunks, ""), -1, wrap)
		if text != want || code != "" {
			t.Errorf("signed chunks: %d bytes, %q", len(text), code)
		}
		text, code = readBody(withTrailer, amazonSignature(streamingSignedTrailer, amazon.seedTrailer), amazon.secret, signedChunks(amazon.trailerChunks, amazon.trailer), -1, wrap)
		if text != want || code != "" {
			t.Errorf("signed chunks with a trailer: %d bytes, %q", len(text), code)
		}
	}
}

// TestAlteredChunks alters each part of bodies in chunks.
func TestAlteredChunks(t *testing.T) {
	t.Parallel()
	plain, trailed := signedChunks(amazon.chunks, ""), signedChunks(amazon.trailerChunks, amazon.trailer)
	swapped := "400;chunk-signature=" + amazon.chunks[1] + "\r\n" + strings.Repeat("a", 1<<10) + "\r\n" +
		"10000;chunk-signature=" + amazon.chunks[0] + "\r\n" + strings.Repeat("a", 64<<10) + "\r\n0;chunk-signature=" + amazon.chunks[2] + "\r\n\r\n"
	const checksum = "x-amz-checksum-crc32c:sOO8/Q==\r\n"
	for name, tt := range map[string]struct {
		sent    string
		trailer bool
		want    string
	}{
		"a byte":               {strings.Replace(plain, "aaa", "aba", 1), false, "SignatureDoesNotMatch"},
		"a byte at the end":    {strings.Replace(plain, "a\r\n0;", "b\r\n0;", 1), false, "SignatureDoesNotMatch"},
		"a signature":          {strings.Replace(plain, "ad80c7", "ad80c8", 1), false, "SignatureDoesNotMatch"},
		"the last signature":   {strings.Replace(plain, "b6c6ea", "b6c6eb", 1), false, "SignatureDoesNotMatch"},
		"another order":        {swapped, false, "SignatureDoesNotMatch"},
		"a chunk left out":     {plain[strings.Index(plain, "400;"):], false, "SignatureDoesNotMatch"},
		"cut in a chunk":       {plain[:1000], false, "IncompleteBody"},
		"cut before the last":  {plain[:strings.Index(plain, "0;chunk-signature=b6")], false, "IncompleteBody"},
		"cut in its signature": {plain[:len(plain)-20], false, "IncompleteBody"},
		"no signature":         {strings.Replace(plain, ";chunk-signature="+amazon.chunks[0], "", 1), false, "InvalidRequest"},
		"a wrong size":         {strings.Replace(plain, "10000;", "10001;", 1), false, "SignatureDoesNotMatch"},
		"a negative size":      {strings.Replace(plain, "10000;", "-1;", 1), false, "InvalidRequest"},
		"a huge size":          {strings.Replace(plain, "10000;", "fffffffffff;", 1), false, "IncompleteBody"},
		"no size at all":       {strings.Replace(plain, "10000;", "fffffffffffffffff;", 1), false, "InvalidRequest"},
		"a long line":          {strings.Repeat("1", 100<<10), false, "InvalidRequest"},
		"nothing":              {"", false, "IncompleteBody"},
		"a trailer":            {strings.TrimSuffix(plain, "\r\n") + "x-amz-a:b\r\n\r\n", false, "InvalidRequest"},
		"the checksum":         {strings.Replace(trailed, "sOO8", "sOO9", 1), true, "SignatureDoesNotMatch"},
		"the trailer's sum":    {strings.Replace(trailed, "d81f", "d81e", 1), true, "SignatureDoesNotMatch"},
		"no trailer":           {strings.Replace(trailed, amazon.trailer, "", 1), true, "SignatureDoesNotMatch"},
		"trailer not named":    {strings.Replace(trailed, "crc32c:", "crc32d:", 1), true, "InvalidRequest"},
		"trailer cut":          {trailed[:len(trailed)-2], true, "IncompleteBody"},
		"trailer twice":        {strings.Replace(trailed, checksum, checksum+checksum, 1), true, "InvalidRequest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, header := amazonSignature(streamingSigned, amazon.seed), http.Header{"X-Amz-Decoded-Content-Length": {"66560"}}
			if tt.trailer {
				s = amazonSignature(streamingSignedTrailer, amazon.seedTrailer)
				header["X-Amz-Trailer"] = []string{"x-amz-checksum-crc32c"}
			}
			if _, code := readBody(header, s, amazon.secret, tt.sent, -1, whole); code != tt.want {
				t.Errorf("code %q, want %q", code, tt.want)
			}
		})
	}
	for length, want := range map[string]string{"66559": "IncompleteBody", "66561": "IncompleteBody", "": "InvalidRequest", "-1": "InvalidRequest", "x": "InvalidRequest"} {
		header := http.Header{"X-Amz-Decoded-Content-Length": {length}}
		if _, code := readBody(header, amazonSignature(streamingSigned, amazon.seed), amazon.secret, plain, -1, whole); code != want {
			t.Errorf("decoded length %q: code %q, want %q", length, code, want)
		}
	}
}

// TestBodies sends bodies in all other forms, with checksums.
func TestBodies(t *testing.T) {
	t.Parallel()
	const text = "hello"
	sums := map[string]string{"X-Amz-Content-Sha256": ""}
	for name, algorithm := range checksums {
		h := algorithm()
		h.Write([]byte(text))
		sums[name] = base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
	if sums["crc32"] != "NhCmhg==" || sums["crc32c"] != "mnG7TA==" || sums["crc64nvme"] != "M3eFcAZSQlc=" {
		t.Errorf("checksums of %q: %v", text, sums)
	}
	digest := md5.Sum([]byte(text))
	right := base64.StdEncoding.EncodeToString(digest[:])
	wrong := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, md5.Size))
	const unsigned = "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:%s\r\n\r\n"
	trailer := http.Header{"X-Amz-Decoded-Content-Length": {"5"}, "X-Amz-Trailer": {"x-amz-checksum-crc32"}}
	type row struct {
		payload, sent string
		header        http.Header
		length        int64
		want          string
	}
	tests := map[string]row{
		"unsigned":                {unsignedPayload, text, nil, 5, ""},
		"of unknown length":       {unsignedPayload, text, nil, -1, ""},
		"cut":                     {unsignedPayload, "hell", nil, 5, "IncompleteBody"},
		"longer":                  {unsignedPayload, "hello!", nil, 5, "IncompleteBody"},
		"its hash":                {sumOf(text), text, nil, 5, ""},
		"another hash":            {sumOf("x"), text, nil, 5, "XAmzContentSHA256Mismatch"},
		"the hash of nothing":     {sumOf(""), "", nil, 0, ""},
		"no hash":                 {"x", text, nil, 5, "InvalidRequest"},
		"an unknown form":         {"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", text, nil, 5, "InvalidRequest"},
		"its MD5":                 {unsignedPayload, text, http.Header{"Content-Md5": {right}}, 5, ""},
		"another MD5":             {unsignedPayload, text, http.Header{"Content-Md5": {wrong}}, 5, "BadDigest"},
		"no MD5":                  {unsignedPayload, text, http.Header{"Content-Md5": {"x"}}, 5, "InvalidDigest"},
		"a trailer":               {streamingTrailer, fmt.Sprintf(unsigned, sums["crc32"]), trailer, -1, ""},
		"another trailer":         {streamingTrailer, fmt.Sprintf(unsigned, "AAAAAA=="), trailer, -1, "BadDigest"},
		"a trailer that is none":  {streamingTrailer, fmt.Sprintf(unsigned, "x"), trailer, -1, "InvalidRequest"},
		"a trailer that is lost":  {streamingTrailer, "5\r\nhello\r\n0\r\n\r\n", trailer, -1, "InvalidRequest"},
		"chunks that are cut off": {streamingTrailer, "5\r\nhello\r\n", trailer, -1, "IncompleteBody"},
	}
	for name := range checksums {
		canonical := http.CanonicalHeaderKey(checksumPrefix + name)
		tests[name] = row{unsignedPayload, text, http.Header{canonical: {sums[name]}}, 5, ""}
		tests[name+" of others"] = row{unsignedPayload, "hellO", http.Header{canonical: {sums[name]}}, 5, "BadDigest"}
		tests[name+" too short"] = row{unsignedPayload, text, http.Header{canonical: {"AA=="}}, 5, "InvalidRequest"}
		tests[name+" twice"] = row{unsignedPayload, text, http.Header{canonical: {sums[name], sums[name]}}, 5, "InvalidRequest"}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, code := readBody(tt.header, &signature{payload: tt.payload}, testSecret, tt.sent, tt.length, whole)
			if code != tt.want || code == "" && got != text && tt.sent != "" {
				t.Errorf("%q, code %q, want %q", got, code, tt.want)
			}
		})
	}
}

// FuzzChunks: of a body in chunks nothing is accepted but the bytes that are signed, or have the
// checksum of the trailer. It is small, because a fuzzer finds nothing in a large one.
func FuzzChunks(f *testing.F) {
	const text = "hello world"
	s := amazonSignature(streamingSignedTrailer, amazon.seed)
	scope := "\n" + s.at.Format(timeFormat) + "\n" + s.credentialScope() + "\n"
	sign := func(text string) string { return hex.EncodeToString(keyed(s.key(testSecret), text)) }
	var signed strings.Builder
	previous := s.sum
	for _, chunk := range []string{text[:5], text[5:], ""} {
		previous = sign(algorithm + "-PAYLOAD" + scope + previous + "\n" + sumOf("") + "\n" + sumOf(chunk))
		fmt.Fprintf(&signed, "%x;chunk-signature=%s\r\n%s", len(chunk), previous, chunk)
		if chunk != "" {
			signed.WriteString("\r\n")
		}
	}
	const trailer = "x-amz-checksum-crc32:DUoRhQ=="
	fmt.Fprintf(&signed, "%s\r\nx-amz-trailer-signature:%s\r\n\r\n", trailer, sign(algorithm+"-TRAILER"+scope+previous+"\n"+sumOf(trailer+"\n")))
	unsigned := "5\r\nhello\r\n6\r\n world\r\n0\r\n" + trailer + "\r\n\r\n"
	read := func(sent, payload string) (string, string) {
		s := amazonSignature(payload, amazon.seed)
		return readBody(http.Header{"X-Amz-Decoded-Content-Length": {"11"}, "X-Amz-Trailer": {"x-amz-checksum-crc32"}}, s, testSecret, sent, -1, whole)
	}
	for sent, payload := range map[string]string{signed.String(): streamingSignedTrailer, unsigned: streamingTrailer} {
		if got, code := read(sent, payload); got != text || code != "" {
			f.Fatalf("%s: %q, code %q", payload, got, code)
		}
		f.Add(sent)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		for _, payload := range []string{streamingSigned, streamingSignedTrailer} {
			if got, code := read(sent, payload); code == "" && got != text {
				t.Errorf("%s: %q was accepted", payload, sent)
			}
		}
		got, code := read(sent, streamingTrailer)
		sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(got))))
		if code == "" && (len(got) != len(text) || !strings.Contains(sent, sum)) {
			t.Errorf("%q was accepted as %q", sent, got)
		}
	})
}
