package mediahttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/uploads"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
)

const page = "https://www.example.com"

const (
	itemKey  = "file/content/item.txt"
	itemPath = "/static/" + itemKey
)

// crossSite returns a constructor of sites whose cors has these origins. They have an item of ten
// bytes and an image with a variant.
func crossSite(origins ...string) func(*testing.T) *site {
	return func(t *testing.T) *site {
		t.Helper()
		s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
			c.CORS = origins
			c.FileAliases["private"] = &media.FileAlias{AliasOptions: media.AliasOptions{Storage: "main", Private: new(media.Private)}}
		})
		info := s.Put(t, itemKey, "0123456789")
		s.Vars = []string{"$TAG", info.ETag}
		s.Put(t, "img/pictures/a.jpg", "image")
		s.Put(t, "img/pictures/a.jpg"+render.Suffix, "variant")
		s.Put(t, "file/elsewhere/a.txt", "text")
		return s
	}
}

// preflight sends a preflight request. The response has no body.
func preflight(t *testing.T, s *site, path, method, from string) *reply {
	t.Helper()
	r := s.Request(t, http.MethodOptions, path, "Origin: "+from+"\nAccess-Control-Request-Method: "+method+
		"\nAccess-Control-Request-Headers: authorization,http_service_api_key\nAccess-Control-Request-Headers: traceparent, x-csrf-token", "")
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	if w.Code == http.StatusNoContent && w.Body.Len() > 0 {
		t.Errorf("body %q", w.Body)
	}
	return &reply{Status: w.Code, Header: w.Result().Header, Body: w.Body.String()}
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	both := []string{"https://other.example", page}
	for name, c := range map[string]struct {
		origins      []string
		path, method string
		from         string
		status       int
		allowed      string // the value of Access-Control-Allow-Origin
		vary         bool
	}{
		"token":                {both, tokenPath, http.MethodPost, page, 204, page, true},
		"image":                {both, imagePath, http.MethodPost, page, 204, page, true},
		"item":                 {both, itemPath, http.MethodGet, page, 204, page, true},
		"any":                  {[]string{"*"}, imagePath, http.MethodPost, page, 204, "*", true},
		"null":                 {both, imagePath, http.MethodPost, "null", 204, "", true},
		"unlisted":             {both, imagePath, http.MethodPost, "https://www.example.org", 204, "", true},
		"two origins":          {both, imagePath, http.MethodPost, page + "\nOrigin: https://other.example", 204, "", true},
		"list":                 {both, itemsPath + "file/one", http.MethodGet, page, 204, page, true},
		"deletion":             {both, itemsPath + "file/one/a.txt", http.MethodDelete, page, 204, page, true},
		"signing":              {both, signPath, http.MethodPost, page, 204, page, true},
		"list of another kind": {both, itemsPath + "video/one", http.MethodGet, page, 404, "", false},
		"change of an item":    {both, itemPath, http.MethodPut, page, 404, "", false}, // goes on
		"another path":         {both, "/api/other", http.MethodPost, page, 404, "", false},
		"no cors":              {nil, imagePath, http.MethodPost, page, 405, "", false},
		"no cors, item":        {nil, itemPath, http.MethodGet, page, 404, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := preflight(t, crossSite(c.origins...)(t), c.path, c.method, c.from)
			if got.Status != c.status || got.Header.Get("Access-Control-Allow-Origin") != c.allowed {
				t.Errorf("status %d, header %v, want %d and %q", got.Status, got.Header, c.status, c.allowed)
			}
			if vary := got.Header.Get("Vary") == "Origin"; vary != c.vary {
				t.Errorf("Vary: %q, want Origin: %t", got.Header.Values("Vary"), c.vary)
			}
			if age := got.Header.Get("Access-Control-Max-Age") == "86400"; age != (c.allowed != "") {
				t.Errorf("Access-Control-Max-Age is 86400: %t", age)
			}
			wantNone := []string{"Access-Control-Allow-Credentials", "Access-Control-Allow-Private-Network", "Access-Control-Expose-Headers"}
			if c.allowed == "" {
				wantNone = append(wantNone, "Access-Control-Allow-Methods", "Access-Control-Allow-Headers")
			}
			for _, header := range wantNone {
				if got.Header[header] != nil {
					t.Errorf("%s: %q", header, got.Header[header])
				}
			}
		})
	}
}

