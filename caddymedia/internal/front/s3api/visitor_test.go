package s3api_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

// presigned returns a request to an address that the account of the front has signed for ten
// minutes. For a copy, source is the path of its source.
func (f *front) presigned(t *testing.T, at time.Time, method, target, query string, source ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, f.address+"/"+escaped(target)+"?X-Amz-Expires=600&"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range source {
		r.Header.Set("X-Amz-Copy-Source", path)
	}
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	credentials := aws.Credentials{AccessKeyID: f.key, SecretAccessKey: secret}
	address, _, err := signer.PresignHTTP(context.Background(), credentials, r, "UNSIGNED-PAYLOAD", "s3", "us-east-1", at)
	if err != nil {
		t.Fatal(err)
	}
	if r.URL, err = url.Parse(address); err != nil {
		t.Fatal(err)
	}
	return r
}

// from returns a request of a client, with a body. The front believes what it says about its
// address.
func (f *front) from(t *testing.T, client string, r *http.Request, body io.Reader) *http.Request {
	t.Helper()
	r = r.Clone(t.Context())
	r.Header.Set("Test-Address", client)
	if body != nil {
		r.Body, r.ContentLength = io.NopCloser(body), -1
	}
	return r
}

func newVisitedFront(t *testing.T, change func(*media.Config)) *front {
	t.Helper()
	f := newFront(t, all...)
	f.site.Gate.Client = func(r *http.Request) string { return r.Header.Get("Test-Address") }
	f.reload(t, change)
	return f
}

// hold sends a request whose body does not end before the test, and reports whether it is read.
func (f *front) hold(t *testing.T, r *http.Request) bool {
	t.Helper()
	body, client := io.Pipe()
	t.Cleanup(func() { client.Close() })
	read, done := make(chan struct{}), make(chan int, 1)
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(waiting{func() { close(read) }}, body)), -1
	r.Header.Set("Expect", "100-continue")
	transport := &http.Transport{ExpectContinueTimeout: time.Hour}
	t.Cleanup(transport.CloseIdleConnections)
	go func() {
		resp, err := transport.RoundTrip(r)
		if err != nil {
			done <- 0
			return
		}
		resp.Body.Close()
		done <- resp.StatusCode
	}()
	select {
	case <-read:
		return true
	case status := <-done:
		if status != http.StatusServiceUnavailable {
			t.Errorf("held: status %d", status)
		}
		return false
	}
}

// TestVisitorsUploads: slow bodies of one presigned address, or of many of one client, leave other
// visitors and the account their uploads.
func TestVisitorsUploads(t *testing.T) {
	t.Parallel()
	f := newVisitedFront(t, func(c *media.Config) { c.Limits.MaxUploads = 20 })
	address := func(n int) *http.Request {
		return f.presigned(t, time.Now(), http.MethodPut, fmt.Sprintf("%s/%d.txt", docs, n), "")
	}
	held := func(client string, r *http.Request) (n int) {
		for n < 20 && f.hold(t, f.from(t, client, r, nil)) {
			n++
		}
		return n
	}
	if n := held("192.0.2.1", address(0)); n != 3 {
		t.Errorf("one address holds %d uploads, want 3", n)
	}
	all := 3
	for n := range 10 {
		all += held("192.0.2.1", address(n+1))
	}
	if all != 6 { // a third of 18
		t.Errorf("one client holds %d uploads, want 6", all)
	}
	if a := f.sent(t, f.from(t, "198.51.100.1", address(20), strings.NewReader("x"))); a.status != http.StatusOK {
		t.Errorf("another visitor: %d %s", a.status, a.Message)
	}
	own := f.request(t, call{method: http.MethodPut, key: docs + "/own.txt"})
	if n := held("192.0.2.1", own); n != 14 {
		t.Errorf("the account holds %d uploads besides, want 14", n)
	}
}

