package storagedrivers

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/attribute"
)

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
