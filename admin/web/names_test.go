package web_test

import (
	"os"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/media"
)

// TestNameRules: forms refuse the names that the service refuses.
func TestNameRules(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("lib/names.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{media.Names.Pattern, media.APIKeys.Pattern} {
		if !strings.Contains(string(source), pattern+"$/") {
			t.Errorf("names.js has no rule %s", pattern)
		}
	}
}
