package media

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/caddymedia/ingest"
)

// MaxRenditions is the most renditions of an alias.
const MaxRenditions = 16

// addRenditions adds the renditions, sorted by name.
func (a *Alias) addRenditions(alias *ingest.Alias) error {
	if len(a.Renditions) == 0 {
		return nil
	}
	if err := CheckRenditions(len(a.Renditions), alias.Prefix == ""); err != nil {
		return err
	}
	alias.Renditions = slices.SortedFunc(slices.Values(a.Renditions), func(a, b ingest.Rendition) int {
		return strings.Compare(a.Name, b.Name)
	})
	for i := range alias.Renditions {
		r := &alias.Renditions[i]
		if err := CheckName("rendition", r.Name); err != nil {
			return err
		}
		if err := CheckRendition(r); err != nil {
			return fmt.Errorf("rendition %q: %w", r.Name, err)
		}
		if i > 0 && alias.Renditions[i-1].Name == r.Name {
			return fmt.Errorf("rendition %q: it is there twice", r.Name)
		}
	}
	alias.RenditionCacheControl = revalidated(alias.CacheControl)
	return nil
}

// CheckRenditions returns an error if an alias cannot have that many renditions. root reports whether
// its prefix is "/".
func CheckRenditions(count int, root bool) error {
	switch {
	case count > MaxRenditions:
		return fmt.Errorf("renditions are at most %d in an alias, not %d", MaxRenditions, count)
	case count > 0 && root:
		return errors.New("renditions need a prefix other than /, because they are stored outside of it")
	}
	return nil
}

// CheckRendition returns an error that names the wrong option of a rendition.
func CheckRendition(r *ingest.Rendition) error {
	width, height := r.Box.Width, r.Box.Height
	switch {
	case width < 0 || height < 0 || max(width, height) > webp.MaxSide:
		return fmt.Errorf("width and height are from 1 to %d", webp.MaxSide)
	case width == 0 && height == 0:
		return errors.New("width or height is missing")
	case r.Quality < 0 || r.Quality > 100:
		return fmt.Errorf("quality is a number from 1 to 100, not %d", r.Quality)
	case !slices.Contains([]imaging.Format{"", imaging.JPEG, imaging.PNG, imaging.WebP}, r.Format):
		return fmt.Errorf("format is same, webp, jpeg or png, not %s", r.Format)
	}
	return nil
}

// maxRenditionAge is the most seconds that a client may keep a rendition without asking again. Its
// settings may change under the same address.
const maxRenditionAge = 24 * 60 * 60

// revalidated returns the Cache-Control header of renditions for that of the items: not immutable,
// and at most for a day.
func revalidated(cacheControl string) string {
	var kept []string
	bounded := false
	for directive := range strings.SplitSeq(cacheControl, ",") {
		directive = strings.TrimSpace(directive)
		name, value, _ := strings.Cut(strings.ToLower(directive), "=")
		switch name {
		case "", "immutable", "stale-while-revalidate", "stale-if-error":
			continue
		case "no-cache", "no-store":
			bounded = true
		case "max-age", "s-maxage":
			seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 64)
			if err != nil || seconds > maxRenditionAge {
				directive = name + "=" + strconv.Itoa(maxRenditionAge)
			}
			bounded = bounded || name == "max-age"
		}
		kept = append(kept, directive)
	}
	if !bounded {
		kept = append(kept, "max-age="+strconv.Itoa(maxRenditionAge))
	}
	return strings.Join(kept, ", ")
}
