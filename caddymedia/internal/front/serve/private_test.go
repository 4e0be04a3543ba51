package serve_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/signing"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/mediahttp"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

const (
	oldSigningKey = "the signing key of the last year"
	signingKey    = "the signing key of the present year"
)

// withPrivate is a site with private aliases on the backend: the image alias private (with
// variants, the public rendition thumb and the rendition wide), the image alias shared (caches may
// keep its items, generation 7), and the file aliases private and stepped (expires at full hours).
// Each has an item.
func withPrivate(t *testing.T) *site {
	t.Helper()
	s := newSiteWith(t, media.Limits{}, setPrivateAliases)
	s.Handler = mediahttp.New(s, mediahttp.Options{Log: slog.New(s.Log), Now: s.Now})
	for key, content := range map[string]string{
		"img/private/26-11/a.png": pngOf(40, 30), "img/private/b.png": pngOf(40, 30),
		"img/private/a.svg": svgPicture, "img/shared/a.png": pngOf(40, 30),
		"file/private/26-11/a.txt": "0123456789", "file/private/a.html": "<p>", "file/private/A.txt": "another",
		"file/private/ěš č.txt": "letters", "file/private/26-11x/a.txt": "beside", "file/stepped/a.txt": "0123456789",
	} {
		s.Put(t, key, content)
	}
	s.Put(t, "img/private/26-11/a.png.webp", "variant") // after its image
	return s
}

func setPrivateAliases(c *media.Config) {
	c.SigningKey = []string{signingKey, oldSigningKey}
	c.Accounts[someKey].May = []string{"sign", "upload", "list", "copy"}
	renditions := map[string]*media.Rendition{"thumb": {Width: 20}, "wide": {Width: 30}}
	private := func(p media.Private) media.AliasOptions { return media.AliasOptions{Storage: "main", Private: &p} }
	c.ImageAliases["private"] = &media.ImageAlias{
		AliasOptions: private(media.Private{Public: []string{"thumb"}}), Renditions: renditions, WebP: &media.WebP{}, Negotiate: true,
	}
	c.ImageAliases["shared"] = &media.ImageAlias{AliasOptions: private(media.Private{SharedCache: true, Generation: 7}), Renditions: renditions}
	extensions := []string{"txt", "html"}
	c.FileAliases["private"] = &media.FileAlias{AliasOptions: private(media.Private{}), Extensions: extensions}
	c.FileAliases["stepped"] = &media.FileAlias{AliasOptions: private(media.Private{Step: options.Duration(time.Hour)})}
}

// inAnHour is the end of the addresses of the tests.
var inAnHour = noon.Add(time.Hour).Unix()

// query returns the query that the fields sign, in the order of the documentation.
func query(key string, f signing.Fields) string {
	q := fmt.Sprintf("expires=%d&signature=%s", f.Expires, f.Sign([]byte(key)))
	if f.Scope == signing.Folder {
		q += "&scope=" + url.QueryEscape(f.Name)
	}
	if f.Download != "" {
		q += "&download=" + url.QueryEscape(f.Download)
	}
	return q
}

// imageOf, paper and below return the query for an image, a file and a folder of files of the
// aliases called private.
func imageOf(filename, rendition string) string {
	return query(signingKey, signing.Fields{
		Kind: "image", Alias: "private", Scope: signing.Filename, Name: filename, Rendition: rendition, Expires: inAnHour,
	})
}

func paper(filename string) string { return paperWith(filename, func(*signing.Fields) {}) }

func paperWith(filename string, change func(*signing.Fields)) string {
	f := signing.Fields{Kind: "file", Alias: "private", Scope: signing.Filename, Name: filename, Expires: inAnHour}
	change(&f)
	return query(signingKey, f)
}

func below(folder string) string {
	return paperWith(folder, func(f *signing.Fields) { f.Scope = signing.Folder })
}

