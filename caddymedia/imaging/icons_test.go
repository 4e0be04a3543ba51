package imaging_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
)

// fewestIcons is the least number of icons for a meaningful test.
const fewestIcons = 1000

// TestIconsPass: the rules accept the output of drawing tools. Every icon in the folder
// MEDIA_TEST_ICONS passes. If it is unset, the test is skipped, or fails if MEDIA_TEST_MUST_RUN is
// set.
func TestIconsPass(t *testing.T) {
	t.Parallel()
	root := os.Getenv("MEDIA_TEST_ICONS")
	if root == "" {
		if os.Getenv("MEDIA_TEST_MUST_RUN") != "" {
			t.Fatal("MEDIA_TEST_ICONS is not set")
		}
		t.Skip("MEDIA_TEST_ICONS names no icons")
	}
	icons, bytes := 0, 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || filepath.Ext(path) != ".svg" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		icons++
		bytes += len(data)
		if _, err := check(data, "svg", imaging.Options{SVG: imaging.SVGReject}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if icons < fewestIcons {
		t.Errorf("there are %d icons, at least %d are needed", icons, fewestIcons)
	}
	t.Logf("%d icons, %d bytes", icons, bytes)
}
