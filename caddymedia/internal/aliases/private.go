package aliases

import (
	"fmt"
	"slices"
	"time"
)

// Private is how the items of an alias are served with a signed address only.
type Private struct {
	// Public are the renditions that need no signature.
	Public []string
	// Step is what the end of an address is a multiple of; 0 for a second.
	Step time.Duration
	// SharedCache allows caches that visitors share to keep the items.
	SharedCache bool
	// Generation is part of each signature.
	Generation int64
}

// CacheControl returns the Cache-Control header of an item whose address is valid for rest.
func (p *Private) CacheControl(rest time.Duration) string {
	if p.SharedCache {
		return fmt.Sprintf("public, max-age=%d", rest/time.Second)
	}
	return fmt.Sprintf("private, max-age=%d", min(rest, time.Hour)/time.Second)
}

// NeedsSignature reports whether an item of the alias is served with a signed address only, or its
// rendition if that is not nil. An SVG is its own rendition, so no rendition of it is public.
func (a *Alias) NeedsSignature(filename string, r *Rendition) bool {
	return a.Private != nil && (r == nil || !slices.Contains(a.Private.Public, r.Name) || !a.IsRendered(filename))
}