const (
	privateImages = "/static/img/private"
	privateFiles  = "/static/file/private"
	hourPrivate   = "Cache-Control: private, max-age=3600\n"
)

// TestPrivate: items, variants and renditions are served with a signature of the item, and a
// signature of a rendition is for that one alone.
func TestPrivate(t *testing.T) {
	t.Parallel()
	const image = "26-11/a.png"
	run(t, withPrivate, []httpCase{
		{Name: "file", Target: privateFiles + "/26-11/a.txt?" + paper("26-11/a.txt"), Status: 200, Text: "0123456789", Want: hourPrivate + "Vary\nReferrer-Policy: no-referrer\nContent-Disposition\nX-Content-Type-Options: nosniff"},
		{Name: "HEAD", Method: http.MethodHead, Target: privateFiles + "/26-11/a.txt?" + paper("26-11/a.txt"), Status: 200, Want: hourPrivate + "Content-Length: 10"},
		{Name: "range past the end", Target: privateFiles + "/26-11/a.txt?" + paper("26-11/a.txt"), Header: "Range: bytes=20-", Status: 416, Want: "Cache-Control: no-store"},
		{Name: "image", Target: privateImages + "/26-11/a.png?" + imageOf(image, ""), Status: 200, Want: hourPrivate + "Vary: Accept\nContent-Type: image/png"},
		{Name: "negotiated", Target: privateImages + "/26-11/a.png?" + imageOf(image, ""), Header: "Accept: image/webp", Status: 200, Text: "variant", Want: hourPrivate + "Vary: Accept"},
		{Name: "variant of the image", Target: privateImages + "/26-11/a.png.webp?" + imageOf(image, ""), Status: 200, Text: "variant", Want: hourPrivate},
		{Name: "image of a variant", Target: privateImages + "/26-11/a.png?" + imageOf(image+".webp", ""), Status: 403},
		{Name: "rendition of the image", Target: privateImages + "@wide/26-11/a.png?" + imageOf(image, ""), Status: 200, Want: hourPrivate + "Content-Type: image/png\nVary: Accept"},
		{Name: "rendition itself", Target: privateImages + "@wide/26-11/a.png?" + imageOf(image, "wide"), Status: 200, Want: hourPrivate},
		{Name: "another rendition", Target: privateImages + "@wide/26-11/a.png?" + imageOf(image, "thumb"), Status: 403},
		{Name: "image of a rendition", Target: privateImages + "/26-11/a.png?" + imageOf(image, "wide"), Status: 403},
		{Name: "variant of a rendition", Target: privateImages + "/26-11/a.png.webp?" + imageOf(image, "wide"), Status: 403},
		{Name: "public rendition", Target: privateImages + "@thumb/26-11/a.png", Status: 200, Want: "Cache-Control: public, max-age=86400\nVary: Accept\nReferrer-Policy"},
		{Name: "public rendition with a query", Target: privateImages + "@thumb/26-11/a.png?expires=1&download=y", Status: 200, Want: "Content-Disposition\nCache-Control: public, max-age=86400"},
		{Name: "public rendition of nothing", Target: privateImages + "@thumb/none.png", Status: 404, Want: "Cache-Control: no-store"},
		{Name: "public rendition of an SVG", Target: privateImages + "@thumb/a.svg", Status: 403},
		{Name: "SVG as its rendition", Target: privateImages + "@thumb/a.svg?" + imageOf("a.svg", "thumb"), Status: 200, Text: svgPicture, Want: hourPrivate + "Referrer-Policy: no-referrer\nContent-Security-Policy: " + sandbox},
		{Name: "HTML", Target: privateFiles + "/a.html?" + paper("a.html"), Status: 200, Want: "Referrer-Policy: no-referrer\nContent-Disposition: attachment; filename=a.html"},
		{Name: "HTML of a public alias", Target: "/static/file/web/none.html", Status: 404, Want: "Referrer-Policy"},
		{Name: "letters", Target: privateFiles + "/%C4%9B%C5%A1%20%C4%8D.txt?" + paper("ěš č.txt"), Status: 200, Text: "letters"},
		{Name: "missing", Target: privateFiles + "/none.txt?" + paper("none.txt"), Status: 404, Want: "Cache-Control: no-store"},
		{Name: "invalid name", Target: privateFiles + "/a//b.txt?" + paper("a//b.txt"), Status: 404, Want: "Cache-Control: no-store"},
		{Name: "encoded slash", Target: privateFiles + "/26-11%2Fa.txt?" + paper("26-11/a.txt"), Status: 404, Want: "Cache-Control: no-store"},
		{Name: "key of the last year", Target: privateFiles + "/26-11/a.txt?" + query(oldSigningKey, signing.Fields{Kind: "file", Alias: "private", Scope: "filename", Name: "26-11/a.txt", Expires: inAnHour}), Status: 200},
		{Name: "other parameters", Target: privateFiles + "/26-11/a.txt?v=1&" + paper("26-11/a.txt") + "&v=2&%zz&Expires=1&x;y", Status: 200},
		{Name: "other order", Target: privateFiles + "/26-11/a.txt?" + reversed(paper("26-11/a.txt")), Status: 200},
		{Name: "encoded parameters", Target: privateFiles + "/26-11/a.txt?" + strings.Replace(paper("26-11/a.txt"), "expires", "%65xpires", 1), Status: 200},
		{Name: "shared", Target: "/static/img/shared/a.png?" + query(signingKey, signing.Fields{Kind: "image", Alias: "shared", Scope: "filename", Name: "a.png", Expires: inAnHour, Generation: 7}), Status: 200, Want: "Cache-Control: public, max-age=3600"},
		{Name: "shared for days", Target: "/static/img/shared/a.png?" + query(signingKey, signing.Fields{Kind: "image", Alias: "shared", Scope: "filename", Name: "a.png", Expires: noon.Unix() + 604800, Generation: 7}), Status: 200, Want: "Cache-Control: public, max-age=604800"},
		{Name: "private for days", Target: privateFiles + "/a.html?" + paperWith("a.html", func(f *signing.Fields) { f.Expires = noon.Unix() + 604800 }), Status: 200, Want: hourPrivate},
		{Name: "unknown rendition", Target: privateImages + "@none/26-11/a.png?" + imageOf(image, ""), Status: 404, Want: "Cache-Control: no-store"},
		{Name: "listed by an account", Target: itemsPath + "file/private/26-11/a.txt", Header: bearer, Status: 200, Has: `"full_path":"http://example.com/static/file/private/26-11/a.txt"`},
		{Name: "uploaded", Method: http.MethodPost, Target: filePath, Header: bearer + multipart, Body: form(field("alias", "private"), file("new.txt", "x")), Status: 200, Has: `"full_path":"http://example.com/static/file/private/new.txt"`},
		{Name: "copied by its account", Target: itemsPath + "file/private/26-11/a.txt", Header: bearer + urlencoded, Body: "copy_to=a.txt&to_alias=one", Status: 200},
	})
}

