// Package features_test tests what a whole Caddy shows to its clients, administrators and
// monitoring. A file begins with the name of its subject: commands, HTTP, images, observation,
// panel. What remains after faults is tested by package faults.
package features_test

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

func TestMain(m *testing.M) { site.Main(m) }
