package mediacmd

import (
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestStepTitles: every step of a probe has a title.
func TestStepTitles(t *testing.T) {
	t.Parallel()
	s := storagedrivers.New("test", memory.New(), storagedrivers.Options{})
	defer s.Close()
	for _, step := range s.Probe(t.Context()).Steps {
		if title := stepTitle(step.Name); strings.Contains(title, step.Name+`"`) {
			t.Errorf("it is called %s", title)
		}
	}
}
