package edit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"go.uber.org/zap"

	"github.com/caddyserver/caddy/v2"
)

// syncAutosave flushes the file that `caddy run --resume` reads. Caddy writes it before it answers a
// change, but does not sync it. A failure is logged only, because the change is made.
func (e *Editor) syncAutosave() {
	if err := e.sync(caddy.ConfigAutosavePath); err != nil {
		e.log.Warn("syncing the saved configuration: the change is made, but a power failure now may lose it",
			zap.String("file", caddy.ConfigAutosavePath), zap.Error(err))
	}
}

// syncFile flushes a file and its folder to the disk. It returns no error if there is no such file:
// with `persist_config off` Caddy writes none.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0) // Windows flushes for writers only
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Sync(); err != nil || runtime.GOOS == "windows" { // which journals names by itself
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Sync(); !errors.Is(err, syscall.EINVAL) { // a file system without such a sync
		return err
	}
	return nil
}
