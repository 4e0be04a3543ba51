package mediacmd

import (
	"slices"
	"testing"

	"github.com/caddymedia/media/caddymedia/ingest"
)

// TestPrefixes: what is to be copied is in the order of the keys, and once.
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
			var aliases []*ingest.Alias
			for _, prefix := range test.prefixes {
				aliases = append(aliases, &ingest.Alias{Prefix: prefix})
			}
			if got := prefixesOf(aliases, test.everything); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestOverlaps: a place is the same under other credentials, and what lies in it belongs
// to it.
func TestOverlaps(t *testing.T) {
	t.Parallel()
	bucket := func(name, prefix string) place {
		return place{"driver": "s3", "bucket": name, "endpoint": "https://s3", "prefix": prefix}
	}
	host := func(address, root string) place {
		return place{"driver": "sftp", "address": address, "root": root}
	}
	for name, test := range map[string]struct {
		a, b place
		want bool
	}{
		"the same bucket":     {bucket("b", ""), bucket("b", ""), true},
		"another bucket":      {bucket("b", ""), bucket("c", ""), false},
		"a prefix":            {bucket("b", ""), bucket("b", "p"), true},
		"two prefixes":        {bucket("b", "p"), bucket("b", "pp"), false},
		"a prefix in another": {bucket("b", "p/q"), bucket("b", "p"), true},
		"folders":             {host("h:22", "/srv/a"), host("h:22", "/srv/a/"), true},
		"one in the other":    {host("h:22", "/srv/a/b"), host("h:22", "/srv/a"), true},
		"in the login's":      {host("h:22", ""), host("h:22", "uploads"), true},
		"outside the login's": {host("h:22", ""), host("h:22", "/srv/a"), false},
		"beside":              {host("h:22", "/srv/a"), host("h:22", "/srv/b"), false},
		"hosts":               {host("h:22", "/srv/a"), host("i:22", "/srv/a"), false},
		"kinds":               {host("h:22", "/srv/a"), bucket("b", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.a.overlaps(test.b) != test.want || test.b.overlaps(test.a) != test.want {
				t.Errorf("it should be %v", test.want)
			}
		})
	}
}
