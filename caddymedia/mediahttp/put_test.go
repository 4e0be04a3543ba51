package mediahttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

// putPath is the start of the addresses of uploads of one file.
const putPath = "/api/upload/file/"

// TestPut: the body is stored like the file of a form, under the name in the address.
func TestPut(t *testing.T) {
	t.Parallel()
	run(t, aSite, puts(
		httpCase{
			name: "plain", target: putPath + "one/a.txt", header: bearer, body: "text", status: 201,
			want: "Location: http://example.com/static/file/one/a.txt\nCache-Control: no-store",
			text: `{"success":true,"result":[{"full_path":"http://example.com/static/file/one/a.txt","filename":"a.txt"}]}` + "\n",
		},
		httpCase{name: "sub folder", target: putPath + "one/x/y%20z/a.txt", header: bearer, body: "text", status: 201, has: `"filename":"x/y-z/a.txt"`},
		httpCase{name: "storage's folder", target: putPath + "dated/a.txt", header: bearer, body: "text", status: 201, has: `"filename":"` + uploadDay + `/a.txt"`},
		httpCase{name: "exact name", target: putPath + "exact/a%20%C4%9B%2525.txt", header: bearer, body: "text", status: 201, has: `"filename":"a ě%25.txt"`},
		httpCase{name: "image", target: "/api/upload/image/content/a.png", header: bearer + "Content-Type: text/plain\n", body: samples["png"], status: 201},
		httpCase{name: "empty", target: putPath + "one/a.txt", header: bearer, status: 201},
		httpCase{name: "query", target: putPath + "one/a.txt?alias=two&sub_folder=x", header: bearer, body: "text", status: 201, has: `/file/one/a.txt"`},
		httpCase{name: "identity", target: putPath + "one/a.txt", header: bearer + "Content-Encoding: identity", body: "text", status: 201},
		httpCase{name: "gzip", target: putPath + "one/a.txt", header: bearer + "Content-Encoding: gzip", body: "text", status: 415, has: "Content-Encoding"},
		httpCase{name: "part", target: putPath + "one/a.txt", header: bearer + "Content-Range: bytes 0-3/8", body: "text", status: 400, has: "Content-Range"},
		httpCase{name: "piece of tus", target: putPath + "one/a.txt", header: bearer + "Upload-Offset: 4", body: "text", status: 400, has: filePath + "/resumable"},
		httpCase{name: "piece in the query", target: putPath + "one/a.txt?resumableTotalChunks=3", header: bearer, body: "text", status: 400, has: "a piece"},
		httpCase{name: "empty image", target: "/api/upload/image/content/a.png", header: bearer, status: 415},
		httpCase{name: "content", target: "/api/upload/image/content/a.png", header: bearer, body: "text", status: 415},
		httpCase{name: "extension", target: putPath + "one/a.php", header: bearer, body: "text", status: 415, has: `"filename":"a.php"`},
		httpCase{name: "size", target: putPath + "small/a.txt", header: bearer, body: "more than ten bytes", status: 413},
		httpCase{name: "unknown alias", target: putPath + "none/a.txt", header: bearer, body: "text", status: 400, has: "unknown alias"},
		httpCase{name: "other account's alias", target: putPath + "one/a.txt", header: "Authorization: Bearer $OTHER", body: "text", status: 403},
		httpCase{name: "no token", target: putPath + "one/a.txt", body: "text", status: 401},
		httpCase{name: "unreachable", target: putPath + "broken/a.txt", header: bearer, body: "text", status: 503},
		httpCase{name: "slash in a name", target: putPath + "one/a%2Fb.txt", header: bearer, body: "text", status: 400, has: "%2F"},
		httpCase{name: "backslash", target: putPath + "one/a%5Cb.txt", header: bearer, body: "text", status: 400, has: "backslash"},
		httpCase{name: "ISO-8859-1", target: putPath + "one/%E9.txt", header: bearer, body: "text", status: 201, has: `"filename":"e.txt"`},
		httpCase{name: "RFC 2047", target: putPath + "one/=%3Futf-8%3FB%3FxJtzLnR4dA==%3F=", header: bearer, body: "text", status: 201, has: `"filename":"es.txt"`},
		httpCase{name: "dots", target: putPath + "one/%2e%2e/a.txt", header: bearer, body: "text", status: 400},
		httpCase{name: "empty segment", target: putPath + "one//a.txt", header: bearer, body: "text", status: 400},
		httpCase{name: "no name", target: putPath + "one/", header: bearer, body: "text", status: 400},
		httpCase{name: "no name or slash", target: putPath + "one", header: bearer, body: "text", status: 400},
		httpCase{name: "no alias", target: putPath, header: bearer, body: "text", status: 400},
		httpCase{name: "endpoint", target: filePath, header: bearer, body: "text", status: 405, has: "/api/upload/file/<alias>/<name>"},
	))
}

