// Package naming determines the name and the folder of an uploaded item.
//
// All input from callers (file name, sub folder) is untrusted. If sanitizing is on, it becomes
// plain lower-case ASCII that needs no encoding in an address. If sanitizing is off, it is used
// unchanged or refused. Normalization is the first step and the check the last, so an accepted name
// does not change any more.
//
// The functions are pure: equal arguments have equal results on every machine.
package naming

// Error is returned for a refused name, folder or format. It does not repeat the value, so it may
// be shown to the sender.
type Error struct {
	// Message is a lower-case phrase without a final stop.
	Message string
}

// Error returns the message.
func (e *Error) Error() string {
	return e.Message
}

// Interface guards
var _ error = (*Error)(nil)
