package load_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// TestMain runs nothing with -short, and nothing under the race detector, which multiplies memory.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() || drivertest.RaceDetector {
		fmt.Println("memory and floods are measured without -short and without the race detector")
		return
	}
	site.Main(m)
}
