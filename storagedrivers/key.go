package storagedrivers

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a key: 1,024 bytes in Amazon S3, Azure Blob and Google Cloud Storage, and 255 bytes per
// segment in file systems.
const (
	MaxKeyBytes     = 1024
	MaxSegmentBytes = 255
)

// ValidKey returns an error that wraps ErrInvalidKey if key may not name an object. A valid key
// consists of segments joined by single slashes, in valid UTF-8 without control characters and
// backslashes. No segment begins with a dot: this excludes "." and "..", and reserves such names
// for drivers. No segment ends with a space or a dot.
func ValidKey(key string) error {
	if key == "" || len(key) > MaxKeyBytes {
		return fmt.Errorf("%w: %d bytes, want 1 to %d", ErrInvalidKey, len(key), MaxKeyBytes)
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("%w: not UTF-8", ErrInvalidKey)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }) {
		return fmt.Errorf("%w: control character or backslash", ErrInvalidKey)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if err := validSegment(segment); err != nil {
			return err
		}
	}
	return nil
}

func validSegment(segment string) error {
	switch {
	case segment == "":
		return fmt.Errorf("%w: empty segment", ErrInvalidKey)
	case len(segment) > MaxSegmentBytes:
		return fmt.Errorf("%w: segment of %d bytes, want at most %d", ErrInvalidKey, len(segment), MaxSegmentBytes)
	case segment[0] == '.':
		return fmt.Errorf("%w: segment begins with a dot", ErrInvalidKey)
	case strings.HasSuffix(segment, ".") || strings.HasSuffix(segment, " "):
		return fmt.Errorf("%w: segment ends in a dot or a space", ErrInvalidKey)
	}
	return nil
}

// validPrefix reports whether a valid key may begin with prefix.
func validPrefix(prefix string) bool {
	return prefix == "" || ValidKey(prefix) == nil || ValidKey(prefix+"x") == nil
}
