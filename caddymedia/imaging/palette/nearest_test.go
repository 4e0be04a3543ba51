package palette

import "testing"

// TestNearest compares the distances with those of a search through all colours.
func TestNearest(t *testing.T) {
	t.Parallel()
	seed := uint32(1)
	random := func() int {
		seed = seed*1664525 + 1013904223
		return int(seed >> 24)
	}
	for count := 1; count <= 256; count += 51 {
		colors := make([]rgb, count)
		for i := range colors {
			colors[i] = rgb{uint8(random()), uint8(random()), uint8(random())}
		}
		f := newFinder(colors)
		for range 5000 {
			r, g, b := random(), random(), random()
			distance := func(c rgb) int {
				x, y, z := int(c[0])-r, int(c[1])-g, int(c[2])-b
				return x*x + y*y + z*z
			}
			least := 1 << 30
			for _, c := range colors {
				least = min(least, distance(c))
			}
			if got := distance(colors[f.nearest(r, g, b)]); got != least {
				t.Fatalf("the distance of %d, %d, %d is %d, want %d", r, g, b, got, least)
			}
		}
	}
}
