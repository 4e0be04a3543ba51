package naming

import (
	"strings"
	"time"

	"github.com/ncruces/go-strftime"
)

const (
	defaultPattern = "%y-%m/%d"
	rootPattern    = "/"
)

// conversions are those of strftime that always produce letters, digits, hyphens and, for %D and
// %x, slashes. The others produce spaces, colons, control characters, or the free text of a time
// zone.
const conversions = "AaBbCDdFfGgHhIjLMmNPpQSsUuVWwxYy"

// plainBytes are the characters of a pattern besides conversions.
const plainBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./"

// Format is a Sub Folder Format: the folder of an item uploaded without one. Its zero value is the
// default, the upload date as <yy>-<mm>/<dd>.
type Format struct {
	// pattern is "" for the default, so that equal formats compare equal.
	pattern string
}

// ParseFormat parses a Sub Folder Format: "" is the default, "/" the root of the alias, anything
// else a strftime pattern such as %Y/%m. It accepts one trailing slash.
//
// Text besides conversions is kept as written. It may be ASCII letters, digits, "-", "_", "." and
// "/", so a folder never needs encoding in an address. The error is an *[Error]. It is returned for
// other characters, for conversions that are unknown or produce such, and for folders that
// [SubFolder] refuses or that are [Restricted].
func ParseFormat(s string) (Format, error) {
	if s == rootPattern {
		return Format{s}, nil
	}
	f := Format{strings.TrimSuffix(s, "/")}
	if s == "" || f.pattern == defaultPattern {
		return Format{}, nil
	}
	if p := patternProblem(f.pattern); p != "" {
		return Format{}, &Error{"the sub folder format " + p}
	}
	for _, t := range samples() {
		if p := folderProblem(f.expand(t)); p != "" {
			return Format{}, &Error{"a folder of the sub folder format " + p}
		}
	}
	return f, nil
}

// Folder returns the folder for an item stored at t, in the time zone of t; "" is the root of the
// alias. The folder is always valid: in a distant year for which the pattern produces none, the
// default is used.
func (f Format) Folder(t time.Time) string {
	if f.pattern == rootPattern {
		return ""
	}
	folder := f.expand(t)
	if folderProblem(folder) != "" {
		return Format{}.expand(t)
	}
	return folder
}

// String returns the pattern in use, which [ParseFormat] parses to the same format: "%y-%m/%d" for
// the default.
func (f Format) String() string {
	if f.pattern == "" {
		return defaultPattern
	}
	return f.pattern
}

func (f Format) expand(t time.Time) string {
	return strftime.Format(f.String(), t)
}

// patternProblem returns the reason why a pattern may produce characters unfit for a folder, or "".
func patternProblem(pattern string) string {
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			if strings.IndexByte(plainBytes, pattern[i]) < 0 {
				return `may hold, besides conversions, only ASCII letters, digits, "-", "_", "." and "/"`
			}
			continue
		}
		// A hyphen requests a number without padding.
		directive := strings.TrimPrefix(pattern[i+1:], "-")
		if directive == "" || !strings.Contains(conversions, directive[:1]) {
			return "has a conversion that is unknown or cannot be part of a folder: use % and one of " + conversions
		}
		i = len(pattern) - len(directive)
	}
	return ""
}

// folderProblem returns the reason why an expanded pattern is no valid folder, or "".
func folderProblem(folder string) string {
	if p := pathProblem(folder); p != "" {
		return p
	}
	for segment := range strings.SplitSeq(folder, "/") {
		if p := problem(segment); p != "" {
			return "has a segment that " + p
		}
	}
	if Restricted(folder) != "" {
		return "carries an extension that is never allowed"
	}
	return ""
}

// samples returns times that cover every month and weekday over four years. At the first one every
// conversion is at its longest.
func samples() []time.Time {
	const step = 13*24*time.Hour + 7*time.Hour + 11*time.Minute + 13*time.Second
	start := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	times := make([]time.Time, 1, 121)
	times[0] = time.Date(2026, time.September, 30, 23, 59, 59, 999_999_999, time.UTC) // a Wednesday
	for i := range 120 {
		times = append(times, start.Add(time.Duration(i)*step))
	}
	return times
}
