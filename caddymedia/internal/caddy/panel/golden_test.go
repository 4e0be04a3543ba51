package panel_test

import (
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/caddymedia/media/caddymedia/internal/caddy/panel"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
)

func TestGolden(t *testing.T) {
	t.Parallel()
	testcaddy.Golden(t)
}
