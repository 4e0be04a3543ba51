package modtime

import (
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	own := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		name       string
		old, least time.Duration // from own
		want       time.Duration
		set        bool
	}{
		{"older", -time.Second, -year, 0, false},
		{"a fraction older", -time.Millisecond, -year, 0, false},
		{"the same", 0, -year, time.Second, true},
		{"in the same second", 300 * time.Millisecond, -year, time.Second, true},
		{"younger", time.Minute, -year, time.Minute + time.Second, true},
		{"years ahead", 3 * year, -year, 0, false},
		{"the least", -time.Second, 0, 0, false},
		{"below the least", -time.Second, time.Minute, time.Minute, true},
		{"years below the least", -time.Second, 3 * year, 0, false},
		{"younger, below the least", time.Minute, time.Hour, time.Hour, true},
		{"younger, above the least", time.Minute, time.Minute, time.Minute + time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, set := After(own, own.Add(tt.old), own.Add(tt.least))
			if !got.Equal(own.Add(tt.want)) || set != tt.set {
				t.Errorf("got %v, %t, want %v, %t", got, set, own.Add(tt.want), tt.set)
			}
		})
	}
	if got, set := After(own, time.Time{}, time.Time{}); !got.Equal(own) || set {
		t.Errorf("without an older object: got %v, %t", got, set)
	}
	if got, set := After(own, time.Time{}, own.Add(time.Minute)); !got.Equal(own.Add(time.Minute)) || !set {
		t.Errorf("without an older object, below the least: got %v, %t", got, set)
	}
}
