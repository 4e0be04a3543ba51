package s3api_test

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/storagedrivers/local"
)

// call is a request to a front, as no client would send it.
type call struct {
	method, key string // the key is the whole path: bucket and key
	query       string // as it is sent
	header      http.Header
	body        string
	payload     string // x-amz-content-sha256; default: the hash of the body
}

// answer is that of a front.
type answer struct {
	status        int
	header        http.Header
	body          string
	Code, Message string
}

// escaped encodes a path as signatures want it, whatever its bytes are.
func escaped(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

// request returns a request of the account of the front, signed by Amazon's library.
func (f *front) request(t *testing.T, c call) *http.Request {
	t.Helper()
	target := f.address + "/" + escaped(c.key)
	if c.query != "" {
		target += "?" + c.query
	}
	r, err := http.NewRequestWithContext(t.Context(), c.method, target, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(r.Header, c.header)
	r.Host = cmp.Or(c.header.Get("Host"), r.Host)
	if c.payload == "" {
		sum := sha256.Sum256([]byte(c.body))
		c.payload = hex.EncodeToString(sum[:])
	}
	r.Header.Set("X-Amz-Content-Sha256", c.payload)
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	credentials := aws.Credentials{AccessKeyID: f.key, SecretAccessKey: secret}
	if err := signer.SignHTTP(context.Background(), credentials, r, c.payload, "s3", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	return r
}

// do sends a signed request.
func (f *front) do(t *testing.T, c call) answer {
	t.Helper()
	return f.sent(t, f.request(t, c))
}

// sent sends a request.
func (f *front) sent(t *testing.T, r *http.Request) answer {
	t.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(body)}
	if a.status >= http.StatusBadRequest && a.body != "" {
		if err := xml.Unmarshal(body, &a); err != nil {
			t.Errorf("%s %s: %d %q: %v", r.Method, r.URL, a.status, body, err)
		}
	}
	return a
}

// streamed returns a signed request whose body is sent in chunks without a length. The body is set
// later.
func (f *front) streamed(t *testing.T, target, query, payload string, header http.Header) *http.Request {
	t.Helper()
	r := f.request(t, call{method: http.MethodPut, key: target, query: query, payload: payload, header: header})
	r.ContentLength = -1
	return r
}

// chunksOf returns a body in chunks that are signed as those of a request, with the last one, and
// the trailer with its signature. It is written after Amazon's page, not after the code.
func chunksOf(r *http.Request, trailer string, parts ...string) []string {
	_, previous, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
	at := r.Header.Get("X-Amz-Date")
	scope := at[:8] + "/us-east-1/s3/aws4_request"
	key := []byte("AWS4" + secret)
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, key)
		io.WriteString(h, text)
		return h.Sum(nil)
	}
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(part)
	}
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	var chunks []string
	for _, part := range append(parts, "") {
		previous = hex.EncodeToString(mac("AWS4-HMAC-SHA256-PAYLOAD\n" + at + "\n" + scope + "\n" + previous + "\n" + sum("") + "\n" + sum(part)))
		chunk := fmt.Sprintf("%x;chunk-signature=%s\r\n%s", len(part), previous, part)
		if part != "" {
			chunk += "\r\n"
		}
		chunks = append(chunks, chunk)
	}
	if trailer != "" {
		signed := strings.ReplaceAll(trailer, "\r\n", "\n")
		trailer += "x-amz-trailer-signature:" + hex.EncodeToString(mac("AWS4-HMAC-SHA256-TRAILER\n"+at+"\n"+scope+"\n"+previous+"\n"+sum(signed))) + "\r\n"
	}
	return append(chunks, trailer+"\r\n")
}