func reversed(query string) string {
	a, b, _ := strings.Cut(query, "&")
	return b + "&" + a
}

// altered are addresses of files that exist, whose signature is not valid for them.
var altered = func() map[string]string {
	const address = privateFiles + "/26-11/a.txt"
	good := paper("26-11/a.txt")
	with := func(change func(*signing.Fields)) string { return address + "?" + paperWith("26-11/a.txt", change) }
	download := func(name string) string { return with(func(f *signing.Fields) { f.Download = name }) }
	signature := good[strings.Index(good, "&signature=")+len("&signature="):]
	expires := good[:strings.Index(good, "&")]
	return map[string]string{
		"no signature":              address,
		"no expires":                address + "?signature=" + signature,
		"empty signature":           address + "?" + expires + "&signature=",
		"later":                     address + "?" + fmt.Sprintf("expires=%d&signature=%s", inAnHour+1, signature),
		"another spelling of later": address + "?expires=0" + strings.TrimPrefix(good, "expires="),
		"plus":                      address + "?expires=%2B" + strings.TrimPrefix(good, "expires="),
		"huge expires":              address + "?expires=99999999999999999999&signature=" + signature,
		"no number":                 address + "?expires=soon&signature=" + signature,
		"one letter":                address + "?" + expires + "&signature=" + flipped(signature),
		"case of the signature":     address + "?" + expires + "&signature=" + strings.ToUpper(signature),
		"another key":               address + "?" + query(strings.Repeat("x", 32), signing.Fields{Kind: "file", Alias: "private", Scope: "filename", Name: "26-11/a.txt", Expires: inAnHour}),
		"another kind":              with(func(f *signing.Fields) { f.Kind = "image" }),
		"another alias":             with(func(f *signing.Fields) { f.Alias = "stepped" }),
		"another generation":        with(func(f *signing.Fields) { f.Generation = 1 }),
		"a rendition":               with(func(f *signing.Fields) { f.Rendition = "wide" }),
		"expired":                   with(func(f *signing.Fields) { f.Expires = noon.Unix() - 6 }),
		"too far ahead":             with(func(f *signing.Fields) { f.Expires = noon.Unix() + 604801 }),
		"another item":              address + "?" + paper("26-11/b.txt"),
		"item of another case":      privateFiles + "/A.txt?" + paper("a.txt"),
		"twice encoded":             privateFiles + "/26-11%252Fa.txt?" + good,
		"doubled slash":             privateFiles + "//26-11/a.txt?" + good,
		"dot segment":               privateFiles + "/./26-11/a.txt?" + good,
		"folder":                    privateFiles + "/26-11/?" + good,
		"doubled expires":           address + "?" + good + "&" + expires,
		"doubled signature":         address + "?" + good + "&signature=" + signature,
		"doubled with another name": address + "?" + good + "&%73ignature=" + signature,
		"malformed signature":       address + "?" + good + "&signature=%zz",
		"semicolon":                 address + "?" + strings.Replace(good, "&", ";", 1),
		"empty download":            address + "?" + good + "&download=",
		"download not signed":       address + "?" + good + "&download=x",
		"another download":          strings.Replace(download("a"), "&download=a", "&download=b", 1),
		"download removed":          strings.Replace(download("a"), "&download=a", "", 1),
		"doubled download":          download("a") + "&download=a",
		"scope not signed":          address + "?" + good + "&scope=26-11",
		"scope of an item":          address + "?" + good + "&scope=26-11/a.txt",
		"doubled scope":             address + "?" + below("26-11") + "&scope=26-11",
		"scope removed":             address + "?" + strings.Replace(below("26-11"), "&scope=26-11", "", 1),
		"scope of another folder":   address + "?" + below("26-12"),
		"scope widened":             address + "?" + strings.Replace(below("26-12"), "scope=26-12", "scope=26-11", 1),
		"scope that is a prefix":    privateFiles + "/26-11x/a.txt?" + below("26-11"),
		"scope with a slash":        address + "?" + below("26-11/"),
		"scope in upper case":       privateFiles + "/A.txt?" + below("a"),
	}
}()

