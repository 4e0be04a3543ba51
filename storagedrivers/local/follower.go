package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/caddymedia/media/storagedrivers"
)

// Follower is the driver of the folder at a path, which may be replaced. A [Driver] keeps its open
// folder, even if that is moved, removed or mounted over. A Follower then continues with a Driver
// of the new folder. An object that was staged in the old folder is never committed there.
//
// It checks the path before every change. Readers check it if an object is missing.
type Follower struct {
	path string
	open func() *Driver
	log  *slog.Logger

	mu      sync.Mutex
	current *generation // nil until first used
	swept   bool        // Sweep was called: no folder begins one by itself
}

// generation is the driver of one folder. It is closed after its last reference is released.
type generation struct {
	*Driver
	references *storagedrivers.References
}

// NewFollower returns the driver of the folder at a path. The arguments are those of [New].
func NewFollower(config Config, log *slog.Logger) *Follower {
	return &Follower{path: config.Root, log: log, open: func() *Driver { return New(config, log) }}
}

var (
	errGone = storagedrivers.WithCause(fmt.Errorf("the root is gone: %w", storagedrivers.ErrUnavailable),
		"The folder was there and is gone. Mount its disk, or make it again; it is then used without a restart.")
	errReplaced  = fmt.Errorf("the root was replaced during the upload: %w", storagedrivers.ErrUnavailable)
	errUnmounted = storagedrivers.WithCause(
		fmt.Errorf("the root was replaced by an empty folder of another file system: %w", storagedrivers.ErrUnavailable),
		"An empty folder of another file system stands where the folder was. Mount its disk; or, if this folder is meant, put any file into it or restart Caddy.")
)

// acquire returns the current generation without checking the path. The caller must release it.
func (f *Follower) acquire() *generation {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		f.current = f.begin()
	}
	f.current.references.Acquire()
	return f.current
}

// follow returns the generation of the folder that is now at the path. The caller must release it.
func (f *Follower) follow() (*generation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current == nil {
		f.current = f.begin()
	}
	replaced, err := f.current.replaced()
	if err != nil {
		return nil, err
	}
	if replaced {
		f.log.Warn("the folder of a storage was replaced; the new one is used from now on", "folder", f.path)
		if err := f.current.references.Close(); err != nil {
			f.log.Warn("closing the folder that was replaced", "folder", f.path, "error", err)
		}
		f.current = f.begin()
	}
	f.current.references.Acquire()
	return f.current, nil
}

func (f *Follower) begin() *generation {
	d := f.open()
	d.swept = f.swept
	return &generation{Driver: d, references: storagedrivers.NewReferences(d.Close)}
}

// release releases a generation. Errors of closing a replaced folder concern no caller.
func (g *generation) release() {
	if err := g.references.Release(); err != nil {
		g.log.Warn("closing the folder that was replaced", "folder", g.path, "error", err)
	}
}

// replaced reports whether the folder at the path is another one than the open folder. A missing
// folder is not created again, because it may be a disk that is not mounted.
func (d *Driver) replaced() (bool, error) {
	d.mu.Lock()
	opened := d.opened
	d.mu.Unlock()
	if opened == nil {
		return false, nil
	}
	now, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, errGone
	case err != nil:
		return false, fmt.Errorf("looking at the root: %w", mapError(err))
	case os.SameFile(opened, now):
		return false, nil
	case unmounted(d.path, opened, now):
		return false, errUnmounted
	}
	return true, nil
}

// inPlace returns an error if the open folder is not the one at the path.
func (d *Driver) inPlace() error {
	replaced, err := d.replaced()
	if replaced {
		return errReplaced
	}
	return err
}

// unmounted reports whether the folder at path looks like the mount point of an unmounted disk: it
// is empty, and on the file system of its parent, but the old folder was not.
func unmounted(path string, old, now fs.FileInfo) bool {
	if device(old) == device(now) {
		return false
	}
	parent, err := os.Stat(filepath.Dir(path))
	return err == nil && device(parent) == device(now) && empty(path)
}

// empty reports whether a folder contains nothing but scratch folders.
func empty(path string) bool {
	dir, err := os.Open(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(16)
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		for _, name := range names {
			if !strings.HasPrefix(name, scratchPrefix) {
				return false
			}
		}
	}
}

// use calls do with the driver of the folder at the path.
func (f *Follower) use(do func(*Driver) error) error {
	g, err := f.follow()
	if err != nil {
		return err
	}
	defer g.release()
	return do(g.Driver)
}

// look calls do with the current driver. If do finds nothing and the folder was replaced, it calls
// do again with the new driver.
func (f *Follower) look(do func(*Driver) error) error {
	before := f.acquire()
	defer before.release()
	err := do(before.Driver)
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storagedrivers.ErrUnavailable) {
		return err
	}
	now, followErr := f.follow()
	if followErr != nil {
		return followErr
	}
	defer now.release()
	if now == before {
		return err
	}
	return do(now.Driver)
}
