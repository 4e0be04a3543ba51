// Package modtime ensures that replaced objects have different entity tags on hosts that count
// whole seconds, where only size and time distinguish two generations of an object. It is not for
// services whose entity tags are of the content or a generation. Begin with [After].
package modtime

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// maxAhead bounds how far an object may be ahead of the host's clock. Successive replacements add a
// second each. An object beyond the bound has a time of unknown origin.
const maxAhead = 24 * time.Hour

// maxRemoved is the number of removed objects whose times are kept. They matter for some seconds.
const maxRemoved = 4096

// NewRemoved returns a cache for the times of removed objects, by their keys. The time of a later
// object of the key must be another one.
func NewRemoved() *lru.Cache[string, time.Time] {
	removed, err := lru.New[string, time.Time](maxRemoved)
	if err != nil {
		panic(err) // the size is positive
	}
	return removed
}

// After returns the time to set for an object with time own that replaces one with time old, zero
// if there is none. It is not before least. After returns false if the object can keep its own.
func After(own, old, least time.Time) (later time.Time, set bool) {
	if !old.IsZero() && !own.After(old) {
		later = old.Truncate(time.Second).Add(time.Second)
	}
	if later.Before(least) {
		later = least
	}
	if !later.After(own) || later.Sub(own) > maxAhead {
		return own, false
	}
	return later, true
}
