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
			Name: "plain", Target: putPath + "one/a.txt", Header: bearer, Body: "text", Status: 201,
			Want: "Location: http://example.com/static/file/one/a.txt\nCache-Control: no-store",
			Text: `{"success":true,"result":[{"full_path":"http://example.com/static/file/one/a.txt","filename":"a.txt"}]}` + "\n",
		},
		httpCase{Name: "sub folder", Target: putPath + "one/x/y%20z/a.txt", Header: bearer, Body: "text", Status: 201, Has: `"filename":"x/y-z/a.txt"`},
		httpCase{Name: "storage's folder", Target: putPath + "dated/a.txt", Header: bearer, Body: "text", Status: 201, Has: `"filename":"` + uploadDay + `/a.txt"`},
		httpCase{Name: "exact name", Target: putPath + "exact/a%20%C4%9B%2525.txt", Header: bearer, Body: "text", Status: 201, Has: `"filename":"a ě%25.txt"`},
		httpCase{Name: "image", Target: "/api/upload/image/content/a.png", Header: bearer + "Content-Type: text/plain\n", Body: samples["png"], Status: 201},
		httpCase{Name: "empty", Target: putPath + "one/a.txt", Header: bearer, Status: 201},
		httpCase{Name: "query", Target: putPath + "one/a.txt?alias=two&sub_folder=x", Header: bearer, Body: "text", Status: 201, Has: `/file/one/a.txt"`},
		httpCase{Name: "identity", Target: putPath + "one/a.txt", Header: bearer + "Content-Encoding: identity", Body: "text", Status: 201},
		httpCase{Name: "gzip", Target: putPath + "one/a.txt", Header: bearer + "Content-Encoding: gzip", Body: "text", Status: 415, Has: "Content-Encoding"},
		httpCase{Name: "part", Target: putPath + "one/a.txt", Header: bearer + "Content-Range: bytes 0-3/8", Body: "text", Status: 400, Has: "Content-Range"},
		httpCase{Name: "piece of tus", Target: putPath + "one/a.txt", Header: bearer + "Upload-Offset: 4", Body: "text", Status: 400, Has: filePath + "/resumable"},
		httpCase{Name: "piece in the query", Target: putPath + "one/a.txt?resumableTotalChunks=3", Header: bearer, Body: "text", Status: 400, Has: "a piece"},
		httpCase{Name: "empty image", Target: "/api/upload/image/content/a.png", Header: bearer, Status: 415},
		httpCase{Name: "content", Target: "/api/upload/image/content/a.png", Header: bearer, Body: "text", Status: 415},
		httpCase{Name: "extension", Target: putPath + "one/a.php", Header: bearer, Body: "text", Status: 415, Has: `"filename":"a.php"`},
		httpCase{Name: "size", Target: putPath + "small/a.txt", Header: bearer, Body: "more than ten bytes", Status: 413},
		httpCase{Name: "unknown alias", Target: putPath + "none/a.txt", Header: bearer, Body: "text", Status: 400, Has: "unknown alias"},
		httpCase{Name: "other account's alias", Target: putPath + "one/a.txt", Header: "Authorization: Bearer $OTHER", Body: "text", Status: 403},
		httpCase{Name: "no token", Target: putPath + "one/a.txt", Body: "text", Status: 401},
		httpCase{Name: "unreachable", Target: putPath + "broken/a.txt", Header: bearer, Body: "text", Status: 503},
		httpCase{Name: "slash in a name", Target: putPath + "one/a%2Fb.txt", Header: bearer, Body: "text", Status: 400, Has: "%2F"},
		httpCase{Name: "backslash", Target: putPath + "one/a%5Cb.txt", Header: bearer, Body: "text", Status: 400, Has: "backslash"},
		httpCase{Name: "ISO-8859-1", Target: putPath + "one/%E9.txt", Header: bearer, Body: "text", Status: 201, Has: `"filename":"e.txt"`},
		httpCase{Name: "RFC 2047", Target: putPath + "one/=%3Futf-8%3FB%3FxJtzLnR4dA==%3F=", Header: bearer, Body: "text", Status: 201, Has: `"filename":"es.txt"`},
		httpCase{Name: "dots", Target: putPath + "one/%2e%2e/a.txt", Header: bearer, Body: "text", Status: 400},
		httpCase{Name: "empty segment", Target: putPath + "one//a.txt", Header: bearer, Body: "text", Status: 400},
		httpCase{Name: "no name", Target: putPath + "one/", Header: bearer, Body: "text", Status: 400},
		httpCase{Name: "no name or slash", Target: putPath + "one", Header: bearer, Body: "text", Status: 400},
		httpCase{Name: "no alias", Target: putPath, Header: bearer, Body: "text", Status: 400},
		httpCase{Name: "endpoint", Target: filePath, Header: bearer, Body: "text", Status: 405, Has: "/api/upload/file/<alias>/<name>"},
	))
}

// TestPutMethods: another method of the address of a file is refused, and other paths are for the next
// handler.
func TestPutMethods(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodPatch} {
		httpCase{
			Name: method, Method: method, Target: putPath + "one/a.txt", Header: bearer, Status: 405, Want: "Allow: PUT", Has: "use PUT",
		}.Run(t, aSite)
	}
	s := aSite(t)
	if r := s.Do(t, http.MethodHead, putPath+"one/a.txt", bearer, ""); r.Status != 405 {
		t.Errorf("HEAD: %d", r.Status)
	}
	for _, path := range []string{putPath + "one", "/api/upload/files2/one/a.txt"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if handled, _ := s.Handler.Serve(httptest.NewRecorder(), r); handled {
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
		r := s.Request(t, http.MethodPut, target, bearer, body)
		r.Body, r.ContentLength = io.NopCloser(reader), length
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, r)
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
	s.Ticket(t, "kind=file&alias=one&sub_folder=x&filename=b.txt&max_files=1")
	put := func(target string, status int, has string) {
		t.Helper()
		httpCase{Method: http.MethodPut, Target: target, Header: ticketBearer, Body: "text", Status: status, Has: has}.Check(t, s)
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
	run(t, may("list", "import"), puts(httpCase{Name: "import", Target: putPath + "one/a.txt", Header: bearer, Body: "text", Status: 403, Has: "the right upload"}))
}
