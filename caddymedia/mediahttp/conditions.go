package mediahttp

import (
	"net/http"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

// conditionOf returns the conditions of a request about an item of an alias. It evaluates them in
// the order of RFC 9110 section 13.2.2, for the zero Info as for a missing item.
func conditionOf(header http.Header, alias *item.Alias) (matches func(storagedrivers.Info) bool, refused *refusal) {
	match := header.Values("If-Match")
	tags, ok := matchedTags(match)
	if !ok {
		return nil, &refusal{http.StatusBadRequest, item.BadRequest, `the header If-Match is * or a list of entity tags, such as "x"`}
	}
	since, err := http.ParseTime(header.Get("If-Unmodified-Since"))
	dated := err == nil && len(match) == 0
	others := strings.TrimSpace(strings.Join(header.Values("If-None-Match"), ","))
	return func(info storagedrivers.Info) bool {
		if info.Key == "" {
			return len(match) == 0
		}
		tag := EntityTag(alias, info)
		switch {
		case !tags.match(alias, tag),
			dated && info.ModTime.Truncate(time.Second).After(since),
			others == "*":
			return false
		}
		tag = strings.TrimPrefix(tag, "W/") // the comparison is weak
		return tag == "" || !strings.Contains(others, tag)
	}, nil
}
