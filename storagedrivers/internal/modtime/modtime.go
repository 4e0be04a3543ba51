// Package modtime keeps the entity tags of replaced objects apart. Hosts count whole seconds, and only
// size and time distinguish two generations of an object.
package modtime

import "time"

// maxAhead bounds how far an object may run ahead of the host's clock. Replacements that follow each
// other add a second each. An object beyond the bound has a time of its own, which nothing explains.
const maxAhead = 24 * time.Hour

// After returns the time to set for an object of time own that replaces one of time old, and false if
// it can keep its own.
func After(own, old time.Time) (later time.Time, set bool) {
	later = old.Truncate(time.Second).Add(time.Second)
	if own.After(old) || later.Sub(own) > maxAhead {
		return own, false
	}
	return later, true
}
