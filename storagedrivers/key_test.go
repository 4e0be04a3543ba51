package storagedrivers_test

import (
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

func TestValidKey(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"a", "a/b", "a b/c d.txt", " a", "a..b", "a.b.c", "-rf", "~", "con", "日本語/é.png", "😀", "a\u00a0b",
		`#?%&+='"()[]{}~!$;,@*:|<>`,
		strings.Repeat("x", 255),
		strings.Repeat("x/", 511) + "xx", // 1,024 bytes
	} {
		test.Is(t, storagedrivers.ValidKey(key), nil, key)
	}
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "./a", "../a", "a/..", "a/./b", ".a", "a/.b", "a.", "a ", "a./b", "a /b",
		`a\b`, "a\x00", "a\nb", "a\tb", "\x7f", "\u0080", "\xff", "a\xc3",
		strings.Repeat("x", 255+1),
		strings.Repeat("é", 128),
		strings.Repeat("x/", 511) + "xxx", // 1,025 bytes
	} {
		test.Is(t, storagedrivers.ValidKey(key), storagedrivers.ErrInvalidKey, key)
	}
}

func FuzzValidKey(f *testing.F) {
	for _, seed := range []string{"a/b.png", "../a", "a/./b", "a\\b", "a\x00", " ", "é", "\xff", "a//b", "/a", "a. /b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if err := storagedrivers.ValidKey(key); err != nil {
			test.Is(t, err, storagedrivers.ErrInvalidKey, key)
			return
		}
		if !fs.ValidPath(key) || !filepath.IsLocal(key) || path.Clean(key) != key || !utf8.ValidString(key) {
			t.Errorf("%q passed and is no clean local path", key)
		}
		if strings.Contains("/"+key, "/.") || strings.ContainsAny(key, "\x00\r\n\\") || len(key) > 1024 {
			t.Errorf("%q passed", key)
		}
	})
}

// TestListPrefix: a driver only gets prefixes that valid keys may have.
func TestListPrefix(t *testing.T) {
	t.Parallel()
	var asked []string
	d := memory.New()
	d.Fail = func(_, prefix string) error {
		asked = append(asked, prefix)
		return nil
	}
	s := open(t, d, storagedrivers.Options{})
	for prefix, want := range map[string]bool{
		"": true, "a": true, "a/": true, "a/b": true, "a.": true, "a ": true, "a/b ": true,
		strings.Repeat("x", 255):   true,
		strings.Repeat("x", 255+1): false,
		"/":                        false, "a//": false, "../": false, ".": false, "a/.": false, "a./": false, "a /": false, `a\`: false,
		"a\x00": false, "\xff": false,
	} {
		asked = nil
		page, err := s.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix})
		if err != nil || len(page.Objects) > 0 || page.Next != "" {
			t.Errorf("%q: %d objects, cursor %q, error %v", prefix, len(page.Objects), page.Next, err)
		}
		test.Equal(t, len(asked) > 0, want, prefix, "driver asked")
	}
}
