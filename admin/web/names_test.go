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
	for script, pattern := range map[string]string{"storage.js": media.Names.Pattern, "accounts.js": media.APIKeys.Pattern} {
		source, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(source), pattern+"$/") {
			t.Errorf("%s has no rule %s", script, pattern)
		}
	}
}
