package item_test

import (
	"math"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

func TestCachedFor(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]int64{
		"": 0, "public": 0, "no-store": 0, "public, no-cache": 0, "max-age=60": 60, "public, max-age=31536000, immutable": 31536000,
		"max-age=60, s-maxage=90": 90, "max-age=90, S-MaxAge=60": 90, `private, Max-Age="5"`: 5, "max-age=60, no-cache": 0, "NO-CACHE": 0,
		"max-age=x": 0, "max-age=-1": 0, "max-age": 0, "max-age=99999999999999999999": math.MaxInt32,
	} {
		if got := (&item.Alias{CacheControl: header}).CachedFor(); got != want {
			t.Errorf("%q: %d, want %d", header, got, want)
		}
	}
}
