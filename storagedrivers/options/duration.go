package options

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Duration is the Go type of an option with a duration. Its JSON is a text as for [ParseDuration],
// or a number of nanoseconds; it is written as the latter.
type Duration time.Duration

// UnmarshalJSON reads a text or a number of nanoseconds.
func (d *Duration) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return json.Unmarshal(data, (*time.Duration)(d))
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := ParseDuration(text)
	*d = Duration(parsed)
	return err
}

// maxDuration is the length of the longest text of a duration, in bytes.
const maxDuration = 1024

var days = regexp.MustCompile(`[-+.0-9]*d`)

// ParseDuration reads a text such as "90s", "1h30m" or "7d". It is [time.ParseDuration] with days of
// 24 hours.
func ParseDuration(text string) (time.Duration, error) {
	if len(text) > maxDuration {
		return 0, fmt.Errorf("a duration of %d characters", len(text))
	}
	hours := days.ReplaceAllStringFunc(text, func(part string) string {
		n, err := strconv.ParseFloat(part[:len(part)-1], 64)
		if err != nil {
			return part // time.ParseDuration has the error
		}
		return strconv.FormatFloat(24*n, 'f', -1, 64) + "h"
	})
	return time.ParseDuration(hours)
}