// flipped returns a signature with another letter in its middle.
func flipped(signature string) string {
	b := []byte(signature)
	if b[20]++; b[20] > 'y' || b[20] < 'A' {
		b[20] = 'A'
	}
	return string(b)
}

// TestAltered: an address that is not exactly the signed one gets the same 403 as any other,
// whether the item exists or not, and the storage is not accessed. Conditions make no difference.
func TestAltered(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	var mu sync.Mutex
	accessed := 0
	s.Driver.Fail = func(op, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		if op != "list" { // by the test
			accessed++
		}
		return nil
	}
	var refused *reply
	for name, address := range altered {
		missing := strings.Replace(address, "/26-11/a.txt?", "/26-11/none.txt?", 1)
		for _, target := range []string{address, missing} {
			for _, header := range []string{"", "If-None-Match: *", "If-Modified-Since: " + noon.Add(time.Hour).Format(http.TimeFormat), "If-Match: \"x\"", "Range: bytes=0-1", "If-Unmodified-Since: Mon, 02 Jan 2006 15:04:05 GMT"} {
				before := accessed
				w := httptest.NewRecorder()
				s.Handler.ServeHTTP(w, s.Request(t, http.MethodGet, target, header, ""))
				got := &reply{Status: w.Code, Header: w.Result().Header, Body: w.Body.String()}
				if refused == nil {
					refused = got
				}
				if got.Status != 403 || got.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s: %s with %q: %d %v", name, target, header, got.Status, got.Header)
				}
				if got.Body != refused.Body || !maps.EqualFunc(got.Header, refused.Header, func(a, b []string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
					t.Errorf("%s: %s with %q has another answer: %v %q", name, target, header, got.Header, got.Body)
				}
				if accessed != before {
					t.Errorf("%s: %s with %q: the storage was accessed", name, target, header)
				}
			}
		}
	}
	head := httpCase{Method: http.MethodHead, Target: privateFiles + "/26-11/a.txt", Status: 403, Want: "Cache-Control: no-store"}.Check(t, s)
	if !maps.EqualFunc(head.Header, refused.Header, func(a, b []string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
		t.Errorf("HEAD has other headers: %v", head.Header)
	}
}

// TestOtherSpellings: an address that means the same path is the same address.
func TestOtherSpellings(t *testing.T) {
	t.Parallel()
	run(t, withPrivate, []httpCase{
		{Name: "encoded dot", Target: privateFiles + "/26-11/a%2etxt?" + paper("26-11/a.txt"), Status: 200},
		{Name: "encoded letter", Target: privateFiles + "/26-11/%61.txt?" + paper("26-11/a.txt"), Status: 200},
		{Name: "encoded slash", Target: privateFiles + "/26-11%2Fa.txt?" + paper("26-11/a.txt"), Status: 404},
		{Name: "up, signed as requested", Target: privateFiles + "/x/%2e%2e/26-11/a.txt?" + paper("x/../26-11/a.txt"), Status: 404},
		{Name: "doubled slash, signed as requested", Target: privateFiles + "/26-11//a.txt?" + paper("26-11//a.txt"), Status: 404},
	})
}

// TestClocksApart: an address is accepted for 5 s after its end, for clocks that differ.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	address := privateFiles + "/26-11/a.txt?" + paper("26-11/a.txt")
	for _, c := range []struct {
		passed time.Duration
		status int
		want   string
	}{
		{time.Hour - time.Second, 200, "Cache-Control: private, max-age=1"},
		{time.Hour + 5*time.Second, 200, "Cache-Control: private, max-age=0"},
		{time.Hour + 5*time.Second + 1, 403, "Cache-Control: no-store"},
		{-604800*time.Second + time.Hour, 200, hourPrivate},
		{-604800*time.Second + time.Hour - 1, 403, "Cache-Control: no-store"},
	} {
		s.Passed.Store(int64(c.passed))
		httpCase{Target: address, Status: c.status, Want: c.want}.Check(t, s)
	}
}

