package integration

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
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
	s := startSite(t, basic, "media")
	token := s.token(t, apiKey)
	named := func(name string) formPart {
		p := file("x.php.jpg", jpegOf(t, 2, 2))
		p.name = name
		return p
	}
	for _, path := range []string{"/api/upload/image", "/api/upload/file"} {
		for _, header := range []http.Header{documented(apiKey, token), headers("Authorization", "Bearer "+token), headers("Service-Api-Key", apiKey, "Service-Access-Token", token)} {
			for _, name := range []string{"files", "files[]", "files[0]", "files[x]"} {
				r := s.do(t, http.MethodPost, path, merged(header, formType), form(named(name)))
				r.failures(t, http.StatusUnsupportedMediaType)
			}
		}
	}
	s.wantNothing(t)
}

func testThrottleByField(t *testing.T) {
	s := startSite(t, basic+"limits {\nlogin_failures 3\n}", "media")
	var last *reply
	for i := range 4 {
		body := url.Values{
			"api_key": {fmt.Sprint("guess-", i)}, "password": {"x"}, "email": {fmt.Sprint(i)}, "client": {fmt.Sprint("10.0.0.", i)},
		}.Encode()
		last = s.do(t, http.MethodPost, fmt.Sprintf("%s?api_key=other-%d", tokenPath, i), urlencoded, body)
	}
	if last.status != http.StatusTooManyRequests {
		t.Errorf("the fourth guess of one client: %d", last.status)
	}
}

func testBadUploads(t *testing.T) {
	s := startSite(t, basic, "media")
	header := merged(s.credentials(t), formType)
	picture := jpegOf(t, 20, 20)
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			broken := []byte(picture)
			broken[(i*37)%len(broken)] ^= 0xff
			kinds := []string{"a.jpg", "a.png", "a.gif", "a.svg"}
			body := form(file(kinds[i%4], string(broken)), file("\x00\xff", ""), field("alias", "\xff{"), field("\x00", "x"))
			r := s.request(t, http.MethodPost, "/api/upload/image?alias=%ff&sub_folder=%00", header, strings.NewReader(body[:len(body)-i]))
			resp, err := s.client.Do(r)
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
	if log := s.logged(t); strings.Contains(log, "panic") {
		t.Error("an upload panicked")
	}
	s.wantNothing(t)
	s.uploadImage(t, file("a.jpg", picture)).one(t)
}

func testNothingReplaced(t *testing.T) {
	s := startSite(t, twoAccount+atRoot+"}\nfile_alias content", "media")
	first := s.uploadFile(t, file("a.txt", "mine")).one(t)
	r := s.do(t, http.MethodPost, "/api/upload/file?filename=a.txt&overwrite=1", merged(documented(otherKey, s.token(t, otherKey)), formType),
		form(file("a.txt", "theirs"), field("filename", "a.txt"), field("overwrite", "1"), field("id", "a.txt")))
	if r.one(t).Filename == first.Filename || s.fetch(t, first.FullPath).body != "mine" {
		t.Error("an item was replaced")
	}
}

func testNothingDeleted(t *testing.T) {
	s := staticSite(t, "media")
	header := s.credentials(t)
	for _, method := range []string{"DELETE", "PUT", "PATCH", "MOVE", "POST"} {
		s.do(t, method, item, header, "x")
		s.do(t, method, item, merged(header, headers("X-HTTP-Method-Override", "DELETE")), "x")
	}
	if r := s.get(t, item); r.body != "0123456789" {
		t.Errorf("the item is gone: %d %q", r.status, r.body)
	}
}

func testCommonPrefix(t *testing.T) {
	s := startSite(t, "account "+apiKey+" "+cheapHash+" {\naliases news\n}\naccount "+apiKey+"-2 "+cheapHash+"\n"+
		localDefault+"file_alias news\nfile_alias news2\nfile_alias new", "media")
	header := merged(s.credentials(t), formType)
	for alias, want := range map[string]int{"news": 200, "news2": 403, "new": 403, "news/": 400, "news%": 400} {
		if r := s.do(t, http.MethodPost, "/api/upload/file", header, form(field("alias", alias), file("a.txt", "x"))); r.status != want {
			t.Errorf("alias %s: %d, want %d", alias, r.status, want)
		}
	}
	wrong := merged(documented(apiKey+"-2", s.token(t, apiKey)), formType)
	s.do(t, http.MethodPost, "/api/upload/file", wrong, form(file("a.txt", "x"))).failures(t, http.StatusUnauthorized)
}

func testMetadata(t *testing.T) {
	s := startSite(t, basic, "media")
	part := file("a.txt", "<html><script>1</script>")
	part.header = "Content-Encoding: gzip\r\nX-Content-Type: text/html\r\nCache-Control: no-store\r\n"
	r := s.fetch(t, s.uploadFile(t, field("content_type", "text/html"), field("identified", "true"), part).one(t).FullPath)
	if r.header.Get("Content-Type") != "text/plain; charset=utf-8" || r.header.Get("Content-Encoding") != "" || strings.Contains(r.header.Get("Cache-Control"), "no-store") {
		t.Errorf("headers %v", r.header)
	}
	fake := file("a.jpg", "<html>")
	fake.header = "Content-Type: image/jpeg\r\n"
	s.uploadImage(t, fake).failures(t, http.StatusUnsupportedMediaType)
}

func testGlob(t *testing.T) {
	s := startSite(t, account+atRoot+"sanitize off\noverwrite_strategy overwrite\n}\nfile_alias content", "media")
	names := []string{"a.txt", "*.txt", "?.txt", "[a].txt", "%.txt", "a*.txt"}
	for range 2 {
		for _, name := range names {
			s.uploadFile(t, file(name, "content of "+name)).one(t)
		}
	}
	for _, name := range names {
		if r := s.get(t, "/static/file/content/"+url.PathEscape(name)); r.body != "content of "+name {
			t.Errorf("%s holds %q", name, r.body)
		}
	}
	if n := len(files(t, s.root)); n != len(names) {
		t.Errorf("%d files, want %d", n, len(names))
	}
}

func testNoCookies(t *testing.T) {
	s := staticSite(t, "media")
	for _, r := range []*reply{s.get(t, item, "Cookie", "a=b"), s.get(t, item+"x"), s.login(t, apiKey, password), s.uploadFile(t, file("a.txt", "x"))} {
		if r.header.Get("Set-Cookie") != "" {
			t.Errorf("a cookie is set: %v", r.header)
		}
	}
}
