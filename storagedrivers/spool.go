package storagedrivers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
)

const (
	// spoolMemory is the most bytes of an object in memory; a larger one is moved to a file.
	spoolMemory = 1 << 20
	// allSpoolMemory is the most bytes of all objects in memory. A request may have hundreds of
	// small ones.
	allSpoolMemory = 64 << 20
)

// spooled is the memory that all spools hold now, in bytes.
var spooled atomic.Int64

// spool is the Staged of a driver that is not a Stager. It holds up to 1 MiB in memory, if the
// bound of all spools permits it, and otherwise a temporary file without a name. Commit sends it
// with the driver's Put.
type spool struct {
	driver  Driver
	dir     string
	memory  bytes.Buffer
	file    *os.File      // once memory is full
	reading io.ReadSeeker // once the writing is over

	looked   string // the key of taken
	taken    bool   // an object stood there before the first attempt
	info     Info   // of what was committed
	replaced bool   // an object that stood there
}

func newSpool(driver Driver, dir string) *spool { return &spool{driver: driver, dir: dir} }

func (sp *spool) Write(p []byte) (int, error) {
	if sp.file == nil && sp.memory.Len()+len(p) <= spoolMemory && hold(len(p)) {
		return sp.memory.Write(p)
	}
	if sp.file == nil {
		if err := sp.spill(); err != nil {
			return 0, err
		}
	}
	n, err := sp.file.Write(p)
	return n, mapSpoolError(err)
}

// hold reserves n bytes of the memory of all spools. It returns false if fewer are left.
func hold(n int) bool {
	if spooled.Add(int64(n)) <= allSpoolMemory {
		return true
	}
	spooled.Add(-int64(n))
	return false
}

// forget releases the memory.
func (sp *spool) forget() {
	spooled.Add(-int64(sp.memory.Len()))
	sp.memory = bytes.Buffer{}
}

// spill moves the bytes from memory to a temporary file that is removed with its last handle.
func (sp *spool) spill() error {
	file, err := os.CreateTemp(sp.dir, "media-spool-*")
	if err != nil {
		return fmt.Errorf("making a spool file: %w", mapSpoolError(err))
	}
	if err := os.Remove(file.Name()); err != nil {
		return errors.Join(fmt.Errorf("unlinking the spool file: %w", err), file.Close())
	}
	if _, err := file.Write(sp.memory.Bytes()); err != nil {
		return errors.Join(mapSpoolError(err), file.Close())
	}
	sp.forget()
	sp.file = file
	return nil
}

func mapSpoolError(err error) error {
	if isNoSpace(err) {
		return fmt.Errorf("spooling: %w: %w", ErrNoSpace, err)
	}
	return err
}

func (sp *spool) reader() io.ReadSeeker {
	if sp.reading == nil {
		sp.reading = bytes.NewReader(sp.memory.Bytes())
		if sp.file != nil {
			sp.reading = sp.file
		}
	}
	return sp.reading
}

func (sp *spool) Read(p []byte) (int, error) { return sp.reader().Read(p) }

func (sp *spool) Seek(offset int64, whence int) (int64, error) {
	return sp.reader().Seek(offset, whence)
}

func (sp *spool) Commit(ctx context.Context, key string, opts PutOptions) (Info, error) {
	r := sp.reader()
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return Info{}, err
	}
	if opts.Mode == Overwrite {
		if err := sp.look(ctx, key); err != nil {
			return Info{}, err
		}
	}
	info, err := sp.driver.Put(ctx, key, watched(ctx, r), opts)
	if err != nil {
		return Info{}, err
	}
	sp.info, sp.replaced = info, opts.Mode == Overwrite && sp.taken
	return info, nil
}

// look records whether the key exists, for Rollback, which must not delete an object that it cannot
// restore. It looks once per key: an attempt whose reply was lost may have stored the object of
// this spool.
func (sp *spool) look(ctx context.Context, key string) error {
	if sp.looked == key {
		return nil
	}
	_, err := sp.driver.Stat(ctx, key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	sp.looked, sp.taken = key, err == nil
	return nil
}

// Rollback stats the object first, because backends cannot delete on condition of a generation. An
// object that another writer stores between Stat and Delete is lost.
func (sp *spool) Rollback(ctx context.Context) error {
	if sp.replaced {
		return errors.ErrUnsupported
	}
	info, err := sp.driver.Stat(ctx, sp.info.Key)
	if err == nil && info.Same(sp.info) {
		err = sp.driver.Delete(ctx, sp.info.Key)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (sp *spool) Close() error {
	sp.forget()
	if sp.file == nil {
		return nil
	}
	return sp.file.Close()
}
