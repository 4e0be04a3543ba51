package naming

import (
	"errors"
	"mime"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFileNameSanitizes(t *testing.T) {
	t.Parallel()
	for submitted, want := range map[string]string{
		// Letters of all scripts.
		"photo.jpg": "photo.jpg", "Test Filename ěščř.JPG": "test-filename-escr.jpg",
		"e\u030cs\u030c.jpg": "es.jpg", "Straße ﬁn.png": "strasse-fin.png", "Фильм.mp4": "film.mp4",
		"北京.png": "bei-jing.png", "हिन्दी.pdf": "hindii.pdf", "١٢٣.pdf": "123.pdf", "ｐｈｏｔｏ．ｊｐｇ": "photo.jpg",
		// Signs and spaces.
		"a&b@c.jpg": "a-b-c.jpg", "_a__b_.jpg": "_a__b_.jpg", "--a - -- b--.jpg": "a-b.jpg",
		// Extensions, hidden files and folders.
		"archive.tar.gz": "archive-tar.gz", ".hidden.jpg": "hidden.jpg", ".jpg": "jpg", "README": "readme",
		`C:\fakepath\a.jpg`: "c-fakepath-a.jpg", "dir.d/photo.jpg": "dir-d-photo.jpg",
		"dir.d/photo": "dir-d-photo", "a℀b.jpg": "aa-cb.jpg",
		// Ends.
		"photo.jpg. . ": "photo.jpg", "photo.jpg\u3000": "photo.jpg", "photo.jpg\r\n": "photo.jpg",
		"photo.jpg.???": "photo.jpg",
		// Invalid and unseen characters.
		"a\xff\xfeb.jpg": "a-b.jpg", "a\x01\x7fb.jpg": "a-b.jpg", "a\u200bb\u202ecod.jpg": "abcod.jpg",
		"a\ufe0fb.jpg": "ab.jpg",
		// Nothing is left.
		"???.jpg": "661c8336.jpg", "???": "a03b221c", "𐌰.jpg": "d35531a1.jpg",
		// Lengths.
		"a." + strings.Repeat("e", 32):      "a." + strings.Repeat("e", 32),
		"a." + strings.Repeat("e", 33):      "a-" + strings.Repeat("e", 33),
		strings.Repeat("a", 300) + ".jpeg":  strings.Repeat("a", 195) + ".jpeg",
		strings.Repeat("a", 195) + " b.jpg": strings.Repeat("a", 195) + ".jpg",
		strings.Repeat("щ", 100) + ".jpg":   strings.Repeat("shch", 49) + ".jpg",
		// Several at once.
		"50% off: *now*?.jpg": "50-off-now.jpg", "a/.../b.jpg": "a-b.jpg", "….jpg": "HASH", "\u200b.jpg": "HASH",
	} {
		want = strings.Replace(want, "HASH", shortHash(submitted)+".jpg", 1)
		got, err := FileName(submitted, true)
		if err != nil || got != want {
			t.Errorf("FileName(%+q) = %q, %v, want %q", submitted, got, err, want)
			continue
		}
		if again, err := FileName(got, true); err != nil || again != got {
			t.Errorf("FileName(%q) = %q, %v, want no change", got, again, err)
		}
	}
}

func TestFileNameRefusesTraversalEvenWhenSanitizing(t *testing.T) {
	t.Parallel()
	for _, submitted := range []string{
		"", "..", "../a.jpg", `..\a.jpg`, "a/../b.jpg", `a\..\b.jpg`, "a/..", "/etc/passwd", `\\host\a.jpg`, " /a.jpg",
		"a.jpg\x00", "\x00", ".. /a.jpg", "．．／a.jpg", "‥/a.jpg", "／a.jpg", ".\u200b./a.jpg", "\u200b/a.jpg",
	} {
		if got, err := FileName(submitted, true); err == nil {
			t.Errorf("FileName(%q) = %q, want an error", submitted, got)
		} else {
			wantShowable(t, err)
		}
	}
}

func TestFileNameExactlyAsSubmitted(t *testing.T) {
	t.Parallel()
	for _, submitted := range []string{
		"Test Filename ěščř.JPG", "a:b*c?d%e#f.jpg", " leading space.jpg", "archive.tar.gz", "README", "a&b@c", "a..b",
		"e\u030c.jpg", "日本.png", "x.php", strings.Repeat("a", 200),
	} {
		if got, err := FileName(submitted, false); err != nil || got != submitted {
			t.Errorf("FileName(%q) = %q, %v, want it unchanged", submitted, got, err)
		}
	}
}

func TestFileNameRefusesUnsafeNames(t *testing.T) {
	t.Parallel()
	for _, submitted := range []string{
		"", ".", "..", ".hidden", "a/b", `a\b`, "a\x00b", "a\nb", "a\x7fb", "a\u0085b", "a\u202eb", "a\u200bb", "a\u2028b",
		"\ufeffa", "a.", "a ", "a\u00a0", "a\u3000", "a\xff", strings.Repeat("a", 201), strings.Repeat("ě", 101),
	} {
		if got, err := FileName(submitted, false); err == nil {
			t.Errorf("FileName(%q) = %q, want an error", submitted, got)
		} else {
			wantShowable(t, err)
		}
	}
}

// TestFlysystemCVE2021_32708: white space that is removed only after the check does not turn an
// accepted name into a refused one.
func TestFlysystemCVE2021_32708(t *testing.T) {
	t.Parallel()
	for _, space := range []string{
		"\t", "\n", "\v", "\f", "\r", "\x1f", "\u0085", "\u00a0", "\u1680", "\u180e", "\u2000", "\u200a", "\u200b", "\u2028",
		"\u2029", "\u202f", "\u205f", "\u2060", "\u3000", "\ufeff", "\u3164",
	} {
		for _, submitted := range []string{"x.php" + space, "x.ph" + space + "p", "x." + space + "php", "x.php" + space + ".jpg"} {
			got, err := FileName(submitted, true)
			if err != nil {
				t.Errorf("FileName(%q): %v", submitted, err)
			}
			if strings.HasSuffix(got, ".php") && Restricted(submitted) == "" {
				t.Errorf("%q is not restricted, but stored as %q", submitted, got)
			}
			if got, err = FileName(submitted, false); err == nil && got != submitted {
				t.Errorf("FileName(%q) = %q, want it unchanged or refused", submitted, got)
			}
		}
		if Restricted("x.php"+space) == "" {
			t.Errorf("Restricted(%q) = none, want php", "x.php"+space)
		}
		if got, err := FileName(".."+space+"/a.jpg", true); err == nil {
			t.Errorf("FileName with %q after two dots = %q, want an error", space, got)
		}
		if got, err := SubFolder("a/.."+space+"/b", true); err == nil {
			t.Errorf("SubFolder with %q after two dots = %q, want an error", space, got)
		}
	}
}

func TestWithTimeGoesBeforeTheExtension(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"photo.jpg":  "photo-1700000000.jpg",
		"photo":      "photo-1700000000",
		"a.tar.gz":   "a.tar-1700000000.gz",
		"Fotka 1.J":  "Fotka 1-1700000000.J",
		".htaccess":  ".htaccess-1700000000",
		"a-1.jpg":    "a-1-1700000000.jpg",
		"ěščř.jpeg":  "ěščř-1700000000.jpeg",
		"deadbeef.x": "deadbeef-1700000000.x",
	}
	for name, want := range tests {
		if got := WithTime(name, 1700000000); got != want {
			t.Errorf("WithTime(%q) = %q, want %q", name, got, want)
		}
	}
}

