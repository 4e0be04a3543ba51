package storagedrivers

import (
	"context"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/caddymedia/media/storagedrivers/internal/test"
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

// TestSpanCost: an operation allocates nothing for spans if none is recorded.
func TestSpanCost(t *testing.T) { // not parallel: it counts what all allocate
	s, ctx := &Storage{name: "test"}, context.Background()
	if n := testing.AllocsPerRun(1000, func() {
		ctx, span := s.startSpan(ctx, "stat", "key")
		note(ctx, attribute.Int64("media.size", 1<<40))
		endSpan(span, "stat", nil)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
