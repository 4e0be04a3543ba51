package imaging

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ContentError tells that the content is not what the name says, is damaged, or holds something that is not
// accepted. The message is meant for the uploader. Answer it with 415.
type ContentError struct {
	// Message says what is wrong, in words the uploader can act on.
	Message string
}

// Error returns the message.
func (e *ContentError) Error() string { return e.Message }

// TooLargeError tells that the content is over a limit: pixels, sides, frames, chunks, or the size of an SVG. The message is meant
// for the uploader. Answer it with 413.
type TooLargeError struct {
	// Message names the limit and what exceeds it.
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

// verdict returns the error for the uploader that err is or wraps, nil when it is another kind of failure.
func verdict(err error) error {
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

// shorten makes a name of the uploader's choosing fit for a message: short, and valid UTF-8.
func shorten(name string) string {
	const most = 40
	name = strings.ToValidUTF8(name, "\uFFFD")
	if r := []rune(name); len(r) > most {
		return string(r[:most]) + "..."
	}
	return name
}

// thousands writes n for a human: 50,000,000.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
