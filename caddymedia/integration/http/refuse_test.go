package http_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// restrictedNames are spellings of restricted extensions.
var restrictedNames = []string{
	"x.php", "x.PHP", "x.pHp", "x.php5", "x.php3", "x.php4", "x.php7", "x.php8", "x.phps", "x.phtml", "x.pht", "x.phar",
	"x.sh", "x.SH", "x.bash", ".htaccess", "a.htaccess", ".htpasswd", ".user.ini",
	"x.php.jpg", "x.PHP.jpg", "x.jpg.php", "x.php5.txt.jpg", "x.sh.pdf", "x.phtml.txt",
	"x.php.", "x.php..", "x.php ", "x.php. .", "x.php\t", " x.php", "x.php .jpg", "x. php", "x.php/", "x.php/.",
	"x.php::$DATA", "x.php:jpg", "x.php%00.jpg", "x.php%20", "x.%70hp", "x.%2570hp", "x%2ephp", "x.php;.jpg", "x.php?.jpg", "x.php#.jpg",
	"x.ph\u200bp", "x.p\u00adhp", "x.ｐｈｐ", "x．php", "x.PHP\u202egpj", "x.ſh", "x.рhp", "x.ш", "x.php\u00a0", "x.php\u3000.jpg",
	"a.php/x.jpg", `a.php\x.jpg`, "..php",
}

// TestRestrictedExtensions: they are refused in every spelling, with and without sanitizing. The
// answer has the submitted name.
func TestRestrictedExtensions(t *testing.T) {
	s := site.Start(t, site.Basic+"storage exact {\ndriver local $ROOT/exact\nsanitize off\n}\nfile_alias exact {\nstorage exact\n}", "media")
	header := site.Merged(s.Credentials(t), site.FormType)
	for _, alias := range []string{"content", "exact"} {
		for _, name := range restrictedNames {
			t.Run(alias+" "+name, func(t *testing.T) {
				for _, first := range []bool{true, false} {
					parts := []site.Part{site.Field("alias", alias), site.File(name, "text\n")}
					if !first {
						parts[0], parts[1] = parts[1], parts[0]
					}
					r := s.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(parts...))
					if r.Status == http.StatusOK || r.Status >= http.StatusInternalServerError {
						t.Fatalf("%d %s", r.Status, r.Body)
					}
					if got := r.Failures(t, r.Status); got[0].Filename != name {
						t.Errorf("filename %q, want %q", got[0].Filename, name)
					}
				}
			})
		}
	}
	s.WantNothing(t)
}

// TestRestrictedSubFolder: a folder that a web server might run as a script is refused.
func TestRestrictedSubFolder(t *testing.T) {
	s := site.Start(t, site.Account+"storage exact {\ndriver local $ROOT\nsanitize off\n}\nfile_alias content", "media")
	for _, folder := range []string{"a.php", "x/a.php", "a.PHP/x", "a.php5", "a.phtml"} {
		s.UploadFile(t, site.Field("sub_folder", folder), site.File("a.txt", "x")).Failures(t, http.StatusBadRequest)
	}
	s.WantNothing(t)
}

// TestOtherExtensions: an alias accepts only the extensions on its list.
func TestOtherExtensions(t *testing.T) {
	s := site.Start(t, site.Basic+"file_alias few {\nextensions pdf .TXT\n}", "media")
	all := sample.All(t)
	image := func(name, content string) *site.Reply { return s.UploadImage(t, site.File(name, content)) }
	few := func(name, content string) *site.Reply {
		return s.UploadFile(t, site.Field("alias", "few"), site.File(name, content))
	}
	for name, r := range map[string]*site.Reply{
		"image pdf":          image("a.pdf", all["pdf"]),
		"image webp":         image("a.webp", all["jpg"]),
		"image none":         image("jpg", all["jpg"]),
		"image dot last":     image("jpg.", all["jpg"]),
		"image jpg.txt":      image("a.jpg.txt", all["jpg"]),
		"image exe":          image("a.exe", all["jpg"]),
		"few jpg":            few("a.jpg", all["jpg"]),
		"few pdf.zip":        few("a.pdf.zip", all["zip"]),
		"file html":          s.UploadFile(t, site.File("a.html", "<html>")),
		"file exe":           s.UploadFile(t, site.File("a.exe", "MZ")),
		"file no extension":  s.UploadFile(t, site.File("README", "x")),
		"file in disguise":   s.UploadFile(t, site.File("a.txt", "<?php phpinfo();")),
		"file shell script":  s.UploadFile(t, site.File("a.pdf", "#!/bin/sh\n")),
		"file html disguise": s.UploadFile(t, site.File("a.pdf", "<!doctype html><script>1</script>")),
	} {
		if name == "file in disguise" { // shown as text, never run
			r.One(t)
			continue
		}
		t.Run(name, func(t *testing.T) { r.Failures(t, http.StatusUnsupportedMediaType) })
	}
	few("a.TXT", "x").One(t)
	few("a.Pdf", all["pdf"]).One(t)
}