// wantShowable checks that an error can be shown to the sender of the value.
func wantShowable(t *testing.T, err error) {
	t.Helper()
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Message == "" || refusal.Message != err.Error() || strings.Contains(err.Error(), "naming") {
		t.Errorf("error %#v, want an *Error with a message for the caller", err)
	}
}

func TestExtensionIsTheLastOneInLowerCase(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"photo.JPG": "jpg", "archive.tar.gz": "gz", "photo": "", "": "", ".": "", "..": "", ".htaccess": "", ".hidden.jpg": "jpg",
		"photo.jpg. ": "jpg", "photo.jpg\u3000": "jpg", "photo.": "", "dir.d/photo": "", `dir.d\photo.png`: "png",
		"26-11/20/photo.webp": "webp", "x.php\u200b": "php\u200b",
	}
	for name, want := range tests {
		if got := Extension(name); got != want {
			t.Errorf("Extension(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestDecode: names as senders encode them.
func TestDecode(t *testing.T) {
	t.Parallel()
	for submitted, want := range map[string]string{
		"a b.png":                                    "a b.png",
		"ňe.png":                                     "ňe.png",
		"=?utf-8?B?xYhlLnBuZw==?=":                   "ňe.png",
		"=?UTF-8?Q?=C5=88e.png?=":                    "ňe.png",
		"=?utf-8?q?a_b?=.png":                        "a b.png",
		"=?iso-8859-1?q?=E9t=E9.png?=":               "été.png",
		"=?us-ascii?q?a=62.png?=":                    "ab.png",
		"=?UTF-8?Q?=C5=88e?= =?UTF-8?Q?b.png?=":      "ňeb.png",
		"=?UTF-8?B?xYg=?=\t=?ISO-8859-1?Q?=E9.png?=": "ňé.png",
		"=?utf-8?B?YS9i?=.png":                       "a/b.png",
		"\xe9t\xe9.png":                              "été.png",
		"\xe9 =?utf-8?q?=C5=88?=.png":                "é ň.png",
		"=?koi8-r?B?wS5wbmc=?=":                      "а.png",
		"=?windows-1252?Q?=80_caf=E9?=":              "€ café",
		"=?ISO-8859-2?Q?=BE.png?=":                   "ž.png",
		"=?iso-8859-1?Q?=80.png?=":                   "\u0080.png",
		"=?Shift_JIS?B?g1yDXA==?=.png":               "ソソ.png",
		"=?gb2312?B?1tA=?=.png":                      "中.png",
		"=?x-unknown?Q?a=E9.png?=":                   "=?x-unknown?Q?a=E9.png?=",
		"=?iso-2022-kr?Q?a.png?=":                    "=?iso-2022-kr?Q?a.png?=",
		"=?utf-8?B?***?=":                            "=?utf-8?B?***?=",
		"=?.png":                                     "=?.png",
		"%41.png":                                    "%41.png",
		"":                                           "",
	} {
		if got := Decode(submitted); got != want {
			t.Errorf("%q: got %q, want %q", submitted, got, want)
		}
	}
}

func TestBase(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a.png": "a.png", `C:\Users\Eva\a.png`: "a.png", "/home/eva/a.png": "a.png", `x/y\z`: "z", "../a": "a", "a/": "", `a\`: "", "": "",
	} {
		if got := Base(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
		if got := FileNameOf(mime.QEncoding.Encode("utf-8", path+"é")); got != want+"é" {
			t.Errorf("%q, encoded: got %q, want %q", path, got, want+"é")
		}
	}
}

// TestFileNameOfOtherCharsets: a backslash that is the second byte of a letter separates nothing.
func TestFileNameOfOtherCharsets(t *testing.T) {
	t.Parallel()
	for submitted, want := range map[string]string{
		"\x83\\.jpg":               "\u0083_.jpg", // Shift_JIS
		"\x83\\\x83t\x83g.jpg":     "\u0083_\u0083t\u0083g.jpg",
		"\xa5\\\xaf\xe0.png":       "¥_¯à.png", // Big5
		"C:\\Jos\xe9\\a.png":       "a.png",    // paths of Windows in ISO-8859-1
		"\\\\host\\Jos\xe9\\a.png": "a.png",
		"x\\Jos\xe9.png":           "José.png",
		"José\\a.png":              "a.png",
		"\xe9":                     "é",
		"\xe9\\":                   "é_",
	} {
		if got := FileNameOf(submitted); got != want {
			t.Errorf("%q: got %q, want %q", submitted, got, want)
		}
	}
}

// FuzzDecode: the result is UTF-8, also of a name that is not, and plain names stay.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"a.png", "=?utf-8?B?xYhlLnBuZw==?=", "=?UTF-8?Q?=C5=88?= =?UTF-8?Q?=FF?=", "\xe9t\xe9.png", "=?iso-8859-1?q?=E9?= x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, submitted string) {
		got := Decode(submitted)
		if !utf8.ValidString(got) {
			t.Errorf("%q became %q", submitted, got)
		}
	})
}
