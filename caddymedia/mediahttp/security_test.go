package mediahttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

// Published vulnerabilities of similar services, and the tests that show that this one has none of
// them. Those without a package are in this one.
//
//	CVE-2026-22707 one endpoint skipped the checks       TestRestrictedExtensions
//	CVE-2025-64526 throttle keyed by a field             TestThrottle
//	transfer.sh#670 forged X-Forwarded-For               TestThrottle, integration/features TestForgedAddress
//	CVE-2024-31217 one upload stopped the process        TestBadUploads
//	CVE-2026-35412 an item replaced by another's upload  TestEqualNames
//	CVE-2026-29188 an item deleted without the right     TestStaticMethods
//	GHSA-56p6-qw3c-fq2g token outlived its account       TestRightsEndDuringUpload, integration/features TestAccountRemoved
//	CVE-2026-54094 symbolic link out of the storage      integration/features TestSymbolicLinks
//	CVE-2026-54097 names with a common beginning         TestAccountOfSomeAliases
//	CVE-2026-33173 metadata of the client believed       TestStaticTypes, TestOtherExtensions
//	CVE-2026-33202 glob characters in a name             TestGlob
//	CVE-2026-33658 thousands of ranges                   TestRanges
//	CVE-2024-26144 cookie in a public answer             all of them, by send
//	CVE-2026-28683 script in an SVG                      TestSVG, TestStaticTypes
//	CVE-2026-42882 decided on the encoded path           TestPaths, integration/features TestRawPaths
//	CVE-2026-27585 backslash                             TestPaths, integration/features TestRawPaths
//	Shrine 3.8.0, CVE-2021-32708 path traversal          TestTraversal
//	GHSA-f59h-q822-g45g underscores in headers           TestAuthentication, integration/features TestDocumentedHeaders
//	GHSA-49wc-4hcv-v58q dots in headers                  TestAuthentication, integration/features TestDottedHeaders
//	GHSA-8mhj-xm4h-m5m6 line breaks in a name            TestTraversal, TestPaths
//	GHSA-j8px-rmrx-76h9 placeholders in a name           TestNames, integration/features TestTemplatesOfStrangers
//	CVE-2022-41725 many parts                            TestLimits, TestTokenForms
//	CVE-2023-24536 many headers of a part                TestLimits
//	CVE-2026-42504 encoded words                         TestNames, TestRestrictedExtensions
//	CVE-2026-33809 unexpected decoders                   TestContentIsNotTheExtension
//	h2non/bimg#394 pixel flood                           TestTooManyPixels

// withTree is a site with the item a/b/item.txt of the alias content, and with objects that no
// address may reach.
func withTree(t *testing.T) *site {
	t.Helper()
	s := aSite(t)
	s.Put(t, "file/content/a/b/item.txt", "content")
	for _, key := range []string{"top.txt", "file/other/x.txt", "file/x.txt", "x.txt"} {
		s.Put(t, key, "hidden")
	}
	return s
}

// TestPaths: an item has one address. All other spellings and paths are answered with 404.
func TestPaths(t *testing.T) {
	t.Parallel()
	const here, address = "/static/file/content/", "/static/file/content/a/b/item.txt"
	s := withTree(t)
	httpCase{Target: address, Status: 200, Text: "content"}.Check(t, s)
	for _, path := range []string{
		"/static/img/", "/static/file/", "/static/file/content", here, here + "a", here + "a/", here + "a/b/",
		address + "/", address + ".", address + "%20", address + "%00", address + "x", here + "/a/b/item.txt", here + "a//b/item.txt",
		here + "A/b/item.txt", "/static/file/Content/a/b/item.txt", "/static/file/none/a/b/item.txt", "/static/img/content/a/b/item.txt",
		here + "./a/b/item.txt", here + "a/../a/b/item.txt", here + "a/b/../b/item.txt",
		here + "%2e/a/b/item.txt", here + "a/%2e%2e/a/b/item.txt", here + "a/b/%2E%2E/b/item.txt",
		here + "a%2fb/item.txt", here + "a%2Fb/item.txt", "/static/file/content%2Fa/b/item.txt", "/static/file%2fcontent/a/b/item.txt",
		here + "a%5cb%5citem.txt", here + `a\b\item.txt`, here + "a/b%5citem.txt", here + "a/b/..%5cb/item.txt",
		here + ".env", here + "%2eenv", here + ".d/x", here + "a/.txt",
		here + "../../top.txt", here + "%2e%2e/%2e%2e/top.txt", here + "..%2f..%2ftop.txt", here + "..%2f..%2f..%2foutside.txt",
		here + "../other/x.txt", "/static/file/../file/other/x.txt", "/static/file/other/x.txt", here + "..%5c..%5ctop.txt", here + "../x.txt",
		here + "%252e%252e/%252e%252e/top.txt", here + "a/b/item.txt%2f..%2fitem.txt", here + "a/b/item.txt::$DATA",
		"/static/file//etc/passwd", here + "/etc/passwd", here + "%2fetc%2fpasswd", here + "a/b/item.txt%ff", here + strings.Repeat("x", 300),
		here + strings.Repeat("x/", 800) + "x", here + "a/b/*", here + "a/b/item.???", here + "{env.HOME}", here + "a%0d%0aDELE%20x.txt",
	} {
		httpCase{Target: path, Status: 404}.Check(t, s)
	}
}

