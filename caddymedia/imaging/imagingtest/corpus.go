// Package imagingtest holds helpers for tests of images.
package imagingtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Corpus returns the folder of images in MEDIA_TEST_CORPUS. If it is unset, Corpus skips the
// test, or fails it if MEDIA_TEST_MUST_RUN is set.
func Corpus(t testing.TB) string {
	t.Helper()
	root := os.Getenv("MEDIA_TEST_CORPUS")
	if root != "" {
		return root
	}
	if os.Getenv("MEDIA_TEST_MUST_RUN") != "" {
		t.Fatal("MEDIA_TEST_CORPUS names no folder of images")
	}
	t.Skip("MEDIA_TEST_CORPUS names no folder of images")
	return ""
}

// Files returns the paths in one folder of the [Corpus]. It fails the test if there are none.
func Files(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Corpus(t), folder, "*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("MEDIA_TEST_CORPUS has no folder %s (%v)", folder, err)
	}
	return files
}