const (
	streamingSigned        = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	streamingSignedTrailer = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	streamingTrailer       = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

// TestChunksOnTheWire sends bodies whose chunks are altered on the way, as an object and as a part.
// Nothing is stored, and nothing staged is left.
func TestChunksOnTheWire(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("first ", 20_000), strings.Repeat("2", 1000)
	crc := func(text string) string {
		return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))))
	}
	sum := "x-amz-checksum-crc32:" + crc(first+second) + "\r\n"
	signed := func(change func(c []string, r, other *http.Request) []string) func(r, other *http.Request) string {
		return func(r, other *http.Request) string {
			return strings.Join(change(chunksOf(r, "", first, second), r, other), "")
		}
	}
	trailed := func(trailer string, change func(c []string) []string) func(r, other *http.Request) string {
		return func(r, _ *http.Request) string { return strings.Join(change(chunksOf(r, trailer, first, second)), "") }
	}
	same := func(c []string) []string { return c }
	unsigned := func(text string) func(r, other *http.Request) string {
		return func(_, _ *http.Request) string { return text }
	}
	plain := fmt.Sprintf("%x\r\n%s\r\n%x\r\n%s\r\n0\r\n", len(first), first, len(second), second)
	of := func(payload, length string, more http.Header) http.Header {
		header := http.Header{"X-Amz-Decoded-Content-Length": {length}}
		if payload != streamingSigned {
			header["X-Amz-Trailer"] = []string{"x-amz-checksum-crc32"}
		}
		maps.Copy(header, more)
		return header
	}
	for name, tt := range map[string]struct {
		payload string
		body    func(r, other *http.Request) string
		want    string
		more    http.Header
		add     int // to the decoded length
	}{
		"nothing": {streamingSigned, signed(func(c []string, _, _ *http.Request) []string { return c }), "", nil, 0},
		"a byte": {streamingSigned, signed(func(c []string, _, _ *http.Request) []string {
			c[1] = strings.Replace(c[1], "22\r", "23\r", 1)
			return c
		}), "SignatureDoesNotMatch", nil, 0},
		"one twice":           {streamingSigned, signed(func(c []string, _, _ *http.Request) []string { return slices.Insert(c, 1, c[1]) }), "SignatureDoesNotMatch", nil, len(second)},
		"the second left out": {streamingSigned, signed(func(c []string, _, _ *http.Request) []string { return slices.Delete(c, 1, 2) }), "SignatureDoesNotMatch", nil, -len(second)},
		"cut":                 {streamingSigned, signed(func(c []string, _, _ *http.Request) []string { return []string{c[0][:50_000]} }), "IncompleteBody", nil, 0},
		"an early last chunk": {streamingSigned, signed(func(c []string, _, _ *http.Request) []string { return []string{c[0], c[2], "\r\n"} }), "SignatureDoesNotMatch", nil, -len(second)},
		"of another request":  {streamingSigned, signed(func(_ []string, _, other *http.Request) []string { return chunksOf(other, "", first, second) }), "SignatureDoesNotMatch", nil, 0},
		"the second of another request": {streamingSigned, signed(func(c []string, _, other *http.Request) []string {
			c[1] = chunksOf(other, "", first, second)[1]
			return c
		}), "SignatureDoesNotMatch", nil, 0},
		"the last of another request": {streamingSigned, signed(func(c []string, _, other *http.Request) []string {
			c[2] = chunksOf(other, "", first, second)[2]
			return c
		}), "SignatureDoesNotMatch", nil, 0},
		"two lengths":                     {streamingSigned, signed(func(c []string, _, _ *http.Request) []string { return c }), "InvalidRequest", http.Header{"X-Amz-Decoded-Content-Length": {"121000", "121000"}}, 0},
		"a trailer":                       {streamingSignedTrailer, trailed(sum, same), "", nil, 0},
		"a wrong trailer":                 {streamingSignedTrailer, trailed("x-amz-checksum-crc32:"+crc("other")+"\r\n", same), "BadDigest", nil, 0},
		"no signature of it":              {streamingSignedTrailer, trailed(sum, func(c []string) []string { c[3] = sum + "\r\n"; return c }), "SignatureDoesNotMatch", nil, 0},
		"one more trailer":                {streamingSignedTrailer, trailed(sum+"x-amz-meta-a:b\r\n", same), "InvalidRequest", nil, 0},
		"the trailer of another checksum": {streamingSignedTrailer, trailed("x-amz-checksum-crc32c:AAAAAA==\r\n", same), "InvalidRequest", nil, 0},
		"an unsigned trailer":             {streamingTrailer, unsigned(plain + sum + "\r\n"), "", nil, 0},
		"a cut unsigned trailer":          {streamingTrailer, unsigned(plain + sum), "IncompleteBody", nil, 0},
		"one more unsigned one":           {streamingTrailer, unsigned(plain + sum + "x-amz-meta-a:b\r\n\r\n"), "InvalidRequest", nil, 0},
		"no trailer is named":             {streamingTrailer, unsigned(plain + sum + "\r\n"), "InvalidRequest", http.Header{"X-Amz-Trailer": nil}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			f := newFrontOn(t, local.New(local.Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler)), all...)
			header := of(tt.payload, strconv.Itoa(len(first+second)+tt.add), tt.more)
			m := f.begin(t, docs, "part.txt")
			for target, query := range map[string]string{docs + "/a.txt": "", docs + "/part.txt": "partNumber=1&uploadId=" + m.id} {
				before := filesIn(t, root)
				r := f.streamed(t, target, query, tt.payload, header)
				r.Body = io.NopCloser(strings.NewReader(tt.body(r, f.streamed(t, docs+"/other.txt", "", tt.payload, header))))
				if a := f.sent(t, r); a.Code != tt.want {
					t.Errorf("%s: %d %s %s, want %q", target, a.status, a.Code, a.Message, tt.want)
				}
				if after := filesIn(t, root); (tt.want == "") == slices.Equal(after, before) {
					t.Errorf("%s: %q, and before %q", target, after, before)
				}
			}
		})
	}
}

