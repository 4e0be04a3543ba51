package storagedrivers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// spoolMemory is how much of an object waits in memory before it moves to a file.
const spoolMemory = 1 << 20

// spool is the Staged of a driver that is no Stager: memory up to 1 MiB, a temporary
// file without a name beyond it. Commit sends it with the driver's Put.
type spool struct {
	driver  Driver
	dir     string
	memory  bytes.Buffer
	file    *os.File      // once memory is full
	reading io.ReadSeeker // once the writing is over

	info     Info // of what was committed
	replaced bool // an object that stood there
}

func newSpool(driver Driver, dir string) *spool { return &spool{driver: driver, dir: dir} }

func (sp *spool) Write(p []byte) (int, error) {
	if sp.file == nil && sp.memory.Len()+len(p) <= spoolMemory {
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

// spill moves what is in memory to a file that is gone with its last handle.
func (sp *spool) spill() error {
	file, err := os.CreateTemp(sp.dir, "media-spool-*")
	if err != nil {
		return fmt.Errorf("making a spool file: %w", mapSpoolError(err))
	}
	if err := os.Remove(file.Name()); err != nil {
		return errors.Join(fmt.Errorf("unlinking the spool file: %w", err), file.Close())
	}
	if _, err := sp.memory.WriteTo(file); err != nil {
		return errors.Join(mapSpoolError(err), file.Close())
	}
	sp.memory = bytes.Buffer{}
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
	replaced := false
	if opts.Mode == Overwrite {
		// Only for Revert, which must not delete what it cannot put back.
		switch _, err := sp.driver.Stat(ctx, key); {
		case err == nil:
			replaced = true
		case !errors.Is(err, fs.ErrNotExist):
			return Info{}, err
		}
	}
	info, err := sp.driver.Put(ctx, key, r, opts)
	if err != nil {
		return Info{}, err
	}
	sp.info, sp.replaced = info, replaced
	return info, nil
}

// Revert looks first: places have no "delete it if it is still mine". What somebody puts
// there between the look and the deletion is lost.
func (sp *spool) Revert(ctx context.Context) error {
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
	sp.memory = bytes.Buffer{}
	if sp.file == nil {
		return nil
	}
	return sp.file.Close()
}
