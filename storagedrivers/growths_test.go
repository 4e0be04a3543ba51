package storagedrivers

import (
	"fmt"
	"testing"

	"github.com/caddymedia/media/internal/test"
)

// TestGrowthsBounded: a process remembers a bounded number of pieces of growing objects.
func TestGrowthsBounded(t *testing.T) {
	t.Parallel()
	var k growths
	for i := range 3 * maxKnown / 100 {
		k.set(fmt.Sprint(i), growth{ends: make([]int64, 50)})
		k.set(fmt.Sprint(i), growth{ends: make([]int64, 100)})
	}
	pieces := 0
	for _, g := range k.byKey {
		pieces += len(g.ends)
	}
	if pieces != k.pieces || pieces > maxKnown || pieces < maxKnown-100 {
		t.Errorf("%d pieces are remembered, %d counted, at most %d may be", pieces, k.pieces, maxKnown)
	}
	for key := range k.byKey {
		k.forget(key)
	}
	test.Equal(t, k.pieces, 0, "pieces are counted after all were forgotten")
}
