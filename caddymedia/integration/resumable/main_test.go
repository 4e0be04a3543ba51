package resumable_test

import (
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/site"
)

func TestMain(m *testing.M) { site.Main(m) }
