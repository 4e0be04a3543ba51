package integration

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

const atRoot = "storage default {\ndriver local $ROOT\nsub_folder_format /\n"

// TestSanitizedNames: the examples of the documentation, and a second upload of each.
func TestSanitizedNames(t *testing.T) {
	s := startSite(t, account+atRoot+"}\nimage_alias content", "media")
	for submitted, want := range map[string]string{
		"Test Filename ěščř.JPG":          "test-filename-escr.jpg",
		"photo.jpeg":                      "photo.jpeg",
		"a.b.c.jpg":                       "a-b-c.jpg",
		"  Žluťoučký   kůň  .jpg":         "zlutoucky-kun.jpg",
		"straße_№1 (copy).jpg":            "strasse_no1-copy.jpg",
		"日本.jpg":                          "ri-ben.jpg",
		"{env.HOME}{{.}}.jpg":             "env-home.jpg",
		`"quoted" & <b>.jpg`:              "quoted-b.jpg",
		"x.jpg.jpg":                       "x-jpg.jpg",
		strings.Repeat("x", 300) + ".jpg": strings.Repeat("x", 196) + ".jpg",
	} {
		t.Run(submitted, func(t *testing.T) {
			base := strings.TrimSuffix(strings.TrimSuffix(want, ".jpg"), ".jpeg")
			names := map[string]bool{}
			for i := range 3 {
				picture := jpegOf(t, 2+i, 2)
				before := time.Now().Unix()
				got := s.uploadImage(t, file(submitted, picture)).one(t)
				if i == 0 && got.Filename != want {
					t.Errorf("filename %q, want %q", got.Filename, want)
				}
				if i > 0 {
					checkTimedName(t, got.Filename, base, before, before+int64(i)+2)
				}
				if got.FullPath != s.url+"/static/img/content/"+got.Filename {
					t.Errorf("full_path %s needs encoding", got.FullPath)
				}
				if names[got.Filename] {
					t.Errorf("%s is given twice", got.Filename)
				}
				names[got.Filename] = true
				if r := s.fetch(t, got.FullPath); r.body != picture {
					t.Errorf("%s: got back other bytes, %d", got.Filename, r.status)
				}
			}
		})
	}
	if got := s.uploadImage(t, file("???.jpg", jpegOf(t, 2, 2))).one(t); !regexp.MustCompile(`^[0-9a-f]{8}\.jpg$`).MatchString(got.Filename) {
		t.Errorf("a name without usable characters: %q", got.Filename)
	}
}

func checkTimedName(t *testing.T, name, base string, from, to int64) {
	t.Helper()
	var second int64
	if _, err := fmt.Sscanf(strings.TrimPrefix(name, base+"-"), "%d.", &second); err != nil || second < from || second > to {
		t.Errorf("filename %q, want %s-<%d to %d>", name, base, from, to)
	}
}

// TestFolders tests the folder of an item uploaded without one.
func TestFolders(t *testing.T) {
	s := startSite(t, account+localDefault+`
		storage root {
			driver local $ROOT/root
			sub_folder_format /
		}
		storage pattern {
			driver local $ROOT/pattern
			sub_folder_format year-%Y/%m/%d/
		}
		image_alias content {
			storage default
		}
		image_alias root {
			storage root
		}
		image_alias pattern {
			storage pattern
		}
		image_alias prefixed {
			storage pattern
			prefix a/b
		}`, "media")
	for alias, want := range map[string]string{
		"content": "06-01/02/", "root": "", "pattern": "year-2006/01/02/", "prefixed": "year-2006/01/02/",
	} {
		before := time.Now().Format(want)
		got := s.uploadImage(t, field("alias", alias), file("a.gif", gifOf(t))).one(t)
		if after := time.Now().Format(want); got.Filename != before+"a.gif" && got.Filename != after+"a.gif" {
			t.Errorf("%s: filename %s, want %sa.gif", alias, got.Filename, before)
		}
		if r := s.fetch(t, got.FullPath); r.status != http.StatusOK {
			t.Errorf("%s: %d", alias, r.status)
		}
	}
	today := time.Now()
	for _, name := range []string{
		"img/content/" + today.Format("06-01/02/a.gif"),
		"root/img/root/a.gif",
		"pattern/img/pattern/" + today.Format("year-2006/01/02/a.gif"),
		"pattern/a/b/" + today.Format("year-2006/01/02/a.gif"),
	} {
		if _, ok := files(t, s.root)[name]; !ok {
			t.Errorf("no file %s in the storage", name)
		}
	}
}

