package naming

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func FuzzFileName(f *testing.F) {
	for _, s := range []string{
		"photo.jpg", "Test Filename ěščř.JPG", "archive.tar.gz", `C:\fakepath\a.jpg`, "x.php.jpg", "x.ш", "x._ш", "x.ph%70", "….jpg",
		".hidden.jpg", "a\xff.jpg", "../a", "北京.png", "\u200b.jpg", "x.p\u200bhp", "a℀b.", strings.Repeat("щ", 100) + ".jpg",
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, submitted string, sanitize bool) {
		name, err := FileName(submitted, sanitize)
		if err != nil {
			wantShowable(t, err)
			return
		}
		wantKeyPart(t, name)
		wantKeyPart(t, WithTime(name, 1<<62))
		if other := WithExtension(name, "jpg"); Extension(other) != "jpg" || !strings.HasPrefix(name+".jpg", other[:len(other)-4]) {
			t.Errorf("%q became %q", name, other)
		}
		if again, err := FileName(name, sanitize); err != nil || again != name {
			t.Errorf("%q became %q, then %q, %v", submitted, name, again, err)
		}
		if ext := Restricted(name); ext != "" && Restricted(submitted) == "" {
			t.Errorf("%q is not restricted, but stored as %q", submitted, name)
		}
		if !sanitize {
			if name != submitted {
				t.Errorf("%q became %q, want it unchanged", submitted, name)
			}
			return
		}
		wantPlain(t, name, 1)
		if ext := Extension(submitted); plainExtension(ext) && Extension(name) != ext {
			t.Errorf("%q has the extension %q, but is stored as %q", submitted, ext, name)
		}
	})
}

func FuzzSubFolder(f *testing.F) {
	for _, s := range []string{
		"/", "a/b/", "Moje Fotky/ěščř", "../a", "．．/a", "a／../b", ".hidden", "x.php", "a//b", strings.Repeat("щ/", 16), "a\u3000/b",
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, submitted string, sanitize bool) {
		folder, err := SubFolder(submitted, sanitize)
		if err != nil {
			wantShowable(t, err)
			return
		}
		if folder == "" {
			if submitted != "/" {
				t.Errorf("%q became the root", submitted)
			}
			return
		}
		wantFolder(t, folder)
		if again, err := SubFolder(folder, sanitize); err != nil || again != folder {
			t.Errorf("%q became %q, then %q, %v", submitted, folder, again, err)
		}
		if sanitize {
			wantPlain(t, strings.ReplaceAll(folder, "/", ""), 0)
			if ext := Restricted(folder); ext != "" {
				t.Errorf("%q became %q, which has %q", submitted, folder, ext)
			}
		}
	})
}

func FuzzFormat(f *testing.F) {
	for _, s := range []string{"", "/", "%Y/%m", "%-d%-j", "%D", "x.ph%P", "%s%Q%C", "a%", "%%", "%Z", "../%Y", "php%y", "x.php%y"} {
		f.Add(s, int64(1795187045), 0)
		f.Add(s, int64(-1)<<62, 3600)
	}
	f.Fuzz(func(t *testing.T, pattern string, unix int64, zone int) {
		format, err := ParseFormat(pattern)
		if err != nil {
			wantShowable(t, err)
			return
		}
		if again, err := ParseFormat(format.String()); err != nil || again != format {
			t.Errorf("%q became %q, then %q, %v", pattern, format, again, err)
		}
		folder := format.Folder(time.Unix(unix, 0).In(time.FixedZone("../.php", zone%86400)))
		if folder == "" {
			if pattern != "/" {
				t.Errorf("%q became the root", pattern)
			}
			return
		}
		wantFolder(t, folder)
		if ext := Restricted(folder); ext != "" {
			t.Errorf("%q became %q, which has %q", pattern, folder, ext)
		}
		if again, err := SubFolder(folder, false); err != nil || again != folder {
			t.Errorf("%q became %q, which is no sub folder: %q, %v", pattern, folder, again, err)
		}
	})
}

func wantFolder(t *testing.T, folder string) {
	t.Helper()
	segments := strings.Split(folder, "/")
	if len(folder) > 512 || len(segments) > 16 {
		t.Errorf("folder %q has %d bytes, %d levels", folder, len(folder), len(segments))
	}
	for _, s := range segments {
		wantKeyPart(t, s)
	}
}

// wantKeyPart checks the requirements of every storage.
func wantKeyPart(t *testing.T, s string) {
	t.Helper()
	if s == "" || s[0] == '.' || len(s) > 255 || !utf8.ValidString(s) || strings.ContainsAny(s, `/\`) ||
		strings.ContainsFunc(s, unicode.IsControl) || strings.TrimRightFunc(s, dotOrSpace) != s {
		t.Errorf("%q is no part of a key", s)
	}
}

// wantPlain checks that sanitized text needs no encoding, anywhere.
func wantPlain(t *testing.T, s string, dots int) {
	t.Helper()
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || strings.Count(s, ".") > dots {
		t.Errorf("%q is not plain", s)
	}
}

func plainExtension(ext string) bool {
	return ext != "" && len(ext) <= 32 && strings.Trim(ext, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// FuzzUserFolder: two IDs have different folders, of which none leads through the other, and no
// alias changes them.
func FuzzUserFolder(f *testing.F) {
	for _, id := range []string{"alice", "Alice", "a/b", "..", "", "@uploads", "a-b", "a--b", strings.Repeat("x", 61), UserFolder("Alice"), "\xff", "x.php"} {
		f.Add(id, "alice")
		f.Add(id, UserFolder(id))
	}
	f.Fuzz(func(t *testing.T, one, two string) {
		a, b := UserFolder(one), UserFolder(two)
		if one != two && (a == b || strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")) {
			t.Errorf("%q and %q have the folders %q and %q", one, two, a, b)
		}
		for _, folder := range []string{a, b, "users/" + a, a + "/x"} {
			for _, sanitize := range []bool{true, false} {
				if got, err := SubFolder(folder, sanitize); err != nil || got != folder {
					t.Errorf("the folder %q becomes %q: %v", folder, got, err)
				}
			}
			if InUploadsFolder(folder) || Restricted(folder) != "" {
				t.Errorf("no item may be in %q", folder)
			}
		}
	})
}
