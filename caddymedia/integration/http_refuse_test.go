package integration

import (
	"net/http"
	"strings"
	"testing"
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
	s := startSite(t, basic+"storage exact {\ndriver local $ROOT/exact\nsanitize off\n}\nfile_alias exact {\nstorage exact\n}", "media")
	header := merged(s.credentials(t), formType)
	for _, alias := range []string{"content", "exact"} {
		for _, name := range restrictedNames {
			t.Run(alias+" "+name, func(t *testing.T) {
				for _, first := range []bool{true, false} {
					parts := []formPart{field("alias", alias), file(name, "text\n")}
					if !first {
						parts[0], parts[1] = parts[1], parts[0]
					}
					r := s.do(t, http.MethodPost, "/api/upload/file", header, form(parts...))
					if r.status == http.StatusOK || r.status >= http.StatusInternalServerError {
						t.Fatalf("%d %s", r.status, r.body)
					}
					if got := r.failures(t, r.status); got[0].Filename != name {
						t.Errorf("filename %q, want %q", got[0].Filename, name)
					}
				}
			})
		}
	}
	s.wantNothing(t)
}

// TestRestrictedSubFolder: a folder that a web server might run as a script is refused.
func TestRestrictedSubFolder(t *testing.T) {
	s := startSite(t, account+"storage exact {\ndriver local $ROOT\nsanitize off\n}\nfile_alias content", "media")
	for _, folder := range []string{"a.php", "x/a.php", "a.PHP/x", "a.php5", "a.phtml"} {
		s.uploadFile(t, field("sub_folder", folder), file("a.txt", "x")).failures(t, http.StatusBadRequest)
	}
	s.wantNothing(t)
}

// TestOtherExtensions: an alias accepts only the extensions on its list.
func TestOtherExtensions(t *testing.T) {
	s := startSite(t, basic+"file_alias few {\nextensions pdf .TXT\n}", "media")
	all := samples(t)
	image := func(name, content string) *reply { return s.uploadImage(t, file(name, content)) }
	few := func(name, content string) *reply { return s.uploadFile(t, field("alias", "few"), file(name, content)) }
	for name, r := range map[string]*reply{
		"image pdf":          image("a.pdf", all["pdf"]),
		"image webp":         image("a.webp", all["jpg"]),
		"image none":         image("jpg", all["jpg"]),
		"image dot last":     image("jpg.", all["jpg"]),
		"image jpg.txt":      image("a.jpg.txt", all["jpg"]),
		"image exe":          image("a.exe", all["jpg"]),
		"few jpg":            few("a.jpg", all["jpg"]),
		"few pdf.zip":        few("a.pdf.zip", all["zip"]),
		"file html":          s.uploadFile(t, file("a.html", "<html>")),
		"file exe":           s.uploadFile(t, file("a.exe", "MZ")),
		"file no extension":  s.uploadFile(t, file("README", "x")),
		"file in disguise":   s.uploadFile(t, file("a.txt", "<?php phpinfo();")),
		"file shell script":  s.uploadFile(t, file("a.pdf", "#!/bin/sh\n")),
		"file html disguise": s.uploadFile(t, file("a.pdf", "<!doctype html><script>1</script>")),
	} {
		if name == "file in disguise" { // shown as text, never run
			r.one(t)
			continue
		}
		t.Run(name, func(t *testing.T) { r.failures(t, http.StatusUnsupportedMediaType) })
	}
	few("a.TXT", "x").one(t)
	few("a.Pdf", all["pdf"]).one(t)
}

// TestContentIsNotTheExtension: every type of content is refused under the extension of another.
// The message names both.
func TestContentIsNotTheExtension(t *testing.T) {
	s := startSite(t, basic, "media")
	all := samples(t)
	header := merged(s.credentials(t), formType)
	for ext := range all {
		for is, content := range all {
			if ext == is || ext == "txt" {
				continue
			}
			t.Run(is+" as "+ext, func(t *testing.T) {
				if ext == "jpg" || ext == "png" || ext == "gif" || ext == "svg" {
					r := s.do(t, http.MethodPost, "/api/upload/image", header, form(file("a."+ext, content)))
					if got := r.failures(t, http.StatusUnsupportedMediaType)[0]; got.Filename != "a."+ext {
						t.Errorf("filename %q", got.Filename)
					}
				}
				r := s.do(t, http.MethodPost, "/api/upload/file", header, form(file("a."+ext, content)))
				r.failures(t, http.StatusUnsupportedMediaType)
			})
		}
	}
	got := s.uploadImage(t, file("a.jpg", all["png"])).failures(t, http.StatusUnsupportedMediaType)
	if got[0].Message != "content is PNG, the name says .jpg" {
		t.Errorf("message %q", got[0].Message)
	}
	for name, content := range map[string]string{
		"empty": "", "cut": all["jpg"][:len(all["jpg"])/2], "garbage": "\xff\xd8\xff garbage", "html in front": "<html>" + all["gif"],
	} {
		t.Run(name, func(t *testing.T) {
			for _, ext := range []string{"jpg", "png", "gif", "svg"} {
				s.uploadImage(t, file("a."+ext, content)).failures(t, http.StatusUnsupportedMediaType)
			}
		})
	}
	s.wantNothing(t)
}

// TestTraversal: neither a name nor a sub folder leaves the storage.
func TestTraversal(t *testing.T) {
	s := startSite(t, basic+"storage exact {\ndriver local $ROOT/exact\nsanitize off\n}\nimage_alias exact {\nstorage exact\n}", "media")
	picture := gifOf(t)
	header := merged(s.credentials(t), formType)
	upload := func(query string, parts ...formPart) *reply {
		return s.do(t, http.MethodPost, "/api/upload/image"+query, header, form(parts...))
	}
	for _, name := range []string{
		"../a.gif", "../../a.gif", "/a.gif", "/etc/a.gif", `..\a.gif`, `\a.gif`, "x/../../a.gif", "..", "../", "/", "a\x00.gif", "．．/a.gif", "..／a.gif",
	} {
		for _, alias := range []string{"content", "exact"} {
			t.Run(alias+" name "+name, func(t *testing.T) {
				r := upload("", field("alias", alias), file(name, picture))
				if r.status != http.StatusBadRequest && r.status != http.StatusUnsupportedMediaType {
					t.Errorf("%d %s", r.status, r.body)
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
				upload("", field("alias", alias), field("sub_folder", folder), file("a.gif", picture)).failures(t, http.StatusBadRequest)
			})
		}
	}
	for _, query := range []string{"?sub_folder=..%2Fx", "?sub_folder=%2e%2e/x", "?sub_folder=%5Cx", "?sub_folder=x%00"} {
		upload(query, file("a.gif", picture)).failures(t, http.StatusBadRequest)
	}
	s.wantNothing(t)
	if r := upload("", field("sub_folder", strings.Repeat("a/", 15)+"a"), file("a.gif", picture)); r.status != http.StatusOK {
		t.Errorf("16 levels: %d %s", r.status, r.body)
	}
}
