// Package bytesize formats numbers of bytes for messages. It is not for options, which package
// options parses. Begin with [Format].
package bytesize

import "github.com/dustin/go-humanize"

// units in the order of preference.
var units = []struct {
	bytes int64
	name  string
}{
	{1 << 40, "TiB"},
	{1 << 30, "GiB"},
	{1 << 20, "MiB"},
	{1 << 10, "KiB"},
	{1e12, "TB"},
	{1e9, "GB"},
	{1e6, "MB"},
	{1e3, "kB"},
	{1, "bytes"},
}

// Format returns a number of bytes in the first unit in which it is whole, so that a limit is never
// rounded: "32 MiB", "10 MB", "1,234 bytes".
func Format(n int64) string {
	unit := units[len(units)-1]
	for _, u := range units {
		if n >= u.bytes && n%u.bytes == 0 {
			unit = u
			break
		}
	}
	return humanize.Comma(n/unit.bytes) + " " + unit.name
}
