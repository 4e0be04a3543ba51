// Package imagingtest gives the tests of pictures what they share.
package imagingtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Corpus gives the folder of pictures that MEDIA_TEST_CORPUS names. Without one the test
// is skipped, or fails where MEDIA_TEST_MUST_RUN says that no test may be skipped.
func Corpus(t testing.TB) string {
	t.Helper()
	root := os.Getenv("MEDIA_TEST_CORPUS")
	if root != "" {
		return root
	}
	if os.Getenv("MEDIA_TEST_MUST_RUN") != "" {
		t.Fatal("MEDIA_TEST_CORPUS names no folder of pictures")
	}
	t.Skip("MEDIA_TEST_CORPUS names no folder of pictures")
	return ""
}

// Files gives the paths of what is in one folder of the [Corpus], which must be something.
func Files(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Corpus(t), folder, "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("MEDIA_TEST_CORPUS has no folder %s (%v)", folder, err)
	}
	return files
}
