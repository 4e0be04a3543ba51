package plugin_test

import (
	"os"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/testcaddy"
)

// TestMain keeps Caddy's files out of the user's home folder.
func TestMain(m *testing.M) { os.Exit(testcaddy.Run(m)) }