// TestPreflightLists: a page may send and read the headers of the contract, which the specification
// of tus names in part.
func TestPreflightLists(t *testing.T) {
	t.Parallel()
	s := crossSite(page)(t)
	first, second := preflight(t, s, imagePath, http.MethodPost, page), s.Do(t, http.MethodGet, itemPath, "Origin: "+page, "")
	for header, names := range map[string]string{
		"Access-Control-Allow-Methods": "GET HEAD POST PUT PATCH DELETE",
		"Access-Control-Allow-Headers": "HTTP_SERVICE_API_KEY HTTP_SERVICE_ACCESS_TOKEN Service-Api-Key Service-Access-Token Authorization " +
			"Tus-Resumable Upload-Length Upload-Offset Upload-Metadata Upload-Defer-Length Upload-Concat Upload-Checksum " +
			"traceparent x-csrf-token X-HTTP-Method-Override Content-Type X-Requested-With X-Request-ID Range If-Range If-Match If-None-Match If-Modified-Since",
		"Access-Control-Expose-Headers": "Location Upload-Offset Upload-Length Upload-Metadata Upload-Expires Upload-Defer-Length " +
			"Upload-Concat Tus-Version Tus-Resumable Tus-Max-Size Tus-Extension Tus-Checksum-Algorithm " +
			"Media-Full-Path Media-Filename Media-WebP Idempotency-Replayed Retry-After Content-Length Content-Range Accept-Ranges ETag",
	} {
		got := strings.Split(strings.Join(append(first.Header[header], second.Header[header]...), ", "), ", ")
		for name := range strings.FieldsSeq(names) {
			if !slices.Contains(got, name) {
				t.Errorf("%s: %q lacks %s", header, got, name)
			}
		}
	}
}