// filesIn returns the files in a folder, also those that no driver lists.
func filesIn(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return names
}

// TestRequestsOnTheWire alters signed requests as a server receives them. Nothing is stored,
// changed or deleted.
func TestRequestsOnTheWire(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("text ", 1000)
	put := call{method: http.MethodPut, key: docs + "/a.txt", query: "x-id=PutObject", body: text, header: http.Header{"X-Amz-Meta-A": {"one"}, "Content-Type": {"text/plain"}}}
	path := func(raw string) func(*http.Request) {
		return func(r *http.Request) { r.URL.Opaque = "//" + r.URL.Host + raw }
	}
	resign := func(old, changed string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Authorization", strings.Replace(r.Header.Get("Authorization"), old, changed, 1))
		}
	}
	const wrong = "SignatureDoesNotMatch"
	for name, tt := range map[string]struct {
		call  call
		alter func(r *http.Request)
		want  string
	}{
		"nothing":              {put, func(*http.Request) {}, ""},
		"an encoded slash":     {put, path("/file-docs%2Fa.txt"), ""},
		"encoded letters":      {put, path("/file%2Ddocs/%61.tx%74"), ""},
		"two slashes":          {put, path("/file-docs//a.txt"), wrong},
		"two slashes in front": {put, path("//file-docs/a.txt"), "InvalidRequest"},
		"a dot":                {put, path("/./file-docs/a.txt"), wrong},
		"two dots":             {put, path("/file-docs/b/../a.txt"), wrong},
		"encoded dots":         {put, path("/file-docs/b/%2e%2e/a.txt"), wrong},
		"a folder":             {put, path("/file-docs/a.txt/"), wrong},
		"another bucket":       {put, path("/file-keep/a.txt"), wrong},
		"another case":         {put, path("/file-docs/A.txt"), wrong},
		"encoded twice":        {put, path("/file-docs/a%252Etxt"), wrong},
		"invalid UTF-8":        {put, path("/file-docs/%ffa.txt"), wrong},
		"a NUL":                {put, path("/file-docs/a.txt%00"), wrong},
		"a plus is no space":   {call{method: http.MethodPut, key: docs + "/a b.txt"}, path("/file-docs/a+b.txt"), wrong},
		"a space is no plus":   {call{method: http.MethodPut, key: docs + "/a+b.txt"}, path("/file-docs/a%20b.txt"), wrong},
		"a body": {put, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(strings.Replace(text, "text", "next", 1)))
		}, "XAmzContentSHA256Mismatch"},
		"a body without length": {call{method: http.MethodPut, key: docs + "/a.txt", payload: "UNSIGNED-PAYLOAD"}, func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), -1
		}, ""},
		"a hash and no length": {call{method: http.MethodPut, key: docs + "/a.txt", payload: fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}, func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text+"x")), -1
		}, "XAmzContentSHA256Mismatch"},
		"the form of the body":       {put, func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD") }, wrong},
		"a query":                    {put, func(r *http.Request) { r.URL.RawQuery = "x-id=UploadPart" }, wrong},
		"a query less":               {put, func(r *http.Request) { r.URL.RawQuery = "" }, wrong},
		"a query behind a semicolon": {put, func(r *http.Request) { r.URL.RawQuery += ";acl" }, "InvalidRequest"},
		"a bucket as the host":       {put, func(r *http.Request) { r.Host = "file-keep.s3.example.com" }, wrong},
		"a type":                     {put, func(r *http.Request) { r.Header.Set("Content-Type", "text/html") }, wrong},
		"no time is signed":          {put, resign("x-amz-date;", ""), "AccessDenied"},
		"an older time": {put, func(r *http.Request) {
			r.Header.Set("X-Amz-Date", time.Now().UTC().Add(-time.Minute).Format("20060102T150405Z"))
		}, wrong},
		"the time twice":                  {put, func(r *http.Request) { r.Header.Add("X-Amz-Date", r.Header.Get("X-Amz-Date")) }, "AccessDenied"},
		"another key":                     {put, resign(testservice.SomeKey, testservice.OtherKey), wrong},
		"a second signature in the query": {put, func(r *http.Request) { r.URL.RawQuery = "X-Amz-Signature=x" }, "InvalidRequest"},
		"a signature in both":             {put, func(r *http.Request) { r.URL.RawQuery += "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00" }, "InvalidRequest"},
		"a checksum":                      {call{method: http.MethodPut, key: docs + "/a.txt", body: text, header: http.Header{"Content-Md5": {"AAAAAAAAAAAAAAAAAAAAAA=="}}}, func(*http.Request) {}, "BadDigest"},
		"a deletion":                      {call{method: http.MethodDelete, key: docs + "/there.txt"}, path("/file-docs/there.txt?versionId=null"), wrong},
		"a deletion of others": {call{method: http.MethodPost, key: docs, query: "delete", body: "<Delete><Object><Key>none.txt</Key></Object></Delete>"}, func(r *http.Request) {
			body := "<Delete><Object><Key>there.txt</Key></Object></Delete>"
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		}, wrong}, // the length is signed
		"a deletion of others without length": {call{method: http.MethodPost, key: docs, query: "delete", payload: fmt.Sprintf("%x", sha256.Sum256([]byte("<Delete/>")))}, func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("<Delete><Object><Key>there.txt</Key></Object></Delete>")), -1
		}, "XAmzContentSHA256Mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFront(t, all...)
			f.site.Put(t, "file/docs/there.txt", "there")
			before := f.site.Objects(t)
			r := f.request(t, tt.call)
			tt.alter(r)
			a := f.sent(t, r)
			if a.Code != tt.want || a.Code == "" != (a.status == http.StatusOK) {
				t.Errorf("%d %s %s, want %q", a.status, a.Code, a.Message, tt.want)
			}
			if tt.want == "" {
				before["file/docs/a.txt"] = text
			}
			if after := f.site.Objects(t); !maps.Equal(after, before) {
				t.Errorf("stored: %.200q", after)
			}
		})
	}
}

