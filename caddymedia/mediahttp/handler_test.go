package mediahttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// Published vulnerabilities of similar services, and the tests that show that this one has none of
// them. The package is one of caddymedia, or of caddymedia/internal.
//
//	CVE-2026-22707 one endpoint skipped the checks       uploads TestRestrictedExtensions
//	CVE-2025-64526 throttle keyed by a field             mediahttp TestThrottle
//	transfer.sh#670 forged X-Forwarded-For               mediahttp TestThrottle, integration/features TestForgedAddress
//	CVE-2024-31217 one upload stopped the process        uploads TestBadUploads
//	CVE-2026-35412 an item replaced by another's upload  uploads TestEqualNames
//	CVE-2026-29188 an item deleted without the right     serve TestStaticMethods
//	GHSA-56p6-qw3c-fq2g token outlived its account       uploads TestRightsEndDuringUpload
//	CVE-2026-54094 symbolic link out of the storage      integration/features TestSymbolicLinks
//	CVE-2026-54097 names with a common beginning         caller TestAccountOfSomeAliases
//	CVE-2026-33173 metadata of the client believed       serve TestStaticTypes, uploads TestContent
//	CVE-2026-33202 glob characters in a name             uploads TestGlob
//	CVE-2026-33658 thousands of ranges                   serve TestRanges
//	CVE-2024-26144 cookie in a public answer             all of them, by testservice.Site.Send
//	CVE-2026-28683 script in an SVG                      uploads TestContent, serve TestStaticTypes, imaging/svg TestAttacksAreRefused
//	CVE-2026-42882 decided on the encoded path           serve TestPaths, integration/features TestRawPaths
//	CVE-2026-27585 backslash                             serve TestPaths, integration/features TestRawPaths
//	Shrine 3.8.0, CVE-2021-32708 path traversal          uploads TestNames
//	GHSA-f59h-q822-g45g underscores in headers           caller TestAuthentication, integration/features TestDocumentedHeaders
//	GHSA-49wc-4hcv-v58q dots in headers                  caller TestAuthentication, integration/features TestDottedHeaders
//	GHSA-8mhj-xm4h-m5m6 line breaks in a name            uploads TestNames, serve TestPaths
//	GHSA-j8px-rmrx-76h9 placeholders in a name           uploads TestNames, integration/features TestTemplatesOfStrangers
//	CVE-2022-41725 many parts                            upload TestMemoryOfForms, caller TestSmallForm
//	CVE-2023-24536 many headers of a part                upload TestMemoryOfForms
//	CVE-2026-42504 encoded words                         naming TestDecode, uploads TestRestrictedExtensions
//	CVE-2026-33809 unexpected decoders                   imaging TestCheckImageNamesTheContent
//	h2non/bimg#394 pixel flood                           imaging TestBombs, uploads TestLimits

// counted counts the bytes read of a body.
type counted struct {
	io.ReadCloser
	n *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// TestOptionsWithBody: a request without credentials whose body is not read does not keep its
// connection.
func TestOptionsWithBody(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.CORS = []string{"*"} })
	for _, c := range []struct{ target, header string }{
		{resumablePath, ""},
		{filePath, "Origin: https://www.example.com\nAccess-Control-Request-Method: POST\n"},
	} {
		for body, want := range map[string]string{"x": "close", "": ""} {
			w := httptest.NewRecorder()
			s.Handler.ServeHTTP(w, s.Request(t, http.MethodOptions, c.target, c.header, body))
			if got := w.Header().Get("Connection"); w.Code != 204 || got != want {
				t.Errorf("%s with %q: status %d, Connection: %q", c.target, body, w.Code, got)
			}
		}
	}
}

// TestLingerEnds: only a bounded part of a refused body is read.
func TestLingerEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{})
	var read atomic.Int64
	answered := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = counted{r.Body, &read}
		s.Handler.ServeHTTP(w, r)
		close(answered)
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /api/upload/file HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\nContent-Type: "+multipartType+"\r\n\r\n")
	for chunk := make([]byte, 1<<20); err == nil; {
		_, err = conn.Write(chunk) // until the server closes
	}
	<-answered
	if n := read.Load(); n < 1<<20 || n > 98<<20 {
		t.Errorf("%d bytes were read", n)
	}
}

// TestHangUp: if the client disconnects during an operation of the token store or of the storage,
// neither has failed, in the log and in the metrics.
func TestHangUp(t *testing.T) {
	t.Parallel()
	upload := multipart + bearer
	body := form(file("a.txt", "text"))
	for name, c := range map[string]struct{ during, path, header, body string }{
		"upload":           {"load", filePath, upload, body},
		"upload on ticket": {"take", filePath, multipart + ticketBearer, body},
		"stored upload":    {"put file/content/a.txt", filePath, upload, body},
		"resumable upload": {"load", resumablePath, tusHeader + aText + "Upload-Length: 4\n", ""},
		"ticket":           {"load", ticketPath, urlencoded + bearer, "kind=file"},
		"stored ticket":    {"save", ticketPath, urlencoded + bearer, "kind=file"},
		"token":            {"save", tokenPath, urlencoded, login(someKey, password).Body},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := new(outcomes)
			s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Observer = seen })
			s.Ticket(t, "kind=file")
			r := s.Request(t, http.MethodPost, c.path, c.header, c.body)
			ctx, hangUp := context.WithCancel(r.Context())
			defer hangUp()
			left := false
			leave := func(op string) bool {
				if op == c.during {
					left = true
					hangUp()
				}
				return op == c.during
			}
			s.Store.Before = func(op string) { leave(op) }
			s.Driver.Fail = func(op, key string) error {
				if leave(op + " " + key) {
					return storagedrivers.ErrUnavailable // the connection is cut
				}
				return nil
			}
			s.Handler.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
			s.Driver.Fail = nil
			if !left {
				t.Fatal("the client has not left")
			}
			for _, line := range s.Log.Take() {
				if strings.HasPrefix(line, "ERROR") {
					t.Errorf("logged: %s", line)
				}
			}
			if got := seen.take(); strings.Contains(got, "503") || strings.Contains(got, "unavailable") {
				t.Errorf("observed: %s", got)
			}
		})
	}
}

