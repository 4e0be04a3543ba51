package imaging

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ContentError reports content that does not match its name, is damaged, or contains something that
// is not accepted. The message is for the uploader. The HTTP status is 415.
type ContentError struct {
	// Message describes the problem so that the uploader can fix it.
	Message string
}

// Error returns the message.
func (e *ContentError) Error() string { return e.Message }

// TooLargeError reports content over a limit: pixels, sides, frames, chunks, or the size of an SVG.
// The message is for the uploader. The HTTP status is 413.
type TooLargeError struct {
	// Message names the limit and the value that exceeds it.
	Message string
}

// Error returns the message.
func (e *TooLargeError) Error() string { return e.Message }

func contentErrorf(format string, args ...any) error {
	return &ContentError{Message: fmt.Sprintf(format, args...)}
}

func tooLargef(format string, args ...any) error {
	return &TooLargeError{Message: fmt.Sprintf(format, args...)}
}

// refusal returns the [ContentError] or [TooLargeError] that err is or wraps, or nil for other
// errors.
func refusal(err error) error {
	var content *ContentError
	var large *TooLargeError
	switch {
	case errors.As(err, &content):
		return content
	case errors.As(err, &large):
		return large
	}
	return nil
}

// shorten returns a name chosen by the uploader in a form fit for a message: short, and valid
// UTF-8.
func shorten(name string) string {
	const most = 40
	name = strings.ToValidUTF8(name, "\uFFFD")
	if r := []rune(name); len(r) > most {
		return string(r[:most]) + "..."
	}
	return name
}

// thousands formats n with separators: 50,000,000.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
