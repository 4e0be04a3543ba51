package s3api_test

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/options"
)

// written returns a request as the bytes of HTTP/1.1, with a header that no client library writes.
func written(t *testing.T, r *http.Request, more string) string {
	t.Helper()
	b, err := httputil.DumpRequestOut(r, true)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(b), "\r\n", "\r\n"+more, 1)
}

// exchange sends bytes on a connection of their own, and returns all that is answered until the
// server closes it or is silent.
func (f *front) exchange(t *testing.T, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Error(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	b, _ := io.ReadAll(conn) // up to the deadline
	return string(b)
}

var statusLine = regexp.MustCompile(`(?m)^HTTP/1\.1 (\d+)`)

// TestSmuggling: a request within the body of another one is never carried out, and a body that is
// refused is not asked for.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	f.site.Put(t, "file/docs/there.txt", "there")
	within := written(t, f.request(t, call{method: http.MethodDelete, key: docs + "/there.txt"}), "")
	put := func(key string) *http.Request {
		return f.request(t, call{method: http.MethodPut, key: docs + "/" + key, body: within})
	}
	wrong := put("a.txt")
	wrong.Header.Set("X-Amz-Date", "20200101T000000Z")
	chunked := f.request(t, call{method: http.MethodPut, key: docs + "/a.txt", payload: "UNSIGNED-PAYLOAD"})
	head := f.request(t, call{method: http.MethodHead, key: docs + "/there.txt"})
	for name, tt := range map[string]struct {
		text string
		want string // the statuses
	}{
		"a wrong signature": {written(t, wrong, ""), "403"},
		"a refused key":     {written(t, put("a.php"), ""), "400"},
		"a length and chunks": {
			strings.Replace(written(t, chunked, "Transfer-Encoding: chunked\r\n"), "\r\n\r\n", "\r\n\r\n0\r\n\r\n"+strings.Replace(within, "DELETE", "BREW", 1), 1), "200 403",
		},
		"two lengths":                   {written(t, put("a.txt"), "Content-Length: 3\r\n"), "400"},
		"an unknown coding":             {written(t, put("a.txt"), "Transfer-Encoding: xchunked\r\n"), "501"},
		"a body of a head":              {written(t, head, fmt.Sprintf("Content-Length: %d\r\n", len(within))) + within, "200"},
		"a body that is waited for":     {strings.TrimSuffix(written(t, put("b.txt"), "Expect: 100-continue\r\n"), within), "100"},
		"a wrong signature, not waited": {strings.TrimSuffix(written(t, wrong, "Expect: 100-continue\r\n"), within), "403"},
		"a refused key, not waited":     {strings.TrimSuffix(written(t, put("b.php"), "Expect: 100-continue\r\n"), within), "400"},
		"no bucket, not waited":         {strings.TrimSuffix(written(t, f.request(t, call{method: http.MethodPut, key: "file-none/a.txt", body: within}), "Expect: 100-continue\r\n"), within), "404"},
	} {
		var statuses []string
		answer := f.exchange(t, tt.text)
		for _, match := range statusLine.FindAllStringSubmatch(answer, -1) {
			statuses = append(statuses, match[1])
		}
		if got := strings.Join(statuses, " "); got != tt.want {
			t.Errorf("%s: %s, want %s: %q", name, got, tt.want, answer)
		}
		if _, there := f.site.Stored(t, "file/docs/there.txt"); !there {
			t.Fatalf("%s: the request within was carried out", name)
		}
	}
}

// TestStrangersLearnNothing: the answers to an unknown key, to an account without S3, and to a
// wrong secret are the same.
func TestStrangersLearnNothing(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	client := ""
	f.site.Gate.Client = func(*http.Request) string { return client }
	for i, target := range []string{docs + "/a.txt", docs + "/missing.txt", docs, "file-none/a.txt", "nothing", ""} {
		client = fmt.Sprintf("192.0.%d.1", i) // none of them is throttled
		first := ""
		for _, key := range []string{testservice.SomeKey, testservice.OtherKey, "nobody-at-all", "a/b/c"} {
			r := f.request(t, call{method: http.MethodGet, key: target})
			authorization := strings.Replace(r.Header.Get("Authorization"), testservice.SomeKey, key, 1)
			r.Header.Set("Authorization", authorization[:len(authorization)-8]+"00000000")
			a := f.sent(t, r)
			a.header.Del("Date")
			a.header.Del("X-Amz-Request-Id")
			got := fmt.Sprint(a.status, a.header, regexp.MustCompile("<RequestId>.*</RequestId>").ReplaceAllString(a.body, ""))
			if first == "" {
				first = got
			}
			if a.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s of %s: a browser may guess the type: %v", target, key, a.header)
			}
			if got != first || a.Code != "SignatureDoesNotMatch" {
				t.Errorf("%s of %s: %s, want %s", target, key, got, first)
			}
		}
	}
}

