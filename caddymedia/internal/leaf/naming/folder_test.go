package naming

import (
	"strings"
	"testing"
	"time"
)

func TestSubFolder(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 200)
	tests := map[string]struct{ submitted, sanitized, exact string }{
		"root":                    {"/", "", ""},
		"one level":               {"photos", "photos", "photos"},
		"trailing slash":          {"a/b/", "a/b", "a/b"},
		"spaces, case, accents":   {"Moje Fotky/ěščř", "moje-fotky/escr", "Moje Fotky/ěščř"},
		"dots are no extension":   {"v1.2/a.tar.gz", "v1-2/a-tar-gz", "v1.2/a.tar.gz"},
		"signs":                   {"a&b/c:d", "a-b/c-d", "a&b/c:d"},
		"leading space":           {" a", "a", " a"},
		"sixteen levels":          {strings.Repeat("a/", 16), strings.Repeat("a/", 15) + "a", strings.Repeat("a/", 15) + "a"},
		"segment of 200 bytes":    {long + "/b", long + "/b", long + "/b"},
		"restricted, not refused": {"x.php", "x-php", "x.php"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, sanitize := range []bool{true, false} {
				want := tt.exact
				if sanitize {
					want = tt.sanitized
				}
				if got, err := SubFolder(tt.submitted, sanitize); err != nil || got != want {
					t.Errorf("SubFolder(%q, %t) = %q, %v, want %q", tt.submitted, sanitize, got, err, want)
				}
			}
		})
	}
}

func TestSubFolderSanitizesUnsafeSegments(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		".hidden/a":              "hidden/a",
		"a./b ":                  "a/b",
		"...":                    shortHash("..."),
		"a/???/b":                "a/" + shortHash("???") + "/b",
		"a\u200bb":               "ab",
		"a／b":                    "a-b",
		strings.Repeat("a", 300): strings.Repeat("a", 200),
	}
	for submitted, want := range tests {
		if got, err := SubFolder(submitted, true); err != nil || got != want {
			t.Errorf("SubFolder(%q, true) = %q, %v, want %q", submitted, got, err, want)
		}
		if got, err := SubFolder(submitted, false); err == nil && got != submitted {
			t.Errorf("SubFolder(%q, false) = %q, want an error or no change", submitted, got)
		}
	}
}

func TestSubFolderRefuses(t *testing.T) {
	t.Parallel()
	both := []string{
		"", "//", "/a", "a//b", "a//", ".", "..", "a/../b", "./a", "a/.", "../", `a\b`, `..\a`, "a\x00b", "a\nb", "a\u0085b", "a\x7f",
		"a\xff", strings.Repeat("a/", 17), strings.Repeat("aaaaaaaa/", 60), strings.Repeat("a", 513),
	}
	sanitized := []string{"．．/a", "a/ .. /b", ".\u200b.", "a／..", " ", "\u200b"}
	exact := []string{".a", "a.", "a ", "a\u3000/b", "a\u202eb", "\u200b", strings.Repeat("a", 201)}
	for sanitize, lists := range map[bool][][]string{true: {both, sanitized}, false: {both, exact}} {
		for _, list := range lists {
			for _, submitted := range list {
				if got, err := SubFolder(submitted, sanitize); err == nil {
					t.Errorf("SubFolder(%q, %t) = %q, want an error", submitted, sanitize, got)
				} else {
					wantShowable(t, err)
				}
			}
		}
	}
}

func TestSubFolderRefusesTooLongTransliterations(t *testing.T) {
	t.Parallel()
	submitted := strings.TrimSuffix(strings.Repeat(strings.Repeat("щ", 60)+"/", 3), "/") // 362 bytes, 3 times 200 after
	if got, err := SubFolder(submitted, true); err == nil {
		t.Errorf("SubFolder = %q of %d bytes, want an error", got, len(got))
	}
}

func TestInUploadsFolder(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"@uploads": true, "@uploads/": true, "a/@Uploads/b": true, "@uploads/open/x": true,
		"": false, "uploads/a": false, "a/@uploads.txt": false, "@uploadsx/a": false,
	} {
		if got := InUploadsFolder(path); got != want {
			t.Errorf("%q: got %t", path, got)
		}
	}
}

