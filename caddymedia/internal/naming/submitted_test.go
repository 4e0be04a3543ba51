package naming

import (
	"testing"
	"unicode/utf8"
)

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
		"=?koi8-r?B?wS5wbmc=?=":                      "=?koi8-r?B?wS5wbmc=?=",
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
