package mediacmd

import (
	"slices"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
)

// TestPrefixes: the prefixes are sorted, and none lies within another.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prefixes   []string // of the aliases
		everything bool
		want       []string
	}{
		"no alias":     {nil, true, []string{""}},
		"one":          {[]string{"img/a"}, false, []string{"img/a/"}},
		"sorted":       {[]string{"img/b", "file/c", "img/a"}, false, []string{"file/c/", "img/a/", "img/b/"}},
		"twice":        {[]string{"img/a", "img/a"}, false, []string{"img/a/"}},
		"one within":   {[]string{"img/a/b", "img/a", "img/ab"}, false, []string{"img/a/", "img/ab/"}},
		"at the root":  {[]string{"img/a", ""}, false, []string{""}},
		"by the bytes": {[]string{"a", "a-b"}, false, []string{"a-b/", "a/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := make([]*item.Alias, len(test.prefixes))
			for i, prefix := range test.prefixes {
				all[i] = &item.Alias{Prefix: prefix}
			}
			if got := prefixesOf(all, test.everything); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