// TestConditions: conditions of a signed address are answered as in a public alias, with the
// Cache-Control of the address.
func TestPrivateConditions(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	address := privateFiles + "/26-11/a.txt?" + paper("26-11/a.txt")
	got := httpCase{Target: address, Status: 200}.Check(t, s)
	httpCase{Target: address, Header: "If-None-Match: " + got.Header.Get("ETag"), Status: 304, Want: hourPrivate + "ETag: " + got.Header.Get("ETag")}.Check(t, s)
	httpCase{Target: address, Header: "If-Modified-Since: " + got.Header.Get("Last-Modified"), Status: 304, Want: hourPrivate}.Check(t, s)
	httpCase{Target: address, Header: `If-Match: "x"`, Status: 412}.Check(t, s)
	httpCase{Target: address, Header: "Range: bytes=1-2\nIf-Range: " + got.Header.Get("ETag"), Status: 206, Text: "12", Want: hourPrivate}.Check(t, s)
}

// TestFolderSignature: one signature is for everything below a folder.
func TestFolderSignature(t *testing.T) {
	t.Parallel()
	images := func(folder, rendition string) string {
		return query(signingKey, signing.Fields{Kind: "image", Alias: "private", Scope: signing.Folder, Name: folder, Rendition: rendition, Expires: inAnHour})
	}
	run(t, withPrivate, []httpCase{
		{Name: "folder", Target: privateFiles + "/26-11/a.txt?" + below("26-11"), Status: 200, Want: hourPrivate},
		{Name: "beside", Target: privateFiles + "/a.html?" + below("26-11"), Status: 403},
		{Name: "variant", Target: privateImages + "/26-11/a.png.webp?" + images("26-11", ""), Status: 200, Text: "variant"},
		{Name: "rendition", Target: privateImages + "@wide/26-11/a.png?" + images("26-11", ""), Status: 200},
		{Name: "another rendition", Target: privateImages + "@wide/26-11/a.png?" + images("26-11", "thumb"), Status: 403},
		{Name: "images of a rendition", Target: privateImages + "/26-11/a.png?" + images("26-11", "wide"), Status: 403},
		{Name: "up", Target: privateFiles + "/26-11/../a.html?" + below("26-11"), Status: 404},
		{Name: "with a download", Target: privateFiles + "/26-11/a.txt?" + paperWith("26-11", func(f *signing.Fields) { f.Scope, f.Download = signing.Folder, "x.txt" }), Status: 200, Want: "Content-Disposition: attachment; filename=x.txt"},
	})
}

