package http_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestSanitizedNames: the examples of the documentation, and a second upload of each.
func TestSanitizedNames(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"}\nimage_alias content", "media")
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
				picture := sample.JPEG(t, 2+i, 2)
				before := time.Now().Unix()
				got := s.UploadImage(t, site.File(submitted, picture)).One(t)
				if i == 0 && got.Filename != want {
					t.Errorf("filename %q, want %q", got.Filename, want)
				}
				if i > 0 {
					checkTimedName(t, got.Filename, base, before, before+int64(i)+2)
				}
				if got.FullPath != s.URL+"/static/img/content/"+got.Filename {
					t.Errorf("full_path %s needs encoding", got.FullPath)
				}
				if names[got.Filename] {
					t.Errorf("%s is given twice", got.Filename)
				}
				names[got.Filename] = true
				if r := s.Fetch(t, got.FullPath); r.Body != picture {
					t.Errorf("%s: got back other bytes, %d", got.Filename, r.Status)
				}
			}
		})
	}
	if got := s.UploadImage(t, site.File("???.jpg", sample.JPEG(t, 2, 2))).One(t); !regexp.MustCompile(`^[0-9a-f]{8}\.jpg$`).MatchString(got.Filename) {
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
	s := site.Start(t, site.Account+site.LocalDefault+`
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
		got := s.UploadImage(t, site.Field("alias", alias), site.File("a.gif", sample.GIF(t))).One(t)
		if after := time.Now().Format(want); got.Filename != before+"a.gif" && got.Filename != after+"a.gif" {
			t.Errorf("%s: filename %s, want %sa.gif", alias, got.Filename, before)
		}
		if r := s.Fetch(t, got.FullPath); r.Status != http.StatusOK {
			t.Errorf("%s: %d", alias, r.Status)
		}
	}
	today := time.Now()
	for _, name := range []string{
		"img/content/" + today.Format("06-01/02/a.gif"),
		"root/img/root/a.gif",
		"pattern/img/pattern/" + today.Format("year-2006/01/02/a.gif"),
		"pattern/a/b/" + today.Format("year-2006/01/02/a.gif"),
	} {
		if _, ok := site.Files(t, s.Root)[name]; !ok {
			t.Errorf("no file %s in the storage", name)
		}
	}
}

// TestExactNames: with sanitize off the name is the submitted one, percent-encoded in the address.
func TestExactNames(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"sanitize off\n}\nfile_alias content", "media")
	for _, name := range []string{
		"My File (1).TXT", "ěščř ž.txt", "100% & more?.txt", "a#b;c=d+e.txt", "日本語.txt", "a'b\"c.txt", "%41.txt", "{env.HOME}.txt", "x~!$@,[].txt",
		"  x.txt", "e\u0301.txt", "a:b.txt", strings.Repeat("x", 196) + ".txt",
	} {
		t.Run(name, func(t *testing.T) {
			content := "content of " + name
			got := s.UploadFile(t, site.Field("sub_folder", "My Folder/ž"), site.File(name, content)).One(t)
			if got.Filename != "My Folder/ž/"+name {
				t.Errorf("filename %q, want %q", got.Filename, name)
			}
			if strings.ContainsAny(got.FullPath, " \"") || strings.ContainsFunc(got.FullPath, func(r rune) bool { return r > 0x7e }) {
				t.Errorf("full_path %s is not encoded", got.FullPath)
			}
			if r := s.Fetch(t, got.FullPath); r.Body != content {
				t.Errorf("fetching %s: %d %q", got.FullPath, r.Status, r.Body)
			}
		})
	}
	before := len(site.Files(t, s.Root))
	for _, name := range []string{
		"a/b.txt", `a\b.txt`, "a\tb.txt", "a\u0000b.txt", ".hidden.txt", "x.txt.", "x.txt ", "\u202ex.txt", "\xff.txt", strings.Repeat("x", 197) + ".txt",
	} {
		s.UploadFile(t, site.File(name, "x")).Failures(t, http.StatusBadRequest)
	}
	if after := len(site.Files(t, s.Root)); after != before {
		t.Errorf("%d files are stored, want %d", after, before)
	}
}

// TestOverwrite: a replaced item keeps its address and gets the new bytes. Two equal names in one
// request are refused.
func TestOverwrite(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"overwrite_strategy overwrite\n}\nfile_alias content", "media")
	etags := make([]string, 0, 3)
	for _, content := range []string{"one", "second, longer", ""} {
		got := s.UploadFile(t, site.File("Same.txt", content)).One(t)
		if got.Filename != "same.txt" {
			t.Errorf("filename %s", got.Filename)
		}
		r := s.Fetch(t, got.FullPath)
		if r.Body != content {
			t.Errorf("got back %q, want %q", r.Body, content)
		}
		for _, etag := range etags {
			if etag == r.Header.Get("ETag") {
				t.Errorf("ETag %s is that of an older item", etag)
			}
		}
		etags = append(etags, r.Header.Get("ETag"))
	}
	got := s.UploadFile(t, site.File("new.txt", "x"), site.File("a b.txt", "x"), site.File("A-B.txt", "y"), site.File("a  b.TXT", "z")).Failures(t, http.StatusConflict)
	if len(got) != 3 || got[0].Filename != "a b.txt" || got[2].Filename != "a  b.TXT" {
		t.Errorf("failures %+v, want the three that have one name", got)
	}
	if n := len(site.Files(t, s.Root)); n != 1 {
		t.Errorf("%d files in the storage, want 1", n)
	}
}

// TestEqualNamesAppend: two files of the same name in one request become two items.
func TestEqualNamesAppend(t *testing.T) {
	s := site.Start(t, site.Account+site.AtRoot+"}\nfile_alias content", "media")
	got := s.UploadFile(t, site.File("a.txt", "one"), site.File("a.txt", "two"), site.File("A.TXT", "three")).Result(t)
	for i, want := range []string{"one", "two", "three"} {
		if r := s.Fetch(t, got[i].FullPath); r.Body != want {
			t.Errorf("%s holds %q, want %q", got[i].Filename, r.Body, want)
		}
	}
}

// TestAddresses: an address begins with the cdn_base of the alias, else with the global one, else
// with the scheme and host of the request.
func TestAddresses(t *testing.T) {
	media := site.Basic + "image_alias own {\ncdn_base https://img.example/x/\n}\n"
	upload := func(s *site.Site, alias string, more ...string) string {
		header := site.Merged(s.Credentials(t), site.FormType, site.Headers(more...))
		r := s.Do(t, http.MethodPost, "/api/upload/image", header, site.Form(site.Field("alias", alias), site.Field("sub_folder", "/"), site.File("a.gif", sample.GIF(t))))
		got := r.One(t)
		return strings.TrimSuffix(got.FullPath, got.Filename)
	}
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("full_path in %s, want %s", got, want)
		}
	}
	s := site.Start(t, media, "media")
	want(upload(s, "content"), s.URL+"/static/img/content/")
	want(upload(s, "own"), "https://img.example/x/static/img/own/")
	// X-Forwarded headers of untrusted clients are ignored.
	want(upload(s, "content", "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "https"), s.URL+"/static/img/content/")
	s.Load(t, site.Config{Media: media + "cdn_base https://cdn.example\n", Site: "media"})
	want(upload(s, "content"), "https://cdn.example/static/img/content/")
	want(upload(s, "own"), "https://img.example/x/static/img/own/")
	s.Load(t, site.Config{Media: media, Site: "media", Servers: "trusted_proxies static 127.0.0.1"})
	want(upload(s, "content", "X-Forwarded-Host", "www.example", "X-Forwarded-Proto", "https"), "https://www.example/static/img/content/")
}
