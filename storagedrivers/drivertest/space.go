package drivertest

import (
	"context"
	"errors"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// testSpace: the space of a backend is possible, and asking for it leaves nothing behind.
func testSpace(t *testing.T, e *env) {
	s := storagedrivers.New("space", e.bare, storagedrivers.Options{Close: func() error { return nil }})
	defer closed(t, s)
	space, err := s.Space(t.Context())
	if errors.Is(err, errors.ErrUnsupported) {
		if space != (storagedrivers.Space{}) {
			t.Errorf("space %+v with the error %v", space, err)
		}
		t.Skip("the backend does not report its space")
	}
	succeeds(t, err, "asking for the space")
	if space.Free < 0 || space.Total < 1 || space.Free > space.Total {
		t.Errorf("space %+v, want 0 <= Free <= Total, and a Total of at least 1", space)
	}
	e.put(t, "object", content{1, 100}, create)
	after, err := s.Space(t.Context())
	succeeds(t, err, "asking for the space again")
	if after.Total < 1 {
		t.Errorf("space %+v", after)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Space(ctx)
	fails(t, err, context.Canceled, "asking for the space after the end of the context")
	e.holds(t, "object")
}
