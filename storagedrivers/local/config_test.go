package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers/drivertest"
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

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	base := filepath.ToSlash(t.TempDir())
	test.Must(t, os.Mkdir(base+"/real", 0o700))
	if err := os.Symlink(base+"/real", base+"/link"); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	test.Must(t, os.WriteFile(base+"/file", nil, 0o600))
	drivertest.Describe(t, drivertest.Description{
		New:     newConfig,
		Missing: `{"root": "` + base + `/file"}`,
		Options: `{"root": "` + base + `/real/media"}`,
		Where:   base + "/real/media",
		Same: []string{
			`{"root": "` + base + `/real/media", "sync": false}`,
			`{"root": "` + base + `/real/x/../media/"}`,
			`{"root": "` + base + `/link/media"}`,
		},
		Below: []string{`{"root": "` + base + `/link/media/below/it"}`},
		Apart: []string{`{"root": "` + base + `/real/media2"}`, `{"root": "` + base + `/media"}`},
	})
}
