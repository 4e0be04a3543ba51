package storagedrivers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
// bound of all spools permits it, and otherwise a temporary file without a name. [Storage.Commit]
// sends it with the driver's Put.
type spool struct {
	dir     string
	memory  bytes.Buffer
	file    *os.File      // once memory is full
	reading io.ReadSeeker // once the writing is over
}

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

func (sp *spool) Close() error {
	sp.forget()
	if sp.file == nil {
		return nil
	}
	return sp.file.Close()
}
