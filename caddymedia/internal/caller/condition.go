package caller

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/httpx"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/storagedrivers"
)

// Condition returns the conditions of a request about an item of an alias. It evaluates them in
// the order of RFC 9110 section 13.2.2, for the zero Info as for a missing item.
func Condition(header http.Header, alias *item.Alias) (matches func(storagedrivers.Info) bool, refused *Refusal) {
	match := header.Values("If-Match")
	tags, ok := matchedTags(match)
	if !ok {
		return nil, Refuse(http.StatusBadRequest, item.BadRequest, `the header If-Match is * or a list of entity tags, such as "x"`)
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

// entityTags are those of an If-Match header. Without the header they match any item.
type entityTags struct {
	any  bool
	tags map[string]bool
}

// match reports whether the tags have that of an item of an alias. A strong tag and a weak one
// never match.
func (e entityTags) match(alias *item.Alias, tag string) bool {
	return e.any || e.tags[tag] && isMatchable(alias, tag)
}

// matchedTags returns the entity tags of an If-Match header, and false if it is malformed.
func matchedTags(header []string) (entityTags, bool) {
	list := strings.Trim(strings.Join(header, ","), " \t")
	if len(header) == 0 || list == "*" {
		return entityTags{any: true}, true
	}
	e := entityTags{tags: map[string]bool{}}
	for {
		rest := strings.TrimPrefix(list, "W/")
		if rest == "" || rest[0] != '"' {
			return e, false
		}
		end := strings.IndexByte(rest[1:], '"') + 2
		if end < 2 || strings.ContainsFunc(rest[:end], func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return e, false
		}
		e.tags[list[:len(list)-len(rest)+end]] = true
		list = strings.TrimLeft(rest[end:], " \t")
		if list == "" {
			return e, true
		}
		if list[0] != ',' {
			return e, false
		}
		list = strings.TrimLeft(list, ", \t")
	}
}

// EntityTag returns the entity tag of the storage. Without one it returns a tag of size and time,
// which is empty without a time. Storages often store times in seconds, so two versions of a name
// may have the same size and time. Therefore the tag is strong only if items are never replaced.
func EntityTag(alias *item.Alias, info storagedrivers.Info) string {
	if info.ETag != "" || info.ModTime.IsZero() {
		return info.ETag
	}
	tag := fmt.Sprintf(`"%x-%x"`, info.Size, info.ModTime.UnixNano())
	if alias.Overwrite {
		return "W/" + tag
	}
	return tag
}

// isMatchable reports whether an entity tag of an item is a condition of If-Match: a strong one, and
// a weak one if all items that this process stores under one name have different times.
func isMatchable(alias *item.Alias, tag string) bool {
	return tag != "" && (!strings.HasPrefix(tag, "W/") || alias.Storage.Features().Dated)
}

// conditionHeaders are the conditions of requests that change an item, RFC 9110 section 13.1.
var conditionHeaders = []string{"If-Match", "If-None-Match", "If-Unmodified-Since"}

// HasCondition reports whether a request has a condition.
func HasCondition(header http.Header) bool {
	return slices.ContainsFunc(conditionHeaders, func(name string) bool { return len(header.Values(name)) > 0 })
}

// BodyRefusal returns the refusal of a request whose body is encoded, or has a piece of a file.
// Otherwise it returns nil.
func BodyRefusal(kind item.Kind, header http.Header, query url.Values) *Refusal {
	if failure := upload.PieceOf(kind, header, query); failure != nil {
		return Refuse(http.StatusBadRequest, failure.Reason, failure.Message)
	}
	if httpx.IsEncoded(header) {
		return Refuse(http.StatusUnsupportedMediaType, item.BadRequest, httpx.EncodedBody)
	}
	return nil
}
