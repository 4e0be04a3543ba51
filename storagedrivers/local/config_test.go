package local

import (
	"path/filepath"
	"testing"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := &Config{Root: root + "/x/../media/"}
	if err := c.Complete(); err != nil || c.Root != filepath.Join(root, "media") || !*c.Sync {
		t.Errorf("error %v, %+v", err, c)
	}
	if err := new(Config).Complete(); err == nil || err.Error() != "root is missing" {
		t.Errorf("without a root: error %v", err)
	}
}
