package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// TestOpenAPI makes a Caddy return every answer of the OpenAPI document, and compares each answer
// and its request with the document.
func TestOpenAPI(t *testing.T) {
	c := loadContract(t)
	t.Run("tokens", c.tokens)
	t.Run("uploads", c.uploads)
	t.Run("many uploads", c.manyUploads)
	t.Run("items", c.items)
	t.Run("storages that fail", c.storagesThatFail)
	t.Run("no store of tokens", c.noStore)
	c.complete([]string{
		// Faults of the service itself, of which none is known.
		"generateToken 500", "uploadImage 500", "uploadFile 500",
	})
}

func (c *contract) tokens(t *testing.T) {
	s := c.observe(startSite(t, basic+"limits {\nlogin_failures 3\n}", "media"))
	s.token(t, apiKey)
	post := func(header http.Header, body string, status int) {
		t.Helper()
		httpCase{method: http.MethodPost, path: tokenPath, header: header, body: body, wantStatus: status}.check(t, s)
	}
	urlencoded := headers("Content-Type", "application/x-www-form-urlencoded")
	post(formType, form(field("api_key", apiKey), field("password", password)), http.StatusOK)
	post(urlencoded, "api_key="+apiKey, http.StatusBadRequest)
	post(urlencoded, "api_key=a&api_key=b&password=c", http.StatusBadRequest)
	post(urlencoded, "api_key="+strings.Repeat("a", 64<<10), http.StatusRequestEntityTooLarge)
	post(headers("Content-Type", "application/json"), "{}", http.StatusUnsupportedMediaType)
	post(nil, "", http.StatusUnsupportedMediaType)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
		httpCase{method: method, path: tokenPath, wantStatus: http.StatusMethodNotAllowed}.check(t, s)
	}
	for range 3 {
		s.login(t, apiKey, "a guess")
	}
	httpCase{
		method: http.MethodPost, path: tokenPath, header: urlencoded,
		body: "api_key=" + apiKey + "&password=" + password, wantStatus: http.StatusTooManyRequests,
	}.check(t, s)
}

// documentedAliases is a configuration with an account that may use only one alias, and an alias
// whose items are replaced.
const documentedAliases = account + `
account ` + otherKey + ` ` + cheapHash + ` {
	aliases other
}
storage default {
	driver local $ROOT
}
storage replacing {
	driver local $ROOT-replacing
	overwrite_strategy overwrite
}
image_alias content {
	webp
	negotiate on
}
image_alias other {
	storage replacing
	max_size 1KiB
}
image_alias elsewhere {
	redirect public https://bucket.example.com
}
file_alias content {
	extensions txt pdf html
}
file_alias other {
	storage replacing
	max_size 1KiB
}
file_alias elsewhere {
	redirect public https://bucket.example.com
}
`

func (c *contract) uploads(t *testing.T) {
	s := c.observe(startSite(t, documentedAliases, "media"))
	token, limited := s.token(t, apiKey), s.token(t, otherKey)
	kinds := map[string]struct{ name, good, bad string }{
		"/api/upload/image": {"a.jpg", jpegOf(t, 4, 3), pngOf(t, 4, 3)},
		"/api/upload/file":  {"a.txt", "text", "\x7fELF\x02\x01\x01\x00"},
	}
	for path, kind := range kinds {
		post := func(header http.Header, status int, parts ...formPart) {
			t.Helper()
			httpCase{method: http.MethodPost, path: path, header: merged(formType, header), body: form(parts...), wantStatus: status}.check(t, s)
		}
		good, bad := file(kind.name, kind.good), file(kind.name, kind.bad)
		large := file(kind.name, kind.good+strings.Repeat(" ", 2<<10))
		indexed := good
		indexed.name = "files[0]"
		bearer := headers("Authorization", "Bearer "+token)
		post(documented(apiKey, token), http.StatusOK, good)
		post(headers("Service-Api-Key", apiKey, "Service-Access-Token", token), http.StatusOK, good, good)
		post(bearer, http.StatusOK, indexed, field("alias", "other"), field("sub_folder", "a/b"), field("more", "ignored"))
		httpCase{
			method: http.MethodPost, path: path + "?alias=other&sub_folder=%2F", header: merged(formType, bearer),
			body: form(good), wantStatus: http.StatusOK,
		}.check(t, s)
		post(bearer, http.StatusBadRequest)
		post(bearer, http.StatusBadRequest, good, field("alias", "none"))
		post(bearer, http.StatusBadRequest, good, field("sub_folder", ".."))
		post(nil, http.StatusUnauthorized, good)
		post(headers("Service-Access-Token", token), http.StatusUnauthorized, good)
		post(headers("Authorization", "Bearer "+limited), http.StatusForbidden, good)
		post(bearer, http.StatusConflict, field("alias", "other"), good, good)
		post(bearer, http.StatusRequestEntityTooLarge, field("alias", "other"), large)
		post(bearer, http.StatusUnsupportedMediaType, good, bad, file("x.php", "x"))
		httpCase{method: http.MethodPost, path: path, header: bearer, body: "{}", wantStatus: http.StatusUnsupportedMediaType}.check(t, s)
		httpCase{method: http.MethodGet, path: path, header: bearer, wantStatus: http.StatusMethodNotAllowed}.check(t, s)
	}
}