// TestHiddenNames: names that no upload can have are not asked of the storage.
func TestHiddenNames(t *testing.T) {
	t.Parallel()
	s := withTree(t)
	s.Driver.Fail = func(op, key string) error {
		if op != "list" && strings.Contains(key, "/.") {
			t.Errorf("%s of %s", op, key)
		}
		return nil
	}
	for _, name := range []string{".env", "%2eenv", ".d/x", "a/.txt", ".media-tmp/x"} {
		httpCase{Target: "/static/file/content/" + name, Status: 404}.Check(t, s)
	}
}

// TestEncodings: the characters of a name, except for slashes, may be percent-encoded in any way.
func TestEncodings(t *testing.T) {
	t.Parallel()
	const name = "Ä b+c.txt"
	s := aSite(t)
	s.Put(t, "file/exact/"+name, "content")
	all := ""
	for _, c := range []byte(name) {
		all += fmt.Sprintf("%%%02x", c)
	}
	for _, path := range []string{url.PathEscape(name), strings.ReplaceAll(url.PathEscape(name), "+", "%2B"), all, "%c3%84%20b+c.txt"} {
		httpCase{Target: "/static/file/exact/" + path, Status: 200, Text: "content"}.Check(t, s)
	}
	httpCase{Target: "/static/file/exact/%C3%84+b+c.txt", Status: 404}.Check(t, s)
}

// TestGlob: characters of patterns in a name match nothing else.
func TestGlob(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		for i := range c.Storages {
			c.Storages[i].Sanitize = new(bool)
		}
	})
	names := []string{"a.txt", "*.txt", "?.txt", "[a].txt", "%.txt", "a*.txt"}
	for round := range 2 {
		for _, name := range names {
			uploadCase{
				Parts: []part{field("alias", "replacing"), file(name, fmt.Sprint(round, name))}, Want: []string{"file/replacing/" + name},
			}.Check(t, s)
		}
	}
	for _, name := range names {
		if content, _ := s.Stored(t, "file/replacing/"+name); content != "1"+name {
			t.Errorf("%s holds %q", name, content)
		}
	}
}

// TestBadUploads: damaged uploads, many at once, neither panic nor leave anything.
func TestBadUploads(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	token := s.Token(t)
	server := httptest.NewServer(s.Handler)
	defer server.Close()
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			broken := []byte(jpegPicture)
			broken[(i*37)%len(broken)] ^= 0xff
			kinds := []string{"a.jpg", "a.png", "a.gif", "a.svg"}
			body := form(file(kinds[i%4], string(broken)), file("\x00\xff", ""), field("alias", "\xff{"), field("\x00", "x"))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
				server.URL+imagePath+"?alias=%ff&sub_folder=%00", strings.NewReader(body[:len(body)-i]))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", multipartType)
			resp, err := server.Client().Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode < 400 || resp.StatusCode >= 500 {
				t.Errorf("upload %d: %d", i, resp.StatusCode)
			}
		})
	}
	all.Wait()
	if stored := s.Objects(t); len(stored) > 0 {
		t.Errorf("stored %v", stored)
	}
}