// FuzzRequests: whatever an account sends for a key, a query, the source of a copy and a body, the
// service answers with XML and without a fault of its own, and changes nothing but items of the
// bucket.
func FuzzRequests(f *testing.F) {
	methods := []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPost, http.MethodDelete}
	for _, o := range operations(docs) {
		_, key, _ := strings.Cut(o.call.key, "/")
		f.Add(byte(slices.Index(methods, o.call.method)), key, o.call.query, o.call.header.Get(source), o.call.body)
	}
	f.Add(byte(0), "", "list-type=2&continuation-token=eyJwIjoiZmlsZS9rZWVwLyIsImEiOiJhIn0&prefix=a&delimiter=%2F&max-keys=1", "", "")
	f.Add(byte(0), "", "marker=%00&delimiter=%ff&encoding-type=url", "", "")
	f.Add(byte(2), "a", "", "/file-keep/there.txt?versionId=null", "")
	f.Add(byte(2), "a", "partNumber=1&uploadId=x", "file-docs/%2e%2e/%zz", "")
	f.Add(byte(3), "", "delete", "", `<!DOCTYPE a [<!ENTITY b "c">]><Delete><Object><Key>&b;</Key><Key>there.txt</Key></Object><Quiet>true</Quiet></Delete>`)
	f.Add(byte(3), "a", "uploadId=20777abc", "", "<CompleteMultipartUpload><Part><PartNumber>-1</PartNumber><ETag>\"x-1\"</ETag></Part></CompleteMultipartUpload>")
	f.Fuzz(func(t *testing.T, method byte, key, query, from, body string) {
		if _, err := url.Parse("/?" + query); err != nil || strings.ContainsAny(query, " #\x00\t\r\n\x7f") || strings.ContainsFunc(from, unicode.IsControl) {
			t.Skip("no HTTP request")
		}
		front := newFront(t, all...)
		front.site.Put(t, "file/docs/there.txt", "there")
		front.site.Put(t, "file/keep/there.txt", "kept")
		c := call{method: methods[int(method)%len(methods)], key: docs + "/" + key, query: query, body: body}
		if from != "" {
			c.header = http.Header{source: {from}}
		}
		a := front.do(t, c)
		if a.status >= http.StatusInternalServerError && a.Code != "NotImplemented" && c.method != http.MethodHead {
			t.Errorf("%+v: %+v", c, a)
		}
		for stored, content := range front.site.Objects(t) {
			if stored == "file/keep/there.txt" && content == "kept" {
				continue
			}
			if !strings.HasPrefix(stored, "file/docs/") && !strings.HasPrefix(stored, "@uploads/") {
				t.Errorf("%+v: stored is %q", c, stored)
			}
		}
		if _, there := front.site.Stored(t, "file/keep/there.txt"); !there {
			t.Errorf("%+v: an item of another bucket is gone", c)
		}
	})
}

