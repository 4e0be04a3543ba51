package load_test

import (
	"fmt"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// TestMain runs nothing under the race detector, which multiplies memory and time.
func TestMain(m *testing.M) {
	if drivertest.RaceDetector {
		fmt.Println("memory and floods are not measured under the race detector")
		return
	}
	site.Main(m)
}
