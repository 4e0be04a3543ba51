package mediahttp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

// TestNames: the names of items, by the rules of package naming, whose tests have more of them.
func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for submitted, want := range map[string]string{
		"Test Filename ěščř.TXT":   "test-filename-escr.txt",
		"a.b.c.txt":                "a-b-c.txt",
		"  Žluťoučký   kůň  .txt":  "zlutoucky-kun.txt",
		"straße_№1 (copy).txt":     "strasse_no1-copy.txt",
		"日本.txt":                   "ri-ben.txt",
		"{env.HOME}{{.}}.txt":      "env-home.txt",
		`"quoted" & <b>.txt`:       "quoted-b.txt",
		"x.txt.txt":                "x-txt.txt",
		long + ".txt":              long[:196] + ".txt",
		"{file.passwd}.txt":        "file-passwd.txt",
		"=?utf-8?q?a?=.txt":        "a.txt",
		"=?utf-8?B?xJtzLnR4dA==?=": "es.txt",
		"\xe9t\xe9.txt":            "ete.txt",
		`C:\Users\Eva\photo.txt`:   "photo.txt",
		"/home/eva/photo.txt":      "photo.txt",
		"x.php/photo.txt":          "photo.txt",
	} {
		uploadCase{Name: submitted, Parts: []part{file(submitted, "x")}, Want: []string{"file/content/" + want}}.Run(t, aSite)
	}
	for _, name := range []string{
		"My File (1).TXT", "ěščř ž.txt", "100% & more?.txt", "a#b;c=d+e.txt", "日本語.txt", "a'b\"c.txt", "%41.txt", "{env.HOME}.txt",
		"x~!$@,[].txt", "  x.txt", "e\u0301.txt", "a:b.txt", long[:196] + ".txt", "*.txt", "?.txt", "[a].txt",
		"=?utf-9?q?a?=.txt", `{{env "HOME"}}.txt`,
	} {
		uploadCase{
			Name: "exact " + name, Want: []string{"file/exact/My Folder/ž/" + name},
			Parts: []part{field("alias", "exact"), field("sub_folder", "My Folder/ž"), file(name, "x")},
		}.Run(t, aSite)
	}
	for _, name := range []string{
		"a\tb.txt", "a\u0000b.txt", ".hidden.txt", "x.txt.", "x.txt ", "\u202ex.txt", "\x80.txt", long[:197] + ".txt", "=?utf-8?q?=09?=.txt",
	} {
		uploadCase{Name: "refused " + name, Parts: []part{field("alias", "exact"), file(name, "x")}, Status: 400}.Run(t, aSite)
	}
}

// TestFolders: the folder of an item whose upload names none.
func TestFolders(t *testing.T) {
	t.Parallel()
	pattern := func(t *testing.T) *site {
		t.Helper()
		return newSiteWith(t, media.Limits{}, func(c *media.Config) {
			c.Storages = append(c.Storages, media.Storage{
				Name: "pattern", Driver: c.Storages[0].Driver, SubFolderFormat: "year-%Y/%m/%d/",
			})
			c.FileAliases["pattern"] = &media.FileAlias{AliasOptions: on("pattern")}
		})
	}
	text := file("a.txt", "x")
	runUploads(t, pattern, []uploadCase{
		{Name: "default", Parts: []part{field("alias", "dated"), text}, Want: []string{"file/dated/26-11/20/a.txt"}},
		{Name: "root", Parts: []part{field("alias", "content"), text}, Want: []string{"file/content/a.txt"}},
		{Name: "pattern", Parts: []part{field("alias", "pattern"), text}, Want: []string{"file/pattern/year-2026/11/20/a.txt"}},
	})
}

// TestPrefix: the folder in the storage may differ from the address.
func TestPrefix(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.FileAliases["prefixed"] = &media.FileAlias{AliasOptions: media.AliasOptions{Storage: "main", Prefix: "a/b"}}
	})
	httpCase{
		Target: filePath, Header: multipart + bearer, Body: form(field("alias", "prefixed"), file("a.txt", "x")),
		Status: 200, Has: `"` + origin + `/static/file/prefixed/a.txt"`,
	}.Check(t, s)
	if content, _ := s.Stored(t, "a/b/a.txt"); content != "x" {
		t.Errorf("stored %v", s.Objects(t))
	}
	httpCase{Target: "/static/file/prefixed/a.txt", Status: 200, Text: "x"}.Check(t, s)
}

