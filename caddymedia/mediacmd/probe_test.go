package mediacmd

import (
	"errors"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestStepTitles: every step of a probe has a title, also that after a failure.
func TestStepTitles(t *testing.T) {
	t.Parallel()
	driver := memory.New()
	driver.Fail = func(op, _ string) error {
		if op == "stat" {
			return errors.New("not now")
		}
		return nil
	}
	s := storagedrivers.New("test", driver, storagedrivers.Options{})
	defer s.Close()
	steps := s.Probe(t.Context()).Steps
	if len(steps) != len(stepTitles) {
		t.Errorf("%d steps, %d titles", len(steps), len(stepTitles))
	}
	for _, step := range steps {
		if stepTitles[step.Name] == "" {
			t.Errorf("%q has no title", step.Name)
		}
	}
}