// TestGeneration: another generation and a removed key revoke all addresses; a new key that signs
// does not.
func TestGeneration(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	address := privateFiles + "/26-11/a.txt?" + paper("26-11/a.txt")
	for name, c := range map[string]struct {
		change func(*media.Config)
		status int
	}{
		"same":           {func(*media.Config) {}, 200},
		"new key":        {func(c *media.Config) { c.SigningKey = []string{strings.Repeat("n", 32), signingKey} }, 200},
		"key removed":    {func(c *media.Config) { c.SigningKey = []string{oldSigningKey} }, 403},
		"random key":     {func(c *media.Config) { c.SigningKey = nil }, 403},
		"generation":     {func(c *media.Config) { c.FileAliases["private"].Private.Generation = 1 }, 403},
		"public alias":   {func(c *media.Config) { c.FileAliases["private"].Private = nil }, 200},
		"step":           {func(c *media.Config) { c.FileAliases["private"].Private.Step = options.Duration(time.Hour) }, 200},
		"another prefix": {func(c *media.Config) { c.FileAliases["private"].Prefix = "papers" }, 404},
	} {
		s.Change = func(config *media.Config) {
			setPrivateAliases(config)
			c.change(config)
		}
		s.Current.Store(s.Service(t, media.Limits{}, account()))
		t.Log(name)
		httpCase{Target: address, Status: c.status}.Check(t, s)
	}
}

// presigning is a driver whose addresses show the options that they are signed with.
type presigning struct{ *memory.Driver }

func (presigning) Presign(_ context.Context, key string, o storagedrivers.PresignOptions) (string, error) {
	return "https://bucket.example/" + key + "?" + url.Values{
		"lifetime": {o.Lifetime.String()}, "cache": {o.CacheControl}, "disposition": {o.Disposition},
	}.Encode(), nil
}

