// Package naming decides what an uploaded item is called and which folder it goes to.
//
// Everything a caller sends (a file name, a sub folder) is untrusted. With sanitizing on, it is turned into plain
// lower-case ASCII that needs no encoding in an address; off, it is taken exactly as it came or refused, never
// silently changed. Where text is changed it is normalized first and checked last, so that no later step can turn
// an accepted name into another one.
//
// The functions are pure: the same arguments always give the same result, on every machine.
package naming

// Error is the refusal of a name, a folder or a format. It can be shown to whoever sent the value: it says what is
// wrong with it, without repeating it.
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
