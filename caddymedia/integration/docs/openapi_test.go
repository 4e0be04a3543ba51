package docs_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
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
	s := c.observe(site.Start(t, site.Basic+"limits {\nlogin_failures 3\n}", "media"))
	s.Token(t, site.APIKey)
	post := func(header http.Header, body string, status int) {
		t.Helper()
		site.Case{Method: http.MethodPost, Path: site.TokenPath, Header: header, Body: body, WantStatus: status}.Check(t, s)
	}
	urlencoded := site.Headers("Content-Type", "application/x-www-form-urlencoded")
	post(site.FormType, site.Form(site.Field("api_key", site.APIKey), site.Field("password", site.Password)), http.StatusOK)
	post(urlencoded, "api_key="+site.APIKey, http.StatusBadRequest)
	post(urlencoded, "api_key=a&api_key=b&password=c", http.StatusBadRequest)
	post(urlencoded, "api_key="+strings.Repeat("a", 64<<10), http.StatusRequestEntityTooLarge)
	post(site.Headers("Content-Type", "application/json"), "{}", http.StatusUnsupportedMediaType)
	post(nil, "", http.StatusUnsupportedMediaType)
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
		site.Case{Method: method, Path: site.TokenPath, WantStatus: http.StatusMethodNotAllowed}.Check(t, s)
	}
	for range 3 {
		s.Login(t, site.APIKey, "a guess")
	}
	site.Case{
		Method: http.MethodPost, Path: site.TokenPath, Header: urlencoded,
		Body: "api_key=" + site.APIKey + "&password=" + site.Password, WantStatus: http.StatusTooManyRequests,
	}.Check(t, s)
}

