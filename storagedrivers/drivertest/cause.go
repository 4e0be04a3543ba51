package drivertest

import (
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// Cause checks the cause of an error; want is empty if it must have none.
func Cause(t *testing.T, err error, want storagedrivers.Cause) {
	t.Helper()
	if got := storagedrivers.CauseOf(err); err == nil || got != want {
		t.Errorf("error %v has the cause %q, want %q", err, got, want)
	}
}
