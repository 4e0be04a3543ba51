package cache

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// BenchmarkWarm reads stored objects. Each has one block, but the last.
func BenchmarkWarm(b *testing.B) {
	for _, tt := range []struct {
		name    string
		objects int
		size    int
		rng     storagedrivers.Range
	}{
		{"1KiB", 1, 8 * mib, storagedrivers.Range{Offset: mib, Length: kib}},
		{"50KiB", 1, 50 * kib, all},
		{"50KiB of 2000", 2000, 50 * kib, all},
		{"1MiB", 1, mib, all},
		{"1MiB of 200", 200, mib, all},
		{"8MiB", 1, 8 * mib, all},
	} {
		b.Run(tt.name, func(b *testing.B) {
			d := behind(b, newBackend(), open(b, b.TempDir(), 0), Policy{Immutable: true, Revalidate: time.Hour, FillOnUpload: true})
			for i := range tt.objects {
				put(b, d, fmt.Sprint(i), random(uint64(i), tt.size))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				body, _, err := d.Open(b.Context(), fmt.Sprint(i%tt.objects), tt.rng)
				test.Is(b, err, nil)
				n, err := io.Copy(io.Discard, body)
				test.Is(b, err, nil)
				b.SetBytes(n)
				test.Is(b, body.Close(), nil)
			}
		})
	}
}