// TestPrivateRedirect: the redirect comes after the check, and lives no longer than the signature.
func TestPrivateRedirect(t *testing.T) {
	t.Parallel()
	driver := memory.New()
	s := newSiteOn(t, presigning{driver}, media.Limits{}, func(c *media.Config) {
		setPrivateAliases(c)
		c.FileAliases["private"].Redirect = &media.Redirect{To: "presigned", Lifetime: options.Duration(10 * time.Minute)}
	})
	s.Driver, s.Handler = driver, mediahttp.New(s, mediahttp.Options{Now: s.Now})
	s.Put(t, "file/private/a.txt", "0123456789")
	s.Put(t, "file/private/a.html", "<p>")
	until := func(seconds int64, change func(*signing.Fields)) string {
		return paperWith("a.txt", func(f *signing.Fields) {
			f.Expires = noon.Unix() + seconds
			change(f)
		})
	}
	same := func(*signing.Fields) {}
	for _, c := range []httpCase{
		{Target: privateFiles + "/a.txt", Status: 403, Want: "Location\nCache-Control: no-store"},
		{Target: privateFiles + "/a.txt?" + until(3600, same), Status: 302, Want: "Location: https://bucket.example/file/private/a.txt?cache=private%2C+max-age%3D3600&disposition=&lifetime=10m0s\nCache-Control: private, max-age=300"},
		{Target: privateFiles + "/a.txt?" + until(60, same), Status: 302, Want: "Location: https://bucket.example/file/private/a.txt?cache=private%2C+max-age%3D60&disposition=&lifetime=1m0s\nCache-Control: private, max-age=30"},
		{Target: privateFiles + "/a.txt?" + until(60, func(f *signing.Fields) { f.Download = "b.txt" }), Status: 302, Want: "Location: https://bucket.example/file/private/a.txt?cache=private%2C+max-age%3D60&disposition=attachment%3B+filename%3Db.txt&lifetime=1m0s"},
		{Target: privateFiles + "/a.txt?" + until(-3, same), Status: 200, Text: "0123456789", Want: "Location\nReferrer-Policy: no-referrer\nCache-Control: private, max-age=0"},
		{Target: privateFiles + "/a.txt?" + until(-6, same), Status: 403},
		{Method: http.MethodHead, Target: privateFiles + "/a.txt?" + until(60, same), Status: 200, Want: "Location"},
		{Target: privateFiles + "/a.html?" + paper("a.html"), Status: 200, Want: "Location\nReferrer-Policy: no-referrer"},
	} {
		c.Check(t, s)
	}
}

// TestPrivateRedirectInTime: the lifetime of a redirect is read from the clock once, so that an
// address of no lifetime is never signed.
func TestPrivateRedirectInTime(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, presigning{memory.New()}, media.Limits{}, func(c *media.Config) {
		setPrivateAliases(c)
		c.FileAliases["private"].Redirect = &media.Redirect{To: "presigned"}
	})
	reads := 0
	s.Handler = mediahttp.New(s, mediahttp.Options{Now: func() time.Time {
		reads++
		return noon.Add(time.Duration(reads) * 400 * time.Millisecond)
	}})
	upload := httpCase{Target: filePath + "?alias=private", Header: bearer + multipart, Body: form(file("a.txt", "text")), Status: 200}
	upload.Check(t, s)
	reads = 0
	const address = "https://bucket.example/file/private/a.txt?cache=private%2C+max-age%3D0&disposition=&lifetime=1s"
	short := paperWith("a.txt", func(f *signing.Fields) { f.Expires = noon.Unix() + 2 })
	httpCase{Target: privateFiles + "/a.txt?" + short, Status: 302, Want: "Location: " + address + "\nCache-Control: private, max-age=0"}.Check(t, s)
}

