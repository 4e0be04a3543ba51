package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// PutFile writes a file, and its folder.
func PutFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ReadFile returns the content of a file.
func ReadFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// IsNoFolder returns a function that reports whether an open file belongs to an upload. The two
// roots and their scratch folders stay open.
func IsNoFolder(c *Child) func(string) bool {
	return func(open string) bool {
		name, err := filepath.Rel(c.Root, open)
		if err != nil {
			return true
		}
		_, below, _ := strings.Cut(name, "/")
		scratch := strings.HasPrefix(below, ".media-tmp-") && !strings.Contains(below, "/")
		return below != "" && !scratch
	}
}