// TestOverriddenHeaders: whatever header a signed address asks for, a browser runs nothing of the
// object, and no other header is set.
func TestOverriddenHeaders(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	for kind, isActive := range map[string]bool{
		"": false, "text/plain; charset=utf-8": false, "application/pdf": false, "image/png; a=b": false, "video/mp4": false,
		"x": true, "text": true, "text/css": true, "text/javascript": true, "application/zip": true, "message/rfc822": true, "*/*": true,
		"text/html": true, "TEXT/HTML; charset=utf-7": true, " text/html": true, "text/html ;a": true, "\ttext/html": true, "text/html\r\nX-Evil: 1": true, "text/html,text/plain": true,
		"application/xhtml+xml": true, "image/svg+xml": true, "text/xml": true, "application/xml": true, "application/rss+xml": true, "text/xsl": true,
		"multipart/x-mixed-replace; boundary=x": true,
	} {
		for name, isPage := range map[string]bool{"a.txt": false, "a.html": true, "a.svg": true, "a.png": false, "a": false} {
			f.site.Put(t, "file/docs/"+name, "<script>1</script>")
			query := url.Values{"response-content-type": {kind}, "response-content-disposition": {"inline\r\nSet-Cookie: a=b"}, "response-cache-control": {"public\nX-Evil: 1"}}
			a := f.do(t, call{method: http.MethodGet, key: docs + "/" + name, query: strings.ReplaceAll(query.Encode(), "+", "%20")})
			header := a.header
			if a.status != http.StatusOK || header.Get("X-Content-Type-Options") != "nosniff" || header.Get("X-Evil") != "" || header.Get("Set-Cookie") != "" {
				t.Errorf("%s as %q: %d %v", name, kind, a.status, header)
			}
			if policy := header.Get("Content-Security-Policy"); strings.Contains(policy, "sandbox") != (isActive || isPage) {
				t.Errorf("%s as %q, which is %q: the policy is %q", name, kind, header.Get("Content-Type"), policy)
			}
		}
	}
}