// TestEqualNames: without overwriting, a second item of a name gets the time in its name, and the
// first one stays. An overwriting alias replaces the item, and refuses equal names in one request.
func TestEqualNames(t *testing.T) {
	t.Parallel()
	s := aSite(t)
	upload := func(want []string, parts ...part) {
		t.Helper()
		uploadCase{Parts: parts, Want: want}.Check(t, s)
	}
	upload([]string{"file/content/a.txt"}, file("a.txt", "mine"))
	upload([]string{"file/content/a-" + noonSecond + ".txt", "file/content/a-1795176001.txt"}, file("A.TXT", "second"), file("a.txt", "third"))
	uploadCase{
		Target: "?filename=a.txt&overwrite=1", Want: []string{"file/content/a-1795176002.txt"},
		Parts: []part{file("a.txt", "theirs"), field("filename", "a.txt"), field("overwrite", "1"), field("id", "a.txt")},
	}.Check(t, s)
	if content, _ := s.Stored(t, "file/content/a.txt"); content != "mine" {
		t.Errorf("the first is now %q", content)
	}

	tags := map[string]bool{}
	for _, content := range []string{"one", "second, longer", ""} {
		upload([]string{"file/replacing/same.txt"}, field("alias", "replacing"), file("Same.txt", content))
		tag := s.Do(t, http.MethodGet, "/static/file/replacing/same.txt", "", "").Header.Get("ETag")
		if tags[tag] {
			t.Errorf("tag %s is that of an older item", tag)
		}
		tags[tag] = true
	}
	uploadCase{
		Parts:  []part{field("alias", "replacing"), file("new.txt", "x"), file("a b.txt", "x"), file("A-B.txt", "y"), file("a  b.TXT", "z")},
		Status: http.StatusConflict, Want: []string{"a b.txt", "A-B.txt", "a  b.TXT"},
	}.Check(t, s)
}

// TestTraversal: neither a name nor a sub folder leaves the folder of the alias.
func TestTraversal(t *testing.T) {
	t.Parallel()
	for _, alias := range []string{"content", "exact"} {
		for _, name := range []string{
			"../a.txt", "../../a.txt", "/a.txt", "/etc/a.txt", `..\a.txt`, `\a.txt`, "x/../../a.txt", "=?utf-8?B?Li4vLi4vYS50eHQ=?=",
		} {
			uploadCase{
				Name: alias + name, Parts: []part{field("alias", alias), file(name, "x")}, Want: []string{"file/" + alias + "/a.txt"},
			}.Run(t, aSite)
		}
		for _, folder := range []string{
			"..", "../x", "x/..", "x/../y", "/x", "//", "x//y", "./x", "x/.", ".", `x\y`, `..\x`, "x\x00y", "x\ny", " ", "..／x", "\u200b../x",
			strings.Repeat("a/", 16) + "a", strings.Repeat("x", 513), "x\xff", "a\r\nDELE x", "a\rb", "a\u0085b",
		} {
			if alias == "exact" && folder == "..／x" {
				continue // an ordinary name, since nothing changes it
			}
			uploadCase{
				Name: alias + " folder " + folder, Parts: []part{field("alias", alias), field("sub_folder", folder), file("a.txt", "x")},
				Status: 400, Want: []string{"a.txt"},
			}.Run(t, aSite)
		}
	}
	for _, p := range []part{file("a\x00.txt", "x"), file("a\r\nX-Injected: 1.txt", "x")} {
		uploadCase{Name: p.Filename, Parts: []part{p}, Status: 400, Want: []string{""}}.Run(t, aSite)
	}
	for _, query := range []string{"..%2Fx", "%2e%2e/x", "%5Cx", "x%00", "a%0d%0aDELE%20x"} {
		uploadCase{Name: query, Target: "?sub_folder=" + query, Parts: []part{file("a.txt", "x")}, Status: 400}.Run(t, aSite)
	}
	deep := strings.Repeat("a/", 16)
	uploadCase{
		Name: "16 levels", Parts: []part{field("sub_folder", deep), file("a.txt", "x")}, Want: []string{"file/content/" + deep + "a.txt"},
	}.Run(t, aSite)
}
