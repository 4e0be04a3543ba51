package caller

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestCondition: the conditions of a change hold for an item with the tag "t", or for none.
func TestCondition(t *testing.T) {
	t.Parallel()
	s := storagedrivers.New("test", memory.New(), storagedrivers.Options{})
	t.Cleanup(func() { s.Close() })
	info := storagedrivers.Info{Key: "a.txt", ETag: `"t"`, ModTime: time.Date(2026, time.November, 20, 12, 0, 0, 5e8, time.UTC)}
	dates := strings.NewReplacer("$TIME", info.ModTime.Format(http.TimeFormat), "$BEFORE", info.ModTime.Add(-time.Hour).Format(http.TimeFormat))
	for _, c := range []struct {
		header    string // "name: value" by "|"
		there     bool
		isMissing bool
	}{
		{"", true, true},
		{"If-Match: *", true, false},
		{`If-Match: "t"`, true, false},
		{`If-Match: "x" , W/"y","t"`, true, false},
		{`If-Match: "x"|If-Match: "t"`, true, false},
		{`If-Match: "x"`, false, false},
		{`If-Match: W/"t"`, false, false},
		{`If-Match: "t-gzip"`, true, false},
		{`If-Match: "x", "t-br"`, true, false},
		{`If-Match: "x-gzip"|If-Match: "t-zstd"`, true, false},
		{`If-Match: W/"t-gzip"`, false, false},
		{`If-Match: "t-other"`, false, false},
		{`If-None-Match: "t-gzip"`, false, true},
		{`If-None-Match: "x-gzip"`, true, true},
		{"If-None-Match: *", false, true},
		{`If-None-Match: "t"`, false, true},
		{`If-None-Match: "x", W/"t"`, false, true},
		{`If-None-Match: "x"|If-None-Match: "t"`, false, true},
		{`If-None-Match: "x"`, true, true},
		{`If-Match: "t"|If-None-Match: *`, false, false},
		{`If-Match: *|If-None-Match: "x"`, true, false},
		{"If-Unmodified-Since: $TIME", true, true},
		{"If-Unmodified-Since: $BEFORE", false, true},
		{"If-Unmodified-Since: yesterday", true, true},
		{`If-Match: "t"|If-Unmodified-Since: $BEFORE`, true, false},
		{"If-Modified-Since: $TIME", true, true},
	} {
		matches, refused := Condition(headerOf(dates.Replace(c.header)), &item.Alias{Storage: s})
		if refused != nil {
			t.Errorf("%s: %v", c.header, refused)
			continue
		}
		if there, isMissing := matches(info), matches(storagedrivers.Info{}); there != c.there || isMissing != c.isMissing {
			t.Errorf("%s: %t, of none %t, want %t and %t", c.header, there, isMissing, c.there, c.isMissing)
		}
	}
	for _, malformed := range []string{`"`, "x", `*, "x"`, `"x", *`, `"x" "y"`, "\t", "\"\x01\"", `"x"-gzip"`, "", `"x`, ","} {
		if _, refused := Condition(http.Header{"If-Match": {malformed}}, nil); refused == nil || refused.Reason != item.BadRequest {
			t.Errorf("%q: %v", malformed, refused)
		}
	}
}
