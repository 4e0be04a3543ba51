package plugin_test

import (
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/encode/gzip"

	_ "github.com/caddymedia/media/caddymedia" // plug in all modules
	"github.com/caddymedia/media/caddymedia/internal/testcaddy"
)

func TestGolden(t *testing.T) {
	t.Parallel()
	testcaddy.Golden(t)
}
