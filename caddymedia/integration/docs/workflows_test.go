package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/pages"
)

// TestWorkflowsPinActions: a workflow names each action by the hash of a commit, because a tag can be moved,
// with its version as a comment, and all workflows name the same one.
func TestWorkflowsPinActions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(pages.Root(t), ".github", "workflows", "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	pinned := regexp.MustCompile(`^([\w/-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	versions := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			_, action, uses := strings.Cut(strings.TrimSpace(line), "uses: ")
			parts := pinned.FindStringSubmatch(action)
			switch {
			case !uses:
			case parts == nil:
				t.Errorf("%s: %s is not pinned", filepath.Base(file), action)
			case versions[parts[1]] != "" && versions[parts[1]] != parts[2]:
				t.Errorf("%s: %s differs from %s", filepath.Base(file), action, versions[parts[1]])
			default:
				versions[parts[1]] = parts[2]
			}
		}
	}
}
