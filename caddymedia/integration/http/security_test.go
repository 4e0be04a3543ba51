package http_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestPublishedHoles tests vulnerabilities of similar services, by their published identifiers.
func TestPublishedHoles(t *testing.T) {
	for id, test := range map[string]func(*testing.T){
		"CVE-2026-22707 one endpoint skipped the checks":      testOneGate,
		"CVE-2025-64526 throttle keyed by a field":            testThrottleByField,
		"CVE-2024-31217 one upload stopped the process":       testBadUploads,
		"CVE-2026-35412 an item replaced by another's upload": testNothingReplaced,
		"CVE-2026-29188 an item deleted without the right":    testNothingDeleted,
		"GHSA-56p6-qw3c-fq2g token outlived its account":      TestAccountRemoved,
		"CVE-2026-54094 symbolic link out of the storage":     TestSymbolicLinks,
		"CVE-2026-54097 names with a common beginning":        testCommonPrefix,
		"CVE-2026-33173 metadata of the client believed":      testMetadata,
		"CVE-2026-33202 glob characters in a name":            testGlob,
		"CVE-2026-33658 thousands of ranges":                  TestStaticRanges,
		"CVE-2024-26144 cookie in a public answer":            testNoCookies,
		"CVE-2026-28683 script in an SVG":                     TestActiveSVG,
		"CVE-2026-42882 decided on the encoded path":          TestStaticPaths,
		"transfer.sh#670 forged X-Forwarded-For":              testForgedAddress,
		"Shrine 3.8.0 path traversal":                         TestTraversal,
		"CVE-2021-32708 odd white space":                      TestTraversal,
		"CVE-2026-27585 backslash":                            TestStaticPaths,
		"GHSA-f59h-q822-g45g underscores in headers":          TestContradictoryCredentials,
		"GHSA-49wc-4hcv-v58q dots in headers":                 testDottedHeaders,
		"GHSA-8mhj-xm4h-m5m6 line breaks in a name":           testLineBreaks,
		"GHSA-j8px-rmrx-76h9 placeholders in a name":          TestTemplatesOfStrangers,
		"CVE-2022-41725 many parts":                           testManyParts,
		"CVE-2023-24536 many headers of a part":               TestLimits,
		"CVE-2026-42504 encoded words":                        testEncodedWords,
		"CVE-2026-33809 unexpected decoders":                  testDecoders,
		"h2non/bimg#394 pixel flood":                          TestTooManyPixels,
	} {
		t.Run(id, test)
	}
}

func testOneGate(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	token := s.Token(t, site.APIKey)
	named := func(name string) site.Part {
		p := site.File("x.php.jpg", sample.JPEG(t, 2, 2))
		p.Name = name
		return p
	}
	for _, path := range []string{"/api/upload/image", "/api/upload/file"} {
		for _, header := range []http.Header{site.AuthHeader(site.APIKey, token), site.Headers("Authorization", "Bearer "+token), site.Headers("Service-Api-Key", site.APIKey, "Service-Access-Token", token)} {
			for _, name := range []string{"files", "files[]", "files[0]", "files[x]"} {
				r := s.Do(t, http.MethodPost, path, site.Merged(header, site.FormType), site.Form(named(name)))
				r.Failures(t, http.StatusUnsupportedMediaType)
			}
		}
	}
	s.WantNothing(t)
}

func testThrottleByField(t *testing.T) {
	s := site.Start(t, site.Basic+"limits {\nlogin_failures 3\n}", "media")
	var last *site.Reply
	for i := range 4 {
		body := url.Values{
			"api_key": {fmt.Sprint("guess-", i)}, "password": {"x"}, "email": {fmt.Sprint(i)}, "client": {fmt.Sprint("10.0.0.", i)},
		}.Encode()
		last = s.Do(t, http.MethodPost, fmt.Sprintf("%s?api_key=other-%d", site.TokenPath, i), urlencoded, body)
	}
	if last.Status != http.StatusTooManyRequests {
		t.Errorf("the fourth guess of one client: %d", last.Status)
	}
}

func testBadUploads(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	header := site.Merged(s.Credentials(t), site.FormType)
	picture := sample.JPEG(t, 20, 20)
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			broken := []byte(picture)
			broken[(i*37)%len(broken)] ^= 0xff
			kinds := []string{"a.jpg", "a.png", "a.gif", "a.svg"}
			body := site.Form(site.File(kinds[i%4], string(broken)), site.File("\x00\xff", ""), site.Field("alias", "\xff{"), site.Field("\x00", "x"))
			r := s.Request(t, http.MethodPost, "/api/upload/image?alias=%ff&sub_folder=%00", header, strings.NewReader(body[:len(body)-i]))
			resp, err := s.Client.Do(r)
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
	if log := s.Logged(t); strings.Contains(log, "panic") {
		t.Error("an upload panicked")
	}
	s.WantNothing(t)
	s.UploadImage(t, site.File("a.jpg", picture)).One(t)
}

