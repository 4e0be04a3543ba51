package item

import (
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

func TestRest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		expires, age time.Duration
		rest         time.Duration
		ends, over   bool
	}{
		"never":       {0, time.Hour, 0, false, false},
		"before":      {time.Hour, time.Minute, 59 * time.Minute, true, false},
		"just before": {time.Hour, time.Hour - 1, 1, true, false},
		"at the end":  {time.Hour, time.Hour, 0, true, true},
		"after":       {time.Hour, 2 * time.Hour, -time.Hour, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alias, info := &Alias{Expires: tt.expires}, storagedrivers.Info{ModTime: now.Add(-tt.age)}
			if rest, ends := alias.Rest(info, now); rest != tt.rest || ends != tt.ends {
				t.Errorf("the rest is %v, %t", rest, ends)
			}
			if over := alias.HasExpired(info, now); over != tt.over {
				t.Errorf("expired: %t", over)
			}
		})
	}
	if (&Alias{Expires: time.Hour}).HasExpired(storagedrivers.Info{Key: "a"}, now) {
		t.Error("an item without a time has expired")
	}
}

func TestBoundAge(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"public, max-age=31536000, immutable":    "public, max-age=86400",
		"public, no-cache":                       "public, no-cache",
		"no-store":                               "no-store",
		"public":                                 "public, max-age=86400",
		"private, MAX-AGE=60":                    "private, MAX-AGE=60",
		"max-age=60, s-maxage=9999999":           "max-age=60, s-maxage=86400",
		"s-maxage=60":                            "s-maxage=60, max-age=86400",
		`max-age="100000",immutable`:             "max-age=86400",
		"max-age=never":                          "max-age=86400",
		"max-age=5, stale-while-revalidate=9999": "max-age=5",
	} {
		if got := BoundAge(given, 24*time.Hour); got != want {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
}