// documentedAliases is a configuration with an account that may use only one alias, and an alias
// whose items are replaced.
const documentedAliases = site.Account + `
account ` + site.OtherKey + ` ` + site.CheapHash + ` {
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
	s := c.observe(site.Start(t, documentedAliases, "media"))
	token, limited := s.Token(t, site.APIKey), s.Token(t, site.OtherKey)
	kinds := map[string]struct{ name, good, bad string }{
		"/api/upload/image": {"a.jpg", sample.JPEG(t, 4, 3), sample.PNG(t, 4, 3)},
		"/api/upload/file":  {"a.txt", "text", "\x7fELF\x02\x01\x01\x00"},
	}
	for path, kind := range kinds {
		post := func(header http.Header, status int, parts ...site.Part) {
			t.Helper()
			site.Case{Method: http.MethodPost, Path: path, Header: site.Merged(site.FormType, header), Body: site.Form(parts...), WantStatus: status}.Check(t, s)
		}
		good, bad := site.File(kind.name, kind.good), site.File(kind.name, kind.bad)
		large := site.File(kind.name, kind.good+strings.Repeat(" ", 2<<10))
		indexed := good
		indexed.Name = "files[0]"
		bearer := site.Headers("Authorization", "Bearer "+token)
		post(site.AuthHeader(site.APIKey, token), http.StatusOK, good)
		post(site.Headers("Service-Api-Key", site.APIKey, "Service-Access-Token", token), http.StatusOK, good, good)
		post(bearer, http.StatusOK, indexed, site.Field("alias", "other"), site.Field("sub_folder", "a/b"), site.Field("more", "ignored"))
		site.Case{
			Method: http.MethodPost, Path: path + "?alias=other&sub_folder=%2F", Header: site.Merged(site.FormType, bearer),
			Body: site.Form(good), WantStatus: http.StatusOK,
		}.Check(t, s)
		post(bearer, http.StatusBadRequest)
		post(bearer, http.StatusBadRequest, good, site.Field("alias", "none"))
		post(bearer, http.StatusBadRequest, good, site.Field("sub_folder", ".."))
		post(nil, http.StatusUnauthorized, good)
		post(site.Headers("Service-Access-Token", token), http.StatusUnauthorized, good)
		post(site.Headers("Authorization", "Bearer "+limited), http.StatusForbidden, good)
		post(bearer, http.StatusConflict, site.Field("alias", "other"), good, good)
		post(bearer, http.StatusRequestEntityTooLarge, site.Field("alias", "other"), large)
		post(bearer, http.StatusUnsupportedMediaType, good, bad, site.File("x.php", "x"))
		site.Case{Method: http.MethodPost, Path: path, Header: bearer, Body: "{}", WantStatus: http.StatusUnsupportedMediaType}.Check(t, s)
		site.Case{Method: http.MethodGet, Path: path, Header: bearer, WantStatus: http.StatusMethodNotAllowed}.Check(t, s)
	}
}

// manyUploads starts one upload more than an account may have in progress.
func (c *contract) manyUploads(t *testing.T) {
	s := c.observe(site.Start(t, site.Basic+"limits {\nmax_uploads 1\n}", "media"))
	bearer := site.Headers("Authorization", "Bearer "+s.Token(t, site.APIKey))
	for _, path := range []string{"/api/upload/image", "/api/upload/file"} {
		site.Eventually(t, "an upload is under way", func() bool {
			// One more each time, since the service may refuse it beside the request below.
			fmt.Fprintf(s.Dial(t), "POST %s HTTP/1.1\r\nHost: media.test\r\nAuthorization: %s\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n",
				path, bearer.Get("Authorization"), site.FormType.Get("Content-Type"))
			return s.Do(t, http.MethodPost, path, site.Merged(site.FormType, bearer), site.Form()).Status == http.StatusTooManyRequests
		})
	}
}

func (c *contract) items(t *testing.T) {
	s := c.observe(site.Start(t, documentedAliases, "media"))
	alias := func(name string) site.Part { return site.Field("alias", name) }
	picture, svg := site.File("a.jpg", sample.PhotoJPEG(64, 64)), site.File("a.svg", sample.SVG)
	text, page := site.File("a.txt", "some text"), site.File("a.html", "<p>text</p>")
	for _, items := range [][]site.Stored{
		append(s.UploadImage(t, picture, svg).Result(t), s.UploadImage(t, alias("elsewhere"), picture).One(t)),
		append(s.UploadFile(t, text, page).Result(t), s.UploadFile(t, alias("elsewhere"), text).One(t)),
	} {
		first, active, elsewhere := items[0].FullPath, items[1].FullPath, items[2].FullPath
		tag := s.Fetch(t, first).Header.Get("ETag")
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
				site.Case{Method: method, Path: strings.TrimPrefix(tt.address, s.URL), Header: site.Headers(tt.header...), WantStatus: want}.Check(t, s)
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
	media := site.Account
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
	s := c.observe(site.Start(t, media, "media"))
	for bucket, status := range map[string]int{
		"full": http.StatusInsufficientStorage, "forbidden": http.StatusBadGateway, "down": http.StatusServiceUnavailable,
	} {
		s.UploadImage(t, site.Field("alias", bucket), site.File("a.jpg", sample.JPEG(t, 4, 3))).Failures(t, status)
		s.UploadFile(t, site.Field("alias", bucket), site.File("a.txt", "text")).Failures(t, status)
		if bucket == "full" {
			continue
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			site.Case{Method: method, Path: "/static/img/" + bucket + "/a.jpg", WantStatus: status}.Check(t, s)
			site.Case{Method: method, Path: "/static/file/" + bucket + "/a.txt", WantStatus: status}.Check(t, s)
		}
	}
}

// noStore uses a site with tokens in a Redis that is down.
func (c *contract) noStore(t *testing.T) {
	s := c.observe(site.Start(t, site.Basic+"tokens redis redis://"+servers.FreeAddress(t)+"\n", "media"))
	if r := s.Login(t, site.APIKey, site.Password); r.Status != http.StatusServiceUnavailable {
		t.Errorf("a login: %d %s", r.Status, r.Body)
	}
	header := site.Merged(site.AuthHeader(site.APIKey, strings.Repeat("A", 43)), site.FormType)
	s.Do(t, http.MethodPost, "/api/upload/image", header, site.Form(site.File("a.jpg", sample.JPEG(t, 4, 3)))).Failures(t, http.StatusServiceUnavailable)
	s.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(site.File("a.txt", "text"))).Failures(t, http.StatusServiceUnavailable)
}