// TestPutMethods: another method of the address of a file is refused, and other paths are for the next
// handler.
func TestPutMethods(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodPatch} {
		httpCase{
			name: method, method: method, target: putPath + "one/a.txt", header: bearer, status: 405, want: "Allow: PUT", has: "use PUT",
		}.run(t, aSite)
	}
	s := aSite(t)
	if r := s.do(t, http.MethodHead, putPath+"one/a.txt", bearer, ""); r.status != 405 {
		t.Errorf("HEAD: %d", r.status)
	}
	for _, path := range []string{putPath + "one", "/api/upload/files2/one/a.txt"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if handled, _ := s.handler.Serve(httptest.NewRecorder(), r); handled {
			t.Errorf("GET %s is not for the next handler", path)
		}
	}
}

// TestPutUnread: a body that is sure to be refused is not read, and one of unknown length is bounded.
func TestPutUnread(t *testing.T) {
	t.Parallel()
	s := newSite(t, media.Limits{MaxBody: 100})
	send := func(target string, length int64, body string) (status, left int) {
		t.Helper()
		reader := strings.NewReader(body)
		r := s.request(t, http.MethodPut, target, bearer, body)
		r.Body, r.ContentLength = io.NopCloser(reader), length
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return w.Code, reader.Len()
	}
	for name, c := range map[string]struct {
		target string
		length int64
		body   int
		status int
		read   bool
	}{
		"over the alias":          {putPath + "small/a.txt", 11, 11, 413, false},
		"over the request":        {putPath + "one/a.txt", 101, 101, 413, false},
		"extension":               {putPath + "one/a.exe", 4, 4, 415, false},
		"unknown, small":          {putPath + "small/a.txt", -1, 10, 201, true},
		"unknown, over the alias": {putPath + "small/a.txt", -1, 50, 413, true},
	} {
		status, left := send(c.target, c.length, strings.Repeat("x", c.body))
		if status != c.status || (left < c.body) != c.read {
			t.Errorf("%s: status %d, %d of %d bytes are left", name, status, left, c.body)
		}
	}
}

// TestPutTicket: a ticket sets the alias, the folder, the number of files and the name.
func TestPutTicket(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	s.ticket(t, "kind=file&alias=one&sub_folder=x&filename=b.txt&max_files=1")
	put := func(target string, status int, has string) {
		t.Helper()
		httpCase{method: http.MethodPut, target: target, header: ticketBearer, body: "text", status: status, has: has}.check(t, s)
	}
	put("/api/upload/image/one/a.png", 403, "another kind")
	put(putPath+"two/x/a.txt", 403, "for the alias")
	put(putPath+"one/y/a.txt", 403, "another sub folder")
	put(putPath+"one/a.txt", 201, `"filename":"x/b.txt"`)
	put(putPath+"one/x/a.txt", 403, "used up")
}

// TestPutRight: the account needs the right to upload.
func TestPutRight(t *testing.T) {
	t.Parallel()
	run(t, may("list", "import"), puts(httpCase{name: "import", target: putPath + "one/a.txt", header: bearer, body: "text", status: 403, has: "the right upload"}))
}