// TestPrivateFails: a failure behind a valid signature is not cached.
func TestPrivateFails(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	s.Driver.Fail = func(op, _ string) error {
		if op == "open" {
			return errors.New("the disk is broken")
		}
		return nil
	}
	httpCase{Target: privateFiles + "/26-11/a.txt?" + paper("26-11/a.txt"), Status: 502, Want: "Cache-Control: no-store"}.Check(t, s)
	httpCase{Target: privateImages + "@thumb/26-11/a.png", Status: 502, Want: "Cache-Control: no-store"}.Check(t, s)
}

// TestRandomKey: without a configured key all services of a token store share a random one, and
// without the store the answer is 503, whether the item exists or not.
func TestRandomKey(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	s.Change = func(c *media.Config) {
		setPrivateAliases(c)
		c.SigningKey = nil
	}
	one, two := s.Service(t, media.Limits{}, account()), s.Service(t, media.Limits{}, account())
	signed, err := one.FileURL(t.Context(), "private", "26-11/a.txt", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	s.Current.Store(two)
	httpCase{Target: signed, Status: 200}.Check(t, s)
	s.Store.Fails.Store(true)
	httpCase{Target: signed, Status: 200}.Check(t, s) // it knows the key
	s.Passed.Store(int64(2 * time.Minute))
	later, err := two.FileURL(t.Context(), "private", "26-11/a.txt", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	httpCase{Target: later, Status: 200}.Check(t, s)
	s.Current.Store(s.Service(t, media.Limits{}, account()))
	for _, target := range []string{later, privateFiles + "/none.txt?" + paper("none.txt")} {
		httpCase{Target: target, Status: 503, Want: "Cache-Control: no-store\nRetry-After: 1"}.Check(t, s)
	}
	httpCase{Target: privateFiles + "/26-11/a.txt", Status: 403}.Check(t, s)
	s.Store.Fails.Store(false)
	httpCase{Target: later, Status: 200}.Check(t, s)
}

// leakyStore is a token store whose error names its place and is not wrapped.
type leakyStore struct{ tokens.Store }

func (s leakyStore) Get(ctx context.Context, key string) (tokens.Entry, error) {
	if strings.HasPrefix(key, "secret/") {
		return tokens.Entry{}, errors.New("no route to 10.1.2.3")
	}
	return s.Store.Get(ctx, key)
}

// TestLeakyStore: any error of the token store is 503, and its text stays in the log.
func TestLeakyStore(t *testing.T) {
	t.Parallel()
	s := withPrivate(t)
	s.Change = func(c *media.Config) {
		setPrivateAliases(c)
		c.SigningKey, c.Tokens = nil, leakyStore{c.Tokens}
	}
	s.Current.Store(s.Service(t, media.Limits{}, account()))
	got := httpCase{Method: http.MethodPost, Target: signPath, Header: bearer + urlencoded, Body: "kind=file&alias=private&filename=a.txt", Status: 503, Want: "Retry-After: 1"}.Check(t, s)
	if strings.Contains(got.Body, "10.1.2.3") {
		t.Errorf("the answer is %s", got.Body)
	}
}

// TestPublicAllocations: a public alias pays nothing for private ones. The numbers of allocations
// of a request are equal with and without a query that would be a signature elsewhere.
func TestPublicAllocations(t *testing.T) {
	s := withPrivate(t)
	s.Put(t, itemKey, "0123456789")
	count := func(target string) float64 {
		r := s.Request(t, http.MethodGet, target, "", "")
		return testing.AllocsPerRun(100, func() {
			s.Handler.ServeHTTP(discard{http.Header{}}, r)
		})
	}
	if plain, with := count(itemPath), count(itemPath+"?"+paper("item.txt")); plain != with {
		t.Errorf("%v allocations, and %v with a query", plain, with)
	}
}

// discard is a response that is not kept.
type discard struct{ header http.Header }

func (d discard) Header() http.Header { return d.header }

func (d discard) Write(b []byte) (int, error) { return len(b), nil }

func (d discard) WriteHeader(int) {}
