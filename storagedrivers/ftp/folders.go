package ftp

import (
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/caddymedia/media/storagedrivers"
)

// folders remembers existing folders, so that not every upload has to check all of them.
type folders struct {
	mu    sync.Mutex
	known map[string]struct{}
}

// maxKnown bounds the memory; beyond it all folders are checked again.
const maxKnown = 10_000

func (f *folders) has(folder string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.known[folder]
	return ok
}

func (f *folders) add(folder string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= maxKnown {
		f.known = map[string]struct{}{}
	}
	f.known[folder] = struct{}{}
}

// forget removes all folders. It is called when a folder is missing, because those below it are
// missing too.
func (f *folders) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = nil
}

// ensure creates a folder and its parents if they are missing.
func (f *folders) ensure(c *conn, folder string) error {
	if f.has(folder) {
		return nil
	}
	err := c.enter(folder)
	if refused(err) && folder != "/" {
		err = f.make(c, folder)
	}
	if err != nil {
		return err
	}
	f.add(folder)
	return nil
}

// make creates a missing folder. Another client may create it first.
func (f *folders) make(c *conn, folder string) error {
	if err := f.ensure(c, path.Dir(folder)); err != nil {
		return err
	}
	err := c.makeFolder(folder)
	if !refused(err) {
		return err
	}
	if entered := c.enter(folder); !refused(entered) {
		return entered
	}
	if _, looked := c.look(folder); looked == nil {
		return fmt.Errorf("%w: a file stands where a folder is needed: %w", storagedrivers.ErrInvalidKey, err)
	}
	return fmt.Errorf("making the folder %q: %w", folder, because(err, fs.ErrPermission))
}
