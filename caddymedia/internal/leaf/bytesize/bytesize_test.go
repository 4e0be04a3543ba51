package bytesize

import (
	"math"
	"testing"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0:             "0 bytes",
		999:           "999 bytes",
		1000:          "1 kB",
		1024:          "1 KiB",
		1234:          "1,234 bytes",
		9000:          "9 kB",
		10_000_000:    "10 MB",
		32 << 20:      "32 MiB",
		3 << 29:       "1,536 MiB",
		2 << 30:       "2 GiB",
		4 << 40:       "4 TiB",
		math.MaxInt64: "9,223,372,036,854,775,807 bytes",
	} {
		if got := Format(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