func testNothingReplaced(t *testing.T) {
	s := site.Start(t, site.TwoAccounts+site.AtRoot+"}\nfile_alias content", "media")
	first := s.UploadFile(t, site.File("a.txt", "mine")).One(t)
	r := s.Do(t, http.MethodPost, "/api/upload/file?filename=a.txt&overwrite=1", site.Merged(site.AuthHeader(site.OtherKey, s.Token(t, site.OtherKey)), site.FormType),
		site.Form(site.File("a.txt", "theirs"), site.Field("filename", "a.txt"), site.Field("overwrite", "1"), site.Field("id", "a.txt")))
	if r.One(t).Filename == first.Filename || s.Fetch(t, first.FullPath).Body != "mine" {
		t.Error("an item was replaced")
	}
}

func testNothingDeleted(t *testing.T) {
	s := staticSite(t, "media")
	header := s.Credentials(t)
	for _, method := range []string{"DELETE", "PUT", "PATCH", "MOVE", "POST"} {
		s.Do(t, method, item, header, "x")
		s.Do(t, method, item, site.Merged(header, site.Headers("X-HTTP-Method-Override", "DELETE")), "x")
	}
	if r := s.Get(t, item); r.Body != "0123456789" {
		t.Errorf("the item is gone: %d %q", r.Status, r.Body)
	}
}

func testCommonPrefix(t *testing.T) {
	s := site.Start(t, "account "+site.APIKey+" "+site.CheapHash+" {\naliases news\n}\naccount "+site.APIKey+"-2 "+site.CheapHash+"\n"+
		site.LocalDefault+"file_alias news\nfile_alias news2\nfile_alias new", "media")
	header := site.Merged(s.Credentials(t), site.FormType)
	for alias, want := range map[string]int{"news": 200, "news2": 403, "new": 403, "news/": 400, "news%": 400} {
		if r := s.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(site.Field("alias", alias), site.File("a.txt", "x"))); r.Status != want {
			t.Errorf("alias %s: %d, want %d", alias, r.Status, want)
		}
	}
	wrong := site.Merged(site.AuthHeader(site.APIKey+"-2", s.Token(t, site.APIKey)), site.FormType)
	s.Do(t, http.MethodPost, "/api/upload/file", wrong, site.Form(site.File("a.txt", "x"))).Failures(t, http.StatusUnauthorized)
}

func testMetadata(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	part := site.File("a.txt", "<html><script>1</script>")
	part.Header = "Content-Encoding: gzip\r\nX-Content-Type: text/html\r\nCache-Control: no-store\r\n"
	r := s.Fetch(t, s.UploadFile(t, site.Field("content_type", "text/html"), site.Field("identified", "true"), part).One(t).FullPath)
	if r.Header.Get("Content-Type") != "text/plain; charset=utf-8" || r.Header.Get("Content-Encoding") != "" || strings.Contains(r.Header.Get("Cache-Control"), "no-store") {
		t.Errorf("headers %v", r.Header)
	}
	fake := site.File("a.jpg", "<html>")
	fake.Header = "Content-Type: image/jpeg\r\n"
	s.UploadImage(t, fake).Failures(t, http.StatusUnsupportedMediaType)
}

func testGlob(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"sanitize off\noverwrite_strategy overwrite\n}\nfile_alias content", "media")
	names := []string{"a.txt", "*.txt", "?.txt", "[a].txt", "%.txt", "a*.txt"}
	for range 2 {
		for _, name := range names {
			s.UploadFile(t, site.File(name, "content of "+name)).One(t)
		}
	}
	for _, name := range names {
		if r := s.Get(t, "/static/file/content/"+url.PathEscape(name)); r.Body != "content of "+name {
			t.Errorf("%s holds %q", name, r.Body)
		}
	}
	if n := len(site.Files(t, s.Root)); n != len(names) {
		t.Errorf("%d files, want %d", n, len(names))
	}
}

func testNoCookies(t *testing.T) {
	s := staticSite(t, "media")
	for _, r := range []*site.Reply{s.Get(t, item, "Cookie", "a=b"), s.Get(t, item+"x"), s.Login(t, site.APIKey, site.Password), s.UploadFile(t, site.File("a.txt", "x"))} {
		if r.Header.Get("Set-Cookie") != "" {
			t.Errorf("a cookie is set: %v", r.Header)
		}
	}
}
