package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync/atomic"
)

// scratchPrefix is the prefix of the names of scratch folders. No key begins with a dot, so these
// never contain an object.
const scratchPrefix = ".media-tmp-"

// scratch is the folder for temporary names. Its lock, held until the process ends, distinguishes
// it from a leftover.
type scratch struct {
	name string
	lock *os.File
	next atomic.Int64
}

// scratchName returns a new name in the scratch folder, which is created when it is first needed.
func (d *Driver) scratchName(root *os.Root) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.scratch == nil {
		s, err := newScratch(root)
		if err != nil {
			return "", fmt.Errorf("making the scratch folder: %w", mapError(err))
		}
		d.scratch = s
	}
	return d.scratch.name + "/" + strconv.FormatInt(d.scratch.next.Add(1), 36), nil
}

var errInUse = errors.New("the folder is locked")

func newScratch(root *os.Root) (*scratch, error) {
	for {
		name := scratchPrefix + rand.Text()
		if err := root.Mkdir(name, 0o700); err != nil {
			return nil, err
		}
		lock, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // swept by a process that starts
		}
		if err != nil {
			return nil, err
		}
		// Without support for locks, other processes never remove the folder.
		if !errors.Is(tryLock(lock), errInUse) && stillThere(root, name) {
			return &scratch{name: name, lock: lock}, nil
		}
		if err := lock.Close(); err != nil {
			return nil, err
		}
	}
}

func stillThere(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

// closeScratch removes the scratch folder, unless a commit that was neither undone nor completed
// cannot be now either. d.mu must be held.
func (d *Driver) closeScratch() error {
	if d.scratch == nil {
		return nil
	}
	r := &recovery{driver: d, root: d.root, folder: d.scratch.name}
	err := r.all()
	if err == nil {
		err = d.root.RemoveAll(d.scratch.name)
	}
	return errors.Join(err, d.scratch.lock.Close())
}
