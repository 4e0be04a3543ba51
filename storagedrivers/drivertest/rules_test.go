package drivertest

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// TestRules: what a subtest asserts stands in a comment of package storagedrivers, in the same
// words.
func TestRules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../*.go")
	test.Must(t, err)
	var comments strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		test.Must(t, err)
		for _, comment := range parsed.Comments {
			comments.WriteString(strings.Join(strings.Fields(comment.Text()), " ") + "\n")
		}
	}
	for _, tt := range subtests {
		if tt.rule == "" || !strings.Contains(comments.String(), tt.rule) {
			t.Errorf("%s: no comment of the contract says %q", tt.name, tt.rule)
		}
	}
}
