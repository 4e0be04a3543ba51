package storagedrivers_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func TestWithCause(t *testing.T) {
	t.Parallel()
	const cause = storagedrivers.Cause("It is broken. Repair it.")
	err := fmt.Errorf("connecting: %w", storagedrivers.WithCause(storagedrivers.ErrUnavailable, cause))
	if got := storagedrivers.CauseOf(err); got != cause {
		t.Errorf("cause %q", got)
	}
	if !errors.Is(err, storagedrivers.ErrUnavailable) || err.Error() != "connecting: storage unavailable" {
		t.Errorf("error %v", err)
	}
	if again := storagedrivers.CauseOf(storagedrivers.WithCause(err, "Something.")); again != cause {
		t.Errorf("the cause of the cause is %q", again)
	}
	if storagedrivers.WithCause(nil, cause) != nil {
		t.Error("no error became one")
	}
	if storagedrivers.CauseOf(storagedrivers.WithCause(storagedrivers.ErrNoSpace, "")) != "" {
		t.Error("no cause became one")
	}
}
