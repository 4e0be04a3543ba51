package testcaddy

import (
	"os"
	"testing"
)

// SocketFolder returns a new folder for Unix sockets, whose paths are limited to about 100 bytes.
func SocketFolder(t *testing.T) string {
	t.Helper()
	parent := os.TempDir()
	if len(parent) > 50 {
		parent = "/tmp"
	}
	folder, err := os.MkdirTemp(parent, "media-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}
