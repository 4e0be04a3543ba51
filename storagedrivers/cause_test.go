package storagedrivers_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

func TestWithCause(t *testing.T) {
	t.Parallel()
	const cause = storagedrivers.Cause("It is broken. Repair it.")
	err := fmt.Errorf("connecting: %w", storagedrivers.WithCause(storagedrivers.ErrUnavailable, cause))
	test.Equal(t, storagedrivers.CauseOf(err), cause, "cause")
	if !errors.Is(err, storagedrivers.ErrUnavailable) || err.Error() != "connecting: storage unavailable" {
		t.Errorf("error %v", err)
	}
	test.Equal(t, storagedrivers.CauseOf(storagedrivers.WithCause(err, "Something.")), cause, "the cause of the cause is")
	if storagedrivers.WithCause(nil, cause) != nil {
		t.Error("no error became one")
	}
	test.Equal(t, storagedrivers.CauseOf(storagedrivers.WithCause(storagedrivers.ErrNoSpace, "")), "", "no cause became one")
}