// outcomes observes how requests end.
type outcomes struct {
	testservice.Observer

	mu   sync.Mutex
	seen []string
}

func (o *outcomes) note(outcome string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, outcome)
}

// take returns the outcomes so far.
func (o *outcomes) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.seen, ", ")
}

func (o *outcomes) LoggedIn(_ context.Context, _ string, result service.LoginResult) {
	o.note(string(result))
}

func (o *outcomes) TicketIssued(_ context.Context, _ string, result service.TicketResult) {
	o.note(string(result))
}

func (o *outcomes) Failed(_ context.Context, _, status string) { o.note(status) }

// TestRightToUpload: an account without the right stores nothing in any way, and gets no ticket.
func TestRightToUpload(t *testing.T) {
	t.Parallel()
	body := form(file("a.txt", "text"))
	create := tusHeader + "Upload-Length: 4\n" + metadata("filename", "a.txt")
	run(t, may("list", "delete"), []httpCase{
		{Name: "upload", Target: filePath, Header: multipart + bearer, Body: body, Status: 403, Has: "the account may not upload items"},
		{Name: "image", Target: imagePath, Header: multipart + bearer, Body: body, Status: 403, Has: "the right upload"},
		{Name: "resumable", Method: http.MethodPost, Target: filePath + "/resumable", Header: create, Status: 403, Has: "upload"},
		{Name: "resumable by HEAD", Method: http.MethodHead, Target: filePath + "/resumable/x", Header: tusHeader, Status: 403},
		{Name: "ticket", Target: ticketPath, Header: urlencoded + bearer, Body: "kind=file", Status: 403, Has: "the right upload"},
		{Name: "without a token", Target: filePath, Header: multipart, Body: body, Status: 401},
	})
	for _, rights := range [][]string{nil, {"upload"}, {"sign", "upload"}} {
		uploadCase{Name: "may", Parts: []part{file("a.txt", "text")}, Want: []string{"file/content/a.txt"}}.Run(t, may(rights...))
	}
}

// A program without Caddy serves items and tokens that are kept in memory.
func Example() {
	running, err := media.New(media.Config{
		Storages:    []media.Storage{{Name: "default", Driver: memory.New()}},
		FileAliases: map[string]*media.FileAlias{"content": {}},
		Accounts:    map[string]*media.Account{"site-one": {PasswordHash: "a hash"}},
		// A real program compares slow hashes, such as argon2id.
		Comparer: tokens.CompareFunc(func(hashed, password []byte) (bool, error) { return bytes.Equal(hashed, password), nil }),
		FakeHash: []byte("another hash"),
		Tokens:   tokenmemory.New(nil),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer running.Close()
	running.Start()
	handler := mediahttp.New(running, mediahttp.Options{})

	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/api/upload/file", nil))
	fmt.Println(answer.Code, "without a token")
	// Output: 401 without a token
}

// TestBodyOfTheSite: a body that a handler before the service ends, as request_body with max_size
// does if its length is not known before, is refused with 413 in the form of the endpoint.
func TestBodyOfTheSite(t *testing.T) {
	t.Parallel()
	s := may("upload", "replace", "delete")(t)
	s.Put(t, "file/replacing/a.txt", "x")
	address := s.TusSend(t, http.MethodPost, resumablePath, "Upload-Length: 60\n"+aText, "").Header.Get(location)
	long := strings.Repeat("0123456789", 6)
	for _, c := range []struct{ method, target, header, body string }{
		{http.MethodPost, filePath, multipart + bearer, form(file("b.txt", long))},
		{http.MethodPost, filePath, multipart + bearer + "Idempotency-Key: one\n", form(file("b.txt", long))},
		{http.MethodPut, filePath + "/content/b.txt", bearer, long},
		{http.MethodPut, itemsPath + "file/replacing/a.txt", bearer + ifAny, long},
		{http.MethodPatch, address, tusHeader + tusBody + "Upload-Offset: 0\n", long},
		{http.MethodPost, itemsPath + "file/content", bearer + urlencoded, "filename=" + long},
	} {
		r := s.Request(t, c.method, c.target, c.header, c.body)
		r.ContentLength = -1
		r.Body = siteBody{http.MaxBytesReader(nil, r.Body, 50)}
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, r)
		if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), `"success":false`) || !strings.Contains(w.Body.String(), "50 bytes") {
			t.Errorf("%s %s: %d %s", c.method, c.target, w.Code, w.Body)
		}
	}
	if stored, _ := s.Stored(t, "file/replacing/a.txt"); stored != "x" {
		t.Errorf("the item is %q", stored)
	}
}

// siteBody is a body whose errors a handler of a site has wrapped.
type siteBody struct{ io.ReadCloser }

func (b siteBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("of the site: %w", err)
	}
	return n, err
}
