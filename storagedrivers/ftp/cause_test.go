package ftp

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// TestCauseOfNoTLS: an error of a server without AUTH has the cause NoTLS.
func TestCauseOfNoTLS(t *testing.T) {
	t.Parallel()
	f := (&fake{tls: secured, lacks: "AUTH"}).start(t)
	drivertest.Cause(t, open(t, f.config()).Check(t.Context()), storagedrivers.NoTLS)
}

func TestCauseOfRoot(t *testing.T) {
	t.Parallel()
	f := (&fake{}).start(t)
	must(t, os.WriteFile(filepath.Join(f.root, "file"), nil, 0o600))
	config := f.config()
	config.Root = "/file/below"
	f.refuse(func(command, _ string) bool { return command == "MKD" }, "550 /file/below: Not a directory")
	drivertest.Cause(t, open(t, config).Check(t.Context()), storagedrivers.NotAFolder)
}