// TestUserFolder: only a plain ID is a folder itself.
func TestUserFolder(t *testing.T) {
	t.Parallel()
	const hash = "hash"
	sixty := strings.Repeat("x", 60)
	for id, want := range map[string]string{
		"alice": "alice", "a-b_c-1": "a-b_c-1", "0": "0", sixty: sixty, sixty + "x": hash,
		"Alice": hash, "a b": hash, "a.b": hash, "a/b": hash, "..": hash, ".": hash, "-a": hash, "a-": hash, "a--b": hash, "ě": hash, "": hash,
		"a\x00": hash, "a\n": hash, "\xff": hash, "@uploads": hash, `a\b`: hash, strings.Repeat("0", 64): hash, strings.Repeat("y", 300): hash,
	} {
		got := UserFolder(id)
		if want != hash && got != want || want == hash && len(got) != 64 {
			t.Errorf("%q has %q, want %q", id, got, want)
		}
		if again := UserFolder(got); want == hash && again == got {
			t.Errorf("%q and its folder have the same folder", id)
		}
	}
}

func TestFormatFolder(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.November, 20, 15, 4, 5, 6_000_000, time.UTC)
	tests := map[string]struct{ pattern, folder, again string }{
		"empty is the default":       {"", "26-11/20", "%y-%m/%d"},
		"default written out":        {"%y-%m/%d/", "26-11/20", "%y-%m/%d"},
		"root":                       {"/", "", "/"},
		"year and month":             {"%Y/%m", "2026/11", "%Y/%m"},
		"trailing slash":             {"%Y/", "2026", "%Y"},
		"literal text kept":          {"Photos_v1.0/%Y", "Photos_v1.0/2026", "Photos_v1.0/%Y"},
		"only literal text":          {"content", "content", "content"},
		"names":                      {"%B/%A/%b-%a-%h", "November/Friday/Nov-Fri-Nov", "%B/%A/%b-%a-%h"},
		"ISO date":                   {"%F", "2026-11-20", "%F"},
		"date of three levels":       {"%D", "11/20/26", "%D"},
		"hour without padding":       {"%-I%p", "3PM", "%-I%p"},
		"ISO week":                   {"%G-W%V", "2026-W47", "%G-W%V"},
		"seconds":                    {"%s", "1795187045", "%s"},
		"fractions, day of the year": {"%L-%f-%N-%j", "006-006000-006000000-324", "%L-%f-%N-%j"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := ParseFormat(tt.pattern)
			if err != nil {
				t.Fatalf("ParseFormat(%q): %v", tt.pattern, err)
			}
			if got := f.Folder(at); got != tt.folder {
				t.Errorf("Folder = %q, want %q", got, tt.folder)
			}
			if got := f.String(); got != tt.again {
				t.Errorf("String = %q, want %q", got, tt.again)
			}
			if again, err := ParseFormat(f.String()); err != nil || again != f {
				t.Errorf("ParseFormat(%q) = %v, %v, want the same format", f.String(), again, err)
			}
		})
	}
}

func TestParseFormatRefuses(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{
		"//", "/%Y", "%Y//%m", "%Y//", "..", "%Y/..", "../%Y", ".%Y", "%Y/.x", "%Y.", `%Y\%m`, "%Y\n", "a b", "ěščř", "a\xff", "%Y?",
		"%", "%-", "%Y/%", "%i", "%%", "%c", "%e", "%k", "%l", "%n", "%t", "%r", "%R", "%T", "%v", "%X", "%z", "%Z", "%+", "%:z", "%Ey",
		"x.php/%Y", "x.php%y", ".htaccess", strings.Repeat("a/", 17), strings.Repeat("%D/", 6) + "a", strings.Repeat("%A", 30),
	} {
		if f, err := ParseFormat(pattern); err == nil {
			t.Errorf("ParseFormat(%q) = %v, want an error", pattern, f)
		} else {
			wantShowable(t, err)
		}
	}
}

func TestFormatFolderIsInTheZoneOfItsTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, time.December, 31, 23, 30, 0, 0, time.UTC).In(time.FixedZone("../x", 3600))
	if got := (Format{}).Folder(at); got != "27-01/01" {
		t.Errorf("Folder = %q, want 27-01/01", got)
	}
}

func TestFormatFolderFallsBackToTheDefault(t *testing.T) {
	t.Parallel()
	f, err := ParseFormat(strings.Repeat("%Y", 50))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Folder(time.Date(12345, time.May, 6, 0, 0, 0, 0, time.UTC)); got != "45-05/06" {
		t.Errorf("Folder = %q, want the default 45-05/06", got)
	}
}
