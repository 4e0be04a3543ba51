package modtime

import (
	"testing"
	"time"
)

func TestAfter(t *testing.T) {
	t.Parallel()
	own := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name      string
		old, want time.Duration // from own
		set       bool
	}{
		{"older", -time.Second, 0, false},
		{"a fraction older", -time.Millisecond, 0, false},
		{"the same", 0, time.Second, true},
		{"in the same second", 300 * time.Millisecond, time.Second, true},
		{"younger", time.Minute, time.Minute + time.Second, true},
		{"years ahead", 3 * 365 * 24 * time.Hour, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, set := After(own, own.Add(tt.old))
			if !got.Equal(own.Add(tt.want)) || set != tt.set {
				t.Errorf("got %v, %t, want %v, %t", got, set, own.Add(tt.want), tt.set)
			}
		})
	}
}
