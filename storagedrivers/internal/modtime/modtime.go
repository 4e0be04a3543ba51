// Package modtime ensures that replaced objects have different entity tags on hosts that count
// whole seconds. There only size and time distinguish two generations of an object.
package modtime

import "time"

// maxAhead bounds how far an object may be ahead of the host's clock. Successive replacements add a
// second each. An object beyond the bound has a time of unknown origin.
const maxAhead = 24 * time.Hour

// After returns the time to set for an object with time own that replaces one with time old, zero if
// there is none. It is not before least. After returns false if the object can keep its own.
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
