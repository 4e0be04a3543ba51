// Package naming determines the name and the folder of an uploaded item.
//
// All input from callers (file name, sub folder) is untrusted. With sanitizing, it becomes plain
// lower-case ASCII that needs no encoding in an address. Without, it is used unchanged or refused,
// never silently changed. Changed text is normalized first and checked last, so that no later step
// can turn an accepted name into another one.
//
// The functions are pure: equal arguments have equal results on every machine.
package naming

// Error is the refusal of a name, a folder or a format. It can be shown to the sender: it names the
// problem without repeating the value.
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