// TestExactNames: with sanitize off the name is the submitted one, percent-encoded in the address.
func TestExactNames(t *testing.T) {
	s := startSite(t, account+atRoot+"sanitize off\n}\nfile_alias content", "media")
	for _, name := range []string{
		"My File (1).TXT", "ěščř ž.txt", "100% & more?.txt", "a#b;c=d+e.txt", "日本語.txt", "a'b\"c.txt", "%41.txt", "{env.HOME}.txt", "x~!$@,[].txt",
		"  x.txt", "e\u0301.txt", "a:b.txt", strings.Repeat("x", 196) + ".txt",
	} {
		t.Run(name, func(t *testing.T) {
			content := "content of " + name
			got := s.uploadFile(t, field("sub_folder", "My Folder/ž"), file(name, content)).one(t)
			if got.Filename != "My Folder/ž/"+name {
				t.Errorf("filename %q, want %q", got.Filename, name)
			}
			if strings.ContainsAny(got.FullPath, " \"") || strings.ContainsFunc(got.FullPath, func(r rune) bool { return r > 0x7e }) {
				t.Errorf("full_path %s is not encoded", got.FullPath)
			}
			if r := s.fetch(t, got.FullPath); r.body != content {
				t.Errorf("fetching %s: %d %q", got.FullPath, r.status, r.body)
			}
		})
	}
	before := len(files(t, s.root))
	for _, name := range []string{
		"a/b.txt", `a\b.txt`, "a\tb.txt", "a\u0000b.txt", ".hidden.txt", "x.txt.", "x.txt ", "\u202ex.txt", "\xff.txt", strings.Repeat("x", 197) + ".txt",
	} {
		s.uploadFile(t, file(name, "x")).failures(t, http.StatusBadRequest)
	}
	if after := len(files(t, s.root)); after != before {
		t.Errorf("%d files are stored, want %d", after, before)
	}
}

// TestOverwrite: a replaced item keeps its address and gets the new bytes. Two equal names in one
// request are refused.
func TestOverwrite(t *testing.T) {
	s := startSite(t, account+atRoot+"overwrite_strategy overwrite\n}\nfile_alias content", "media")
	etags := make([]string, 0, 3)
	for _, content := range []string{"one", "second, longer", ""} {
		got := s.uploadFile(t, file("Same.txt", content)).one(t)
		if got.Filename != "same.txt" {
			t.Errorf("filename %s", got.Filename)
		}
		r := s.fetch(t, got.FullPath)
		if r.body != content {
			t.Errorf("got back %q, want %q", r.body, content)
		}
		for _, etag := range etags {
			if etag == r.header.Get("ETag") {
				t.Errorf("ETag %s is that of an older item", etag)
			}
		}
		etags = append(etags, r.header.Get("ETag"))
	}
	got := s.uploadFile(t, file("new.txt", "x"), file("a b.txt", "x"), file("A-B.txt", "y"), file("a  b.TXT", "z")).failures(t, http.StatusConflict)
	if len(got) != 3 || got[0].Filename != "a b.txt" || got[2].Filename != "a  b.TXT" {
		t.Errorf("failures %+v, want the three that have one name", got)
	}
	if n := len(files(t, s.root)); n != 1 {
		t.Errorf("%d files in the storage, want 1", n)
	}
}

// TestEqualNamesAppend: two files of the same name in one request become two items.
func TestEqualNamesAppend(t *testing.T) {
	s := startSite(t, account+atRoot+"}\nfile_alias content", "media")
	got := s.uploadFile(t, file("a.txt", "one"), file("a.txt", "two"), file("A.TXT", "three")).result(t)
	for i, want := range []string{"one", "two", "three"} {
		if r := s.fetch(t, got[i].FullPath); r.body != want {
			t.Errorf("%s holds %q, want %q", got[i].Filename, r.body, want)
		}
	}
}

// TestAddresses: an address begins with the cdn_base of the alias, else with the global one, else
// with the scheme and host of the request.
func TestAddresses(t *testing.T) {
	media := basic + "image_alias own {\ncdn_base https://img.example/x/\n}\n"
	upload := func(s *site, alias string, more ...string) string {
		header := merged(s.credentials(t), formType, headers(more...))
		r := s.do(t, http.MethodPost, "/api/upload/image", header, form(field("alias", alias), field("sub_folder", "/"), file("a.gif", gifOf(t))))
		got := r.one(t)
		return strings.TrimSuffix(got.FullPath, got.Filename)
	}
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("full_path in %s, want %s", got, want)
		}
	}
	s := startSite(t, media, "media")
	want(upload(s, "content"), s.url+"/static/img/content/")
	want(upload(s, "own"), "https://img.example/x/static/img/own/")
	// X-Forwarded headers of untrusted clients are ignored.
	want(upload(s, "content", "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "https"), s.url+"/static/img/content/")
	s.load(t, siteConfig{Media: media + "cdn_base https://cdn.example\n", Site: "media"})
	want(upload(s, "content"), "https://cdn.example/static/img/content/")
	want(upload(s, "own"), "https://img.example/x/static/img/own/")
	s.load(t, siteConfig{Media: media, Site: "media", Servers: "trusted_proxies static 127.0.0.1"})
	want(upload(s, "content", "X-Forwarded-Host", "www.example", "X-Forwarded-Proto", "https"), "https://www.example/static/img/content/")
}