// TestManyWrongSignatures: wrong signatures of one client are all answered alike, as programs try
// again after anything but 403. They refuse no right signature of it, and no login.
func TestManyWrongSignatures(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	f.put(t, docs, "a.txt", "x")
	f.site.Gate.Client = func(*http.Request) string { return "203.0.113.7" }
	for n := range 200 {
		r := f.request(t, call{method: http.MethodGet, key: docs + "/a.txt"})
		r.Header.Set("X-Amz-Date", time.Now().UTC().Add(time.Minute).Format("20060102T150405Z"))
		if a := f.sent(t, r); a.status != http.StatusForbidden || a.Code != "SignatureDoesNotMatch" || a.header.Get("Retry-After") != "" {
			t.Fatalf("wrong signature %d: %+v", n, a)
		}
	}
	if a := f.do(t, call{method: http.MethodGet, key: docs + "/a.txt"}); a.status != http.StatusOK {
		t.Errorf("a right signature: %+v", a)
	}
	running, release := f.site.Gate.Next()
	defer release()
	for _, client := range []string{"203.0.113.7", "203.0.113.8"} {
		if _, _, err := running.Issuer().Issue(t.Context(), f.key, testservice.Password, netip.MustParseAddr(client)); err != nil {
			t.Errorf("a login of %s: %v", client, err)
		}
	}
}

// TestLongPaths: an answer repeats only the beginning of a path, so that strangers who do not read
// it make the server hold little.
func TestLongPaths(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, f.address+"/file-docs/"+strings.Repeat(`"`, 100_000), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if a := f.sent(t, r); a.Code != "AccessDenied" || len(a.body) > 8<<10 {
		t.Errorf("%d %s, %d bytes", a.status, a.Code, len(a.body))
	}
}

// TestMemoryOfBadUploads: bodies that are refused at their end are not held in memory, however many
// there are at once.
func TestMemoryOfBadUploads(t *testing.T) {
	const clients, size = 200, 2 << 20
	f := newFrontOn(t, local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler)), all...)
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := heap()
	part := strings.Repeat("x", 64<<10)
	all := make(chan struct{})
	var arrived, ended sync.WaitGroup
	arrived.Add(clients)
	for i := range clients {
		r := f.streamed(t, fmt.Sprintf("%s/%d.bin", docs, i), "", streamingTrailer, http.Header{
			"X-Amz-Decoded-Content-Length": {strconv.Itoa(size)}, "X-Amz-Trailer": {"x-amz-checksum-crc32"},
		})
		chunk := fmt.Sprintf("%x\r\n%s\r\n", len(part), part)
		parts := make([]io.Reader, 0, size/len(part)+2)
		for range size / len(part) {
			parts = append(parts, strings.NewReader(chunk))
		}
		parts = append(parts, waiting{func() {
			arrived.Done()
			<-all
		}}, strings.NewReader("0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"))
		r.Body = io.NopCloser(io.MultiReader(parts...))
		ended.Go(func() {
			if a := f.sent(t, r); a.Code != "BadDigest" {
				t.Errorf("%d %s %s", a.status, a.Code, a.Message)
			}
		})
	}
	arrived.Wait()
	if held := heap() - before; held > 100<<20 {
		t.Errorf("%d uploads of %d MiB hold %d MiB", clients, size>>20, held>>20)
	}
	close(all)
	ended.Wait()
	if stored := f.site.Keys(t, ""); len(stored) > 0 {
		t.Errorf("stored: %q", stored)
	}
}

// waiting is an empty part of a body that is sent late.
type waiting struct{ wait func() }

func (w waiting) Read([]byte) (int, error) {
	w.wait()
	return 0, io.EOF
}

// TestSlowBodies: a body that never ends is bounded in time, also that of a folder.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	m := f.begin(t, docs, "part.txt")
	f.reload(t, func(c *media.Config) { c.Limits.MaxUploadTime = options.Duration(100 * time.Millisecond) })
	for target, query := range map[string]string{docs + "/a.txt": "", docs + "/folder/": "", docs + "/part.txt": "partNumber=1&uploadId=" + m.id} {
		before := f.site.Keys(t, "")
		body, client := io.Pipe()
		r := f.request(t, call{method: http.MethodPut, key: target, query: query, payload: "UNSIGNED-PAYLOAD"})
		r.Body, r.ContentLength = body, 10
		if a := f.sent(t, r); a.Code != "InvalidRequest" && a.Code != "IncompleteBody" {
			t.Errorf("%s: %d %s %s", target, a.status, a.Code, a.Message)
		}
		if after := f.site.Keys(t, ""); !slices.Equal(after, before) {
			t.Errorf("%s: left are %q", target, after)
		}
		client.Close()
	}
}