// manyUploads starts one upload more than an account may have in progress.
func (c *contract) manyUploads(t *testing.T) {
	s := c.observe(startSite(t, basic+"limits {\nmax_uploads 1\n}", "media"))
	bearer := headers("Authorization", "Bearer "+s.token(t, apiKey))
	for _, path := range []string{"/api/upload/image", "/api/upload/file"} {
		eventually(t, "an upload is under way", func() bool {
			// One more each time, since the service may refuse it beside the request below.
			fmt.Fprintf(s.dial(t), "POST %s HTTP/1.1\r\nHost: media.test\r\nAuthorization: %s\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n",
				path, bearer.Get("Authorization"), formType.Get("Content-Type"))
			return s.do(t, http.MethodPost, path, merged(formType, bearer), form()).status == http.StatusTooManyRequests
		})
	}
}

func (c *contract) items(t *testing.T) {
	s := c.observe(startSite(t, documentedAliases, "media"))
	alias := func(name string) formPart { return field("alias", name) }
	picture, svg := file("a.jpg", drawnJPEG(64, 64)), file("a.svg", svgPicture)
	text, page := file("a.txt", "some text"), file("a.html", "<p>text</p>")
	for _, items := range [][]stored{
		append(s.uploadImage(t, picture, svg).result(t), s.uploadImage(t, alias("elsewhere"), picture).one(t)),
		append(s.uploadFile(t, text, page).result(t), s.uploadFile(t, alias("elsewhere"), text).one(t)),
	} {
		first, active, elsewhere := items[0].FullPath, items[1].FullPath, items[2].FullPath
		tag := s.fetch(t, first).header.Get("ETag")
		for _, tt := range []struct {
			address string
			status  int
			header  []string
		}{
			{first, http.StatusOK, []string{"Accept", "image/webp,*/*"}},
			{first, http.StatusOK, []string{"Range", "bytes=0-1,3-4"}},
			{active, http.StatusOK, nil},
			{first, http.StatusPartialContent, []string{"Range", "bytes=2-5"}},
			{first, http.StatusPartialContent, []string{"Range", "bytes=-3", "If-Range", tag}},
			{first, http.StatusOK, []string{"Range", "bytes=-3", "If-Range", `"other"`}},
			{first, http.StatusNotModified, []string{"If-None-Match", tag}},
			{first, http.StatusNotModified, []string{"If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"}},
			{first, http.StatusPreconditionFailed, []string{"If-Match", `"other"`}},
			{first, http.StatusPreconditionFailed, []string{"If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"}},
			{first, http.StatusRequestedRangeNotSatisfiable, []string{"Range", "bytes=1000000-"}},
			{first + "x", http.StatusNotFound, nil},
			{strings.Replace(first, "/content/", "/none/", 1), http.StatusNotFound, nil},
			{elsewhere, http.StatusFound, nil},
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				want := tt.status
				if method == http.MethodHead && want == http.StatusFound {
					want = http.StatusOK
				}
				httpCase{method: method, path: strings.TrimPrefix(tt.address, s.url), header: headers(tt.header...), wantStatus: want}.check(t, s)
			}
		}
	}
}

// storagesThatFail uses buckets of a service that answers each with another error.
func (c *contract) storagesThatFail(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bucket, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch {
		case bucket == "full" && r.Method == http.MethodPut:
			w.WriteHeader(http.StatusInsufficientStorage)
		case bucket == "forbidden":
			w.WriteHeader(http.StatusForbidden)
		case bucket == "down":
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(service.Close)
	media := account
	for _, bucket := range []string{"full", "forbidden", "down"} {
		media += `
			storage ` + bucket + ` {
				driver s3 ` + bucket + ` {
					endpoint ` + service.URL + `
					access_key_id key
					secret_access_key secret
				}
			}
			image_alias ` + bucket + ` {
				storage ` + bucket + `
			}
			file_alias ` + bucket + ` {
				storage ` + bucket + `
			}`
	}
	s := c.observe(startSite(t, media, "media"))
	for bucket, status := range map[string]int{
		"full": http.StatusInsufficientStorage, "forbidden": http.StatusBadGateway, "down": http.StatusServiceUnavailable,
	} {
		s.uploadImage(t, field("alias", bucket), file("a.jpg", jpegOf(t, 4, 3))).failures(t, status)
		s.uploadFile(t, field("alias", bucket), file("a.txt", "text")).failures(t, status)
		if bucket == "full" {
			continue
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			httpCase{method: method, path: "/static/img/" + bucket + "/a.jpg", wantStatus: status}.check(t, s)
			httpCase{method: method, path: "/static/file/" + bucket + "/a.txt", wantStatus: status}.check(t, s)
		}
	}
}

// noStore uses a site with tokens in a Redis that is down.
func (c *contract) noStore(t *testing.T) {
	s := c.observe(startSite(t, basic+"tokens redis redis://"+servers.FreeAddress(t)+"\n", "media"))
	if r := s.login(t, apiKey, password); r.status != http.StatusServiceUnavailable {
		t.Errorf("a login: %d %s", r.status, r.body)
	}
	header := merged(documented(apiKey, strings.Repeat("A", 43)), formType)
	s.do(t, http.MethodPost, "/api/upload/image", header, form(file("a.jpg", jpegOf(t, 4, 3)))).failures(t, http.StatusServiceUnavailable)
	s.do(t, http.MethodPost, "/api/upload/file", header, form(file("a.txt", "text"))).failures(t, http.StatusServiceUnavailable)
}