// TestCORS: all responses may be read by listed pages, errors included.
func TestCORS(t *testing.T) {
	t.Parallel()
	const (
		from    = "Origin: " + page + "\n"
		allowed = "Access-Control-Allow-Origin: " + page + "\nVary: Origin\nAccess-Control-Allow-Credentials\n"
		none    = "Access-Control-Allow-Origin\nAccess-Control-Expose-Headers\n"
		wrong   = "api_key=" + someKey + "&password=x"
	)
	upload := form(file("a.txt", "text"))
	run(t, crossSite(page), []httpCase{
		{Name: "wrong password", Target: tokenPath, Header: from + urlencoded, Body: wrong, Status: 401, Want: allowed},
		{Name: "upload", Target: filePath, Header: from + multipart + bearer, Body: upload, Status: 200, Want: allowed},
		{Name: "no token", Target: filePath, Header: from + multipart, Body: upload, Status: 401, Want: allowed},
		{Name: "storage down", Target: filePath + "?alias=broken", Header: from + multipart + bearer, Body: upload, Status: 503, Want: allowed},
		{Name: "item", Target: itemPath, Header: from, Status: 200, Want: allowed, Text: "0123456789"},
		{Name: "item, no preflight", Target: itemPath, Header: from + "Access-Control-Request-Method: GET", Status: 200, Want: allowed, Text: "0123456789"},
		{Name: "HEAD", Method: http.MethodHead, Target: itemPath, Header: from, Status: 200, Want: allowed},
		{Name: "range", Target: itemPath, Header: from + "Range: bytes=2-3", Status: 206, Want: allowed, Text: "23"},
		{Name: "unchanged", Target: itemPath, Header: from + "If-None-Match: $TAG", Status: 304, Want: allowed},
		{Name: "missing item", Target: itemPath + "x", Header: from, Status: 404, Want: allowed},
		{Name: "redirect", Target: "/static/file/elsewhere/a.txt", Header: from, Status: 302, Want: allowed},
		{
			Name: "negotiated", Target: "/static/img/pictures/a.jpg", Header: from + "Accept: image/webp", Status: 200, Text: "variant",
			Want: "Access-Control-Allow-Origin: " + page + "\nVary: Origin, Accept",
		},
		{Name: "private item", Target: "/static/file/private/a.txt", Header: from, Status: 403, Want: allowed},
		{Name: "unlisted", Target: itemPath, Header: "Origin: https://other.example", Status: 200, Want: none + "Vary: Origin"},
		{Name: "unlisted upload", Target: filePath, Header: "Origin: https://other.example\n" + multipart + bearer, Body: upload, Status: 200, Want: none + "Vary: Origin"},
		{Name: "null", Target: itemPath, Header: "Origin: null", Status: 200, Want: none + "Vary: Origin"},
		{Name: "another path", Target: "/api/other", Header: from, Status: 404, Want: none + "Vary"},
	})
	run(t, crossSite("*"), []httpCase{
		{Name: "any", Target: itemPath, Header: from, Status: 200, Want: "Access-Control-Allow-Origin: *\nVary: Origin\nAccess-Control-Allow-Credentials"},
		{Name: "any null", Target: itemPath, Header: "Origin: null", Status: 200, Want: "Access-Control-Allow-Origin: *\nVary: Origin"},
		{Name: "any missing", Target: itemPath + "x", Header: from, Status: 404, Want: "Access-Control-Allow-Origin: *\nVary: Origin"},
	})
	run(t, crossSite(), []httpCase{
		{Name: "without cors", Target: itemPath, Header: from, Status: 200, Want: none + "Vary"},
		{Name: "without cors, upload", Target: filePath, Header: from + multipart + bearer, Body: upload, Status: 200, Want: none + "Vary"},
	})
}

// TestCORSServe: Serve sets the headers of an error before its caller writes the response, and
// Upload, which serves other sites of the process, sets none.
func TestCORSServe(t *testing.T) {
	t.Parallel()
	s := crossSite("*")(t)
	w := httptest.NewRecorder()
	handled, err := s.Handler.Serve(w, s.Request(t, http.MethodGet, itemPath+"x", "Origin: "+page, ""))
	if !handled || err == nil || w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Vary") != "Origin" {
		t.Errorf("handled %t, error %v, header %v", handled, err, w.Header())
	}
	if failed, ok := errors.AsType[interface {
		error
		HTTPStatus() int
	}](err); !ok || failed.HTTPStatus() != http.StatusNotFound {
		t.Errorf("the error %v has another status", err)
	}
	w = httptest.NewRecorder()
	r := s.Request(t, http.MethodPost, "/", "Origin: "+page+"\n"+multipart, form(file("a.txt", "text")))
	err = uploads.Serve(s.Gate, w, r, item.File, caller.Known{Account: account(), Origin: item.OriginHTTP})
	if err != nil || w.Code != http.StatusOK || w.Header()["Access-Control-Allow-Origin"] != nil || w.Header()["Vary"] != nil {
		t.Errorf("status %d, error %v, header %v", w.Code, err, w.Header())
	}
}

// TestPreflightOfAClosedService: without a configuration a preflight request is like any other.
func TestPreflightOfAClosedService(t *testing.T) {
	t.Parallel()
	s := crossSite(page)(t)
	_ = s.First.Close()
	for path, want := range map[string]int{imagePath: http.StatusServiceUnavailable, itemPath: http.StatusNotFound} {
		if got := preflight(t, s, path, http.MethodPost, page); got.Status != want {
			t.Errorf("%s: status %d, want %d", path, got.Status, want)
		}
	}
}
