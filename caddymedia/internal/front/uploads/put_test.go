package uploads_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

// puts returns the cases by PUT.
func puts(cases ...httpCase) []httpCase {
	for i := range cases {
		cases[i].Method = http.MethodPut
	}
	return cases
}

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
		httpCase{Name: "empty", Target: putPath + "one/a.txt", Header: bearer, Status: 201},
		httpCase{Name: "part", Target: putPath + "one/a.txt", Header: bearer + "Content-Range: bytes 0-3/8", Body: "text", Status: 400, Has: "Content-Range"},
		httpCase{Name: "content", Target: "/api/upload/image/content/a.png", Header: bearer, Body: "text", Status: 415},
		httpCase{Name: "extension", Target: putPath + "one/a.php", Header: bearer, Body: "text", Status: 415, Has: `"filename":"a.php"`},
		httpCase{Name: "slash in a name", Target: putPath + "one/a%2Fb.txt", Header: bearer, Body: "text", Status: 400, Has: "%2F"},
		httpCase{Name: "backslash", Target: putPath + "one/a%5Cb.txt", Header: bearer, Body: "text", Status: 400, Has: "backslash"},
		httpCase{Name: "RFC 2047", Target: putPath + "one/=%3Futf-8%3FB%3FxJtzLnR4dA==%3F=", Header: bearer, Body: "text", Status: 201, Has: `"filename":"es.txt"`},
		httpCase{Name: "no name", Target: putPath + "one/", Header: bearer, Body: "text", Status: 400},
		httpCase{Name: "no name or slash", Target: putPath + "one", Header: bearer, Body: "text", Status: 400},
		httpCase{Name: "no alias", Target: putPath, Header: bearer, Body: "text", Status: 400},
		httpCase{Name: "endpoint", Target: filePath, Header: bearer, Body: "text", Status: 405, Has: "/api/upload/file/<alias>/<name>"},
	))
}

// TestPutMethods: another method of the address of a file is refused, and other paths are for the
// next handler.
func TestPutMethods(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodPatch} {
		r := httpCase{Method: method, Target: putPath + "one/a.txt", Header: bearer, Status: 405, Want: "Allow: PUT"}.Check(t, s)
		if method != http.MethodHead && !strings.Contains(r.Body, "use PUT") {
			t.Errorf("%s: %s", method, r.Body)
		}
	}
	for _, path := range []string{putPath + "one", "/api/upload/files2/one/a.txt"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if handled, _ := s.Handler.Serve(httptest.NewRecorder(), r); handled {
			t.Errorf("GET %s is not for the next handler", path)
		}
	}
}

// TestPutUnread: a body that is sure to be refused is not read, and one of unknown length is
// bounded.
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

// TestPutCondition: a PUT is carried out only if its conditions hold.
func TestPutCondition(t *testing.T) {
	t.Parallel()
	const there, free, append = putPath + "replacing/a.txt", putPath + "replacing/b.txt", putPath + "one/a.txt"
	for _, c := range []struct {
		target, condition string
		status            int
	}{
		{there, "If-None-Match: *", 412},
		{there, "If-None-Match: $TAG", 412},
		{there, `If-None-Match: "x"`, 201},
		{there, "If-Match: $TAG", 201},
		{there, "If-Match: *", 201},
		{there, `If-Match: "x"`, 412},
		{there, "If-Match: x", 400},
		{there, "If-Unmodified-Since: $BEFORE", 412},
		{free, "If-None-Match: *", 201},
		{free, "If-Match: *", 412},
		{append, "If-None-Match: *", 412},
		{append, `If-Match: "x"`, 412},
		{append, "If-Match: *", 201},
		{putPath + "one/b.txt", "If-None-Match: *", 201},
		{putPath + "none/b.txt", "If-None-Match: *", 400},
	} {
		httpCase{
			Name: c.target + " " + c.condition, Method: http.MethodPut, Target: c.target, Header: bearer + c.condition, Body: "new", Status: c.status,
		}.Run(t, withVersions)
	}
	s := withVersions(t)
	image := httpCase{Method: http.MethodPut, Target: "/api/upload/image/over/a.png", Header: bearer + "If-None-Match: *", Body: samples["png"], Status: 201, Has: ".webp"}
	image.Check(t, s)
	image.Status, image.Has = 412, "condition"
	image.Check(t, s)
	image.Header, image.Status, image.Has = bearer+"If-Match: *", 201, ".webp"
	image.Check(t, s)
}

// TestPutConditionUnread: the body of a request whose condition does not hold is not read.
func TestPutConditionUnread(t *testing.T) {
	t.Parallel()
	s := withVersions(t)
	body, w := strings.NewReader("new"), httptest.NewRecorder()
	r := s.Request(t, http.MethodPut, putPath+"replacing/a.txt", bearer+"If-None-Match: *", "new")
	r.Body = io.NopCloser(body)
	s.Handler.ServeHTTP(w, r)
	if w.Code != http.StatusPreconditionFailed || body.Len() != 3 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestFormCondition: a form has no conditions.
func TestFormCondition(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	for _, condition := range []string{"If-None-Match: *", `If-Match: "x"`, "If-Unmodified-Since: yesterday"} {
		httpCase{Target: filePath, Header: multipart + bearer + condition, Body: form(file("a.txt", "x")), Status: 400, Has: "conditions"}.Check(t, s)
	}
}
