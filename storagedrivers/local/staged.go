package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/caddymedia/media/storagedrivers"
)

// staged is an object before its commit: an open file without a name, or with one in the scratch
// folder.
type staged struct {
	driver *Driver
	root   *os.Root
	file   *os.File
	temp   string // its name in the scratch folder; empty while it has none
	size   int64
	dirty  int64 // bytes since the disk was last asked to begin writing

	failures int  // of the disk when it was begun
	stamped  bool // written, with the time of its commit
	sealed   bool // and on the disk

	group   *group // that it is planned in
	key     string // committed under
	backup  string // the object it replaced, in the scratch folder
	undoing string // the record of a rollback that has failed

	adopted bool   // see [Driver.Adopt]
	closed  func() // nil, or called by Close
}

// writeBehind is how much is written before the disk is asked to start writing it, so that the sync
// of the object takes less time.
const writeBehind = 8 << 20

// Stage returns a new object on the file system of the root.
func (d *Driver) Stage(ctx context.Context) (storagedrivers.Staged, error) {
	st, err := d.stage(ctx)
	if err != nil {
		return nil, err
	}
	return st, nil
}

func (d *Driver) stage(ctx context.Context) (*staged, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	root, err := d.open()
	if err != nil {
		return nil, err
	}
	st := &staged{driver: d, root: root, failures: d.shared.failures()}
	if !d.named {
		st.file, err = openUnnamed(d.dir)
		if err == nil {
			return st, nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return nil, fmt.Errorf("making an unnamed file: %w", mapError(err))
		}
	}
	st.temp, err = d.scratchName(root)
	if err != nil {
		return nil, d.lookupError(err)
	}
	st.file, err = root.OpenFile(st.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return nil, fmt.Errorf("making a temporary file: %w", mapError(err))
	}
	return st, nil
}

func (st *staged) Write(p []byte) (int, error) {
	if st.adopted {
		return 0, fmt.Errorf("writing to an adopted object: %w", errors.ErrUnsupported)
	}
	n, err := st.file.Write(p)
	st.size += int64(n)
	st.dirty += int64(n)
	if st.driver.sync && st.dirty >= writeBehind {
		beginWriting(st.file, st.size-st.dirty, st.dirty)
		st.dirty = 0
	}
	return n, mapError(err)
}

func (st *staged) Read(p []byte) (int, error) { return st.file.Read(p) }

func (st *staged) Seek(offset int64, whence int) (int64, error) {
	return st.file.Seek(offset, whence)
}

// Close removes the names in the scratch folder. A file that was not linked is removed with its
// handle.
func (st *staged) Close() error {
	var errs []error
	for _, name := range []string{st.temp, st.backup} {
		if name != "" {
			errs = append(errs, st.root.Remove(name))
		}
	}
	err := errors.Join(append(errs, st.file.Close())...)
	if st.closed != nil {
		st.closed()
	}
	return err
}

// Interface guards
var (
	_ storagedrivers.Staged = (*staged)(nil)
	_ io.ReadWriteSeeker    = (*staged)(nil)
)
