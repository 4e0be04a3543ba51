package storagedrivers_test

import (
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

func TestLocationOverlaps(t *testing.T) {
	t.Parallel()
	at := func(root string) storagedrivers.Location {
		return storagedrivers.Location{Backend: "x"}.Join(root)
	}
	for name, test := range map[string]struct {
		a, b storagedrivers.Location
		want bool
	}{
		"the same":               {at("a"), at("a"), true},
		"written otherwise":      {at("/srv/a"), at("/srv//b/../a/"), true},
		"the whole bucket":       {at(""), at("."), true},
		"another backend":        {at("a"), storagedrivers.Location{Backend: "y", Root: "a"}, false},
		"a folder":               {at(""), at("a"), true},
		"beside":                 {at("/srv/a"), at("/srv/b"), false},
		"longer names":           {at("a"), at("aa"), false},
		"within":                 {at("/srv/a/b"), at("/srv/a"), true},
		"within the root":        {at("/"), at("/srv"), true},
		"outside of the login's": {at(""), at("/srv/a"), false},
		"beside the login's":     {at(""), at("../a"), false},
		"above the login's":      {at(""), at(".."), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.a.Overlaps(test.b) != test.want || test.b.Overlaps(test.a) != test.want {
				t.Errorf("%v and %v: want %t", test.a, test.b, test.want)
			}
		})
	}
}

// TestLocationJoin: the location of an object is the same from every folder above it.
func TestLocationJoin(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"", "/", "media", "/srv/media"} {
		l := storagedrivers.Location{Backend: "x", Root: root}
		if whole, parts := l.Join("img/a/b.jpg"), l.Join("img").Join("a/b.jpg"); whole != parts || whole.String() != parts.String() {
			t.Errorf("%v and %v", whole, parts)
		}
		test.Equal(t, l.Join(""), l, "is not")
	}
}