// TestContentIsNotTheExtension: every type of content is refused under the extension of another.
// The message names both.
func TestContentIsNotTheExtension(t *testing.T) {
	s := site.Start(t, site.Basic, "media")
	all := sample.All(t)
	header := site.Merged(s.Credentials(t), site.FormType)
	for ext := range all {
		for is, content := range all {
			if ext == is || ext == "txt" {
				continue
			}
			t.Run(is+" as "+ext, func(t *testing.T) {
				if ext == "jpg" || ext == "png" || ext == "gif" || ext == "svg" {
					r := s.Do(t, http.MethodPost, "/api/upload/image", header, site.Form(site.File("a."+ext, content)))
					if got := r.Failures(t, http.StatusUnsupportedMediaType)[0]; got.Filename != "a."+ext {
						t.Errorf("filename %q", got.Filename)
					}
				}
				r := s.Do(t, http.MethodPost, "/api/upload/file", header, site.Form(site.File("a."+ext, content)))
				r.Failures(t, http.StatusUnsupportedMediaType)
			})
		}
	}
	got := s.UploadImage(t, site.File("a.jpg", all["png"])).Failures(t, http.StatusUnsupportedMediaType)
	if got[0].Message != "content is PNG, the name says .jpg" {
		t.Errorf("message %q", got[0].Message)
	}
	for name, content := range map[string]string{
		"empty": "", "cut": all["jpg"][:len(all["jpg"])/2], "garbage": "\xff\xd8\xff garbage", "html in front": "<html>" + all["gif"],
	} {
		t.Run(name, func(t *testing.T) {
			for _, ext := range []string{"jpg", "png", "gif", "svg"} {
				s.UploadImage(t, site.File("a."+ext, content)).Failures(t, http.StatusUnsupportedMediaType)
			}
		})
	}
	s.WantNothing(t)
}

// TestTraversal: neither a name nor a sub folder leaves the storage.
func TestTraversal(t *testing.T) {
	s := site.Start(t, site.Basic+"storage exact {\ndriver local $ROOT/exact\nsanitize off\n}\nimage_alias exact {\nstorage exact\n}", "media")
	picture := sample.GIF(t)
	header := site.Merged(s.Credentials(t), site.FormType)
	upload := func(query string, parts ...site.Part) *site.Reply {
		return s.Do(t, http.MethodPost, "/api/upload/image"+query, header, site.Form(parts...))
	}
	for _, name := range []string{
		"../a.gif", "../../a.gif", "/a.gif", "/etc/a.gif", `..\a.gif`, `\a.gif`, "x/../../a.gif", "..", "../", "/", "a\x00.gif", "．．/a.gif", "..／a.gif",
	} {
		for _, alias := range []string{"content", "exact"} {
			t.Run(alias+" name "+name, func(t *testing.T) {
				r := upload("", site.Field("alias", alias), site.File(name, picture))
				if r.Status != http.StatusBadRequest && r.Status != http.StatusUnsupportedMediaType {
					t.Errorf("%d %s", r.Status, r.Body)
				}
			})
		}
	}
	deep := strings.Repeat("a/", 16) + "a"
	for _, folder := range []string{
		"..", "../x", "x/..", "x/../y", "/x", "//", "x//y", "./x", "x/.", ".", `x\y`, `..\x`, "x\x00y", "x\ny", " ", "．．/x", "..／x", "\u200b../x",
		deep, strings.Repeat("x", 513), "x\xff",
	} {
		for _, alias := range []string{"content", "exact"} {
			if alias == "exact" && strings.HasPrefix(folder, "．") {
				continue // an ordinary name, since nothing changes it
			}
			t.Run(alias+" folder "+folder, func(t *testing.T) {
				upload("", site.Field("alias", alias), site.Field("sub_folder", folder), site.File("a.gif", picture)).Failures(t, http.StatusBadRequest)
			})
		}
	}
	for _, query := range []string{"?sub_folder=..%2Fx", "?sub_folder=%2e%2e/x", "?sub_folder=%5Cx", "?sub_folder=x%00"} {
		upload(query, site.File("a.gif", picture)).Failures(t, http.StatusBadRequest)
	}
	s.WantNothing(t)
	if r := upload("", site.Field("sub_folder", strings.Repeat("a/", 15)+"a"), site.File("a.gif", picture)); r.Status != http.StatusOK {
		t.Errorf("16 levels: %d %s", r.Status, r.Body)
	}
}