// TestVisitorsWaits: copies and lists of one client that wait for a slow storage leave other
// visitors, and the account, theirs.
func TestVisitorsWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operation string // of the storage
		ask       func(f *front, n int) *http.Request
		want      int // of a client
	}{
		"copy": {"copy", func(f *front, n int) *http.Request {
			return f.presigned(t, time.Now(), http.MethodPut, fmt.Sprintf("%s/%d.txt", docs, n), "", docs+"/source.txt")
		}, 6}, // a third of 18 uploads
		"list": {"list", func(f *front, n int) *http.Request {
			return f.presigned(t, time.Now(), http.MethodGet, docs, fmt.Sprintf("list-type=2&max-keys=%d", n+1))
		}, 9}, // of 1 MiB, a third of 29
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var slow atomic.Bool
			entered, released := make(chan struct{}), make(chan struct{})
			backend := memory.New()
			backend.Fail = func(op, _ string) error {
				if slow.Load() && op == c.operation {
					entered <- struct{}{}
					<-released
				}
				return nil
			}
			f := newFrontOn(t, backend, all...)
			f.site.Gate.Client = func(r *http.Request) string { return r.Header.Get("Test-Address") }
			f.reload(t, func(c *media.Config) { c.Limits.MaxUploads = 20 })
			f.put(t, docs, "source.txt", "text")
			slow.Store(true)
			var sent sync.WaitGroup
			defer sent.Wait()
			defer close(released)
			waits := func(r *http.Request) bool {
				done := make(chan int, 1)
				sent.Go(func() { done <- f.sent(t, r).status })
				select {
				case <-entered:
					return true
				case status := <-done:
					if status != http.StatusServiceUnavailable {
						t.Errorf("status %d", status)
					}
					return false
				}
			}
			held := 0
			for n := range 20 {
				if waits(f.from(t, "192.0.2.1", c.ask(f, n), nil)) {
					held++
				}
			}
			if held != c.want {
				t.Errorf("one client has %d, want %d", held, c.want)
			}
			if !waits(f.from(t, "198.51.100.1", c.ask(f, 20), nil)) {
				t.Error("another visitor has none")
			}
			own := c.ask(f, 21)
			own = f.request(t, call{method: own.Method, key: strings.TrimPrefix(own.URL.Path, "/"), header: own.Header})
			if !waits(f.from(t, "192.0.2.1", own, nil)) {
				t.Error("the account has none")
			}
		})
	}
}

// TestVisitorsMultiparts: one presigned address begins few multipart uploads, and others can begin
// theirs.
func TestVisitorsMultiparts(t *testing.T) {
	t.Parallel()
	f := newVisitedFront(t, func(c *media.Config) { c.Resumable.MaxOpen = 40 })
	begin := func(client string, r *http.Request) int {
		return f.sent(t, f.from(t, client, r, nil)).status
	}
	address := func(n int) *http.Request {
		return f.presigned(t, time.Now(), http.MethodPost, fmt.Sprintf("%s/%d.txt", docs, n), "uploads=")
	}
	one, begun := address(0), 0
	for begun < 20 && begin("192.0.2.1", one) == http.StatusOK {
		begun++
	}
	if begun != 9 {
		t.Errorf("one address began %d uploads, want 9", begun)
	}
	for n := range 20 {
		if begin("192.0.2.1", address(n+1)) == http.StatusOK {
			begun++
		}
	}
	if begun != 12 { // a third of 36
		t.Errorf("one client began %d uploads, want 12", begun)
	}
	if status := begin("198.51.100.1", address(30)); status != http.StatusOK {
		t.Errorf("another visitor: %d", status)
	}
	m := f.begin(t, docs, "own.bin")
	part := f.presigned(t, time.Now(), http.MethodPut, docs+"/own.bin", "partNumber=1&uploadId="+m.id)
	if a := f.sent(t, f.from(t, "192.0.2.1", part, strings.NewReader("part"))); a.status != http.StatusOK {
		t.Errorf("a part of an upload that was begun: %d %s", a.status, a.Message)
	}
}

// TestVisitorsChanges: a presigned address completes a multipart upload, and copies an object of
// another bucket that the account may use.
func TestVisitorsChanges(t *testing.T) {
	t.Parallel()
	f := newVisitedFront(t, func(*media.Config) {})
	f.put(t, keep, "source.txt", "source")
	m := f.begin(t, docs, "whole.bin")
	m.mustSend(t, 1, []byte("part"))
	for key, r := range map[string]*http.Request{
		"whole.bin": f.from(t, "192.0.2.1", f.presigned(t, time.Now(), http.MethodPost, docs+"/whole.bin", "uploadId="+m.id), strings.NewReader(
			"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"+*m.parts[0].ETag+"</ETag></Part></CompleteMultipartUpload>")),
		"copy.txt": f.from(t, "192.0.2.1", f.presigned(t, time.Now(), http.MethodPut, docs+"/copy.txt", "", keep+"/source.txt"), nil),
	} {
		if a := f.sent(t, r); a.status != http.StatusOK || a.Code != "" {
			t.Errorf("%s: %d %s %s", key, a.status, a.Code, a.Message)
		}
		if _, there := f.site.Stored(t, "file/docs/"+key); !there {
			t.Errorf("%s is not stored", key)
		}
	}
}

