package site

import (
	"os"
	"strings"
	"testing"
)

// ReadmeBlock returns the first Caddyfile block in the README that contains a text.
func ReadmeBlock(t *testing.T, text string) string {
	t.Helper()
	for part := range strings.SplitSeq(ReadmeText(t), "```caddyfile\n") {
		if block, _, ok := strings.Cut(part, "```"); ok && strings.Contains(block, text) {
			return block
		}
	}
	t.Fatalf("the README has no example with %q", text)
	return ""
}

// ReadmeText returns the text of the README.
func ReadmeText(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(readme)
}
