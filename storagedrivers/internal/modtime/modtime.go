// Package modtime ensures that replaced objects have different entity tags on hosts that count
// whole seconds. There only size and time distinguish two generations of an object.
package modtime

import "time"

// maxAhead bounds how far an object may be ahead of the host's clock. Successive replacements add a
// second each. An object beyond the bound has a time of unknown origin.
const maxAhead = 24 * time.Hour

// After returns the time to set for an object with time own that replaces one with time old. It
// returns false if the object can keep its own.
func After(own, old time.Time) (later time.Time, set bool) {
	later = old.Truncate(time.Second).Add(time.Second)
	if own.After(old) || later.Sub(own) > maxAhead {
		return own, false
	}
	return later, true
}