// TestVisitorsReaders: a presigned address that is opened and not read takes the items of its
// client only.
func TestVisitorsReaders(t *testing.T) {
	t.Parallel()
	f := newFrontOn(t, local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler)), all...)
	f.site.Gate.Client = func(r *http.Request) string { return r.Header.Get("Test-Address") }
	f.reload(t, func(c *media.Config) { c.Limits.MaxOpenItems = 1 })
	f.put(t, docs, "a.bin", strings.Repeat("x", 32<<20))
	address := f.presigned(t, time.Now(), http.MethodGet, docs+"/a.bin", "")
	conn, err := net.Dial("tcp", strings.TrimPrefix(f.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, written(t, f.from(t, "192.0.2.1", address, nil), "")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 100)); err != nil { // it is open now
		t.Fatal(err)
	}
	for client, r := range map[string]*http.Request{
		"198.51.100.1": f.presigned(t, time.Now(), http.MethodGet, docs+"/a.bin", ""),
		"192.0.2.1":    f.request(t, call{method: http.MethodGet, key: docs + "/a.bin"}),
	} {
		r = f.from(t, client, r, nil)
		r.Header.Set("Range", "bytes=0-9")
		if a := f.sent(t, r); a.status != http.StatusPartialContent {
			t.Errorf("%s: %d %s", client, a.status, a.Message)
		}
	}
}

// TestRefusedAddress: a presigned address ends after ten refused bodies. Others of the account do
// not.
func TestRefusedAddress(t *testing.T) {
	t.Parallel()
	f := newVisitedFront(t, func(*media.Config) {})
	refuse := func(r *http.Request) answer {
		return f.sent(t, f.from(t, "192.0.2.1", r, strings.NewReader("no image")))
	}
	for name, target := range map[string]string{"bodies": pics + "/a.png", "names": docs + "/a.php"} {
		one, other := f.presigned(t, time.Now(), http.MethodPut, target, "n=1"), f.presigned(t, time.Now(), http.MethodPut, target, "n=2")
		for n := range 10 {
			if a := refuse(one); a.Code != "InvalidRequest" {
				t.Fatalf("%s: refused body %d: %d %s %s", name, n, a.status, a.Code, a.Message)
			}
		}
		one.URL.RawQuery = strings.ReplaceAll(one.URL.RawQuery, "X-Amz-Expires", "X%2dAmz%2dExpires") // the same address
		if a := refuse(one); a.Code != "AccessDenied" || !strings.Contains(a.Message, "ended") {
			t.Errorf("%s: the eleventh: %d %s %s", name, a.status, a.Code, a.Message)
		}
		if a := refuse(other); a.Code != "InvalidRequest" {
			t.Errorf("%s: another address: %d %s %s", name, a.status, a.Code, a.Message)
		}
	}
}

// TestBodyOfAddress: a body that was begun before its presigned address ends may arrive until 15
// minutes later.
func TestBodyOfAddress(t *testing.T) {
	t.Parallel()
	f := newVisitedFront(t, func(c *media.Config) { c.Limits.MaxUploadTime = options.Duration(time.Hour) })
	m := f.begin(t, docs, "part.txt")
	ended := f.site.Now().Add(time.Second - 15*time.Minute).Truncate(time.Second)
	f.site.Gate.Now = func() time.Time { return ended }
	for target, query := range map[string]string{docs + "/a.txt": "", docs + "/folder/": "", docs + "/part.txt": "partNumber=1&uploadId=" + m.id} {
		body, client := io.Pipe()
		a := f.sent(t, f.from(t, "192.0.2.1", f.presigned(t, ended.Add(-10*time.Minute), http.MethodPut, target, query), body))
		if a.Code != "InvalidRequest" && a.Code != "IncompleteBody" {
			t.Errorf("%s: %d %s %s", target, a.status, a.Code, a.Message)
		}
		client.Close()
	}
}
