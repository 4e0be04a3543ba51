package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// appended is the writer of a growing object: an open file under its key, locked with flock(2). The
// kernel releases the lock with the file, also if the process is killed.
type appended struct {
	driver *Driver
	root   *os.Root
	key    string
	id     fileID

	started time.Time
	busy    chan struct{} // held by a running call; unlike a mutex it can be waited for until a time
	file    *os.File
	size    int64
	begun   int64 // the disk was asked to write up to here
	durable int64 // synced, or there before this writer
	named   bool  // the name is synced
	ended   error // of later calls; nil while the file is open

	done   chan struct{} // closed when the writer has ended
	closed func()        // nil, or called by Close
}

// clockTick is more than the precision of the times that the system sets, which is the period of its
// timer, at most 10 ms.
const clockTick = 50 * time.Millisecond

// Write also sets the time, until it differs from all times that the system has set before the
// writer began. Otherwise a deleted object with the same inode could have had the same entity tag.
func (w *appended) Write(p []byte) (int, error) {
	w.busy <- struct{}{}
	defer w.release()
	if w.ended != nil {
		return 0, w.ended
	}
	n, err := w.file.Write(p)
	w.size += int64(n)
	if w.driver.sync && w.size-w.begun >= writeBehind {
		beginWriting(w.file, w.begun, w.size-w.begun)
		w.begun = w.size
	}
	if now := w.driver.now(); err == nil && now.Before(w.started.Add(clockTick)) {
		err = stamp(w.file, now)
	}
	return n, mapError(err)
}

// Flush syncs the file, and its name at the first call. After a failure the system may report
// success for the same bytes. Therefore they are cut, unless they were synced before.
func (w *appended) Flush(ctx context.Context) (int64, error) {
	w.busy <- struct{}{}
	defer w.release()
	if err := errors.Join(w.ended, ctx.Err()); err != nil {
		return 0, err
	}
	if err := w.driver.inPlace(); err != nil {
		return 0, err
	}
	stat, err := w.file.Stat()
	if err != nil {
		return 0, mapError(err)
	}
	if links(stat) == 0 {
		return 0, fmt.Errorf("the object was deleted: %w", fs.ErrNotExist)
	}
	if err := w.sync(); err != nil {
		return 0, w.lose(fmt.Errorf("syncing the file: %w", mapError(err)))
	}
	w.durable = w.size
	if !w.named {
		if err := w.driver.syncDir(w.root, path.Dir(w.key)); err != nil {
			return 0, err
		}
		w.named = true
	}
	return w.size, nil
}

// lose cuts the bytes that the disk may have lost, and ends the writer.
func (w *appended) lose(err error) error {
	return errors.Join(err, w.file.Truncate(w.durable), w.end(err))
}

// sync syncs the file. If a sync shared with other files fails, the file is synced on its own: its
// handle was open since before the bytes were written, and returns the errors of these bytes.
func (w *appended) sync() error {
	if !w.driver.sync {
		return nil
	}
	if w.size-w.durable > writeBehind {
		return w.driver.syncFile(w.file)
	}
	alone := false
	own := func() error {
		alone = true
		return w.driver.syncFile(w.file)
	}
	err := w.driver.shared.do(own, w.driver.shared.failures())
	if err != nil && !alone {
		err = own()
	}
	return err
}

// Close closes the file.
func (w *appended) Close() error {
	w.busy <- struct{}{}
	defer w.release()
	var err error
	if w.ended == nil {
		err = w.end(fs.ErrClosed)
	}
	if w.closed != nil {
		w.closed()
	}
	return err
}

func (w *appended) release() { <-w.busy }

// end closes the file, so that its lock is released. reason is the error of later calls. The caller
// holds w.busy.
func (w *appended) end(reason error) error {
	w.ended = reason
	writers.remove(w)
	close(w.done)
	return w.file.Close()
}

// supersede ends the writer, unless the object has another size.
func (w *appended) supersede(ctx context.Context, size int64) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case w.busy <- struct{}{}:
	}
	defer w.release()
	switch {
	case w.ended != nil:
		return nil
	case w.size != size:
		return errSize
	}
	return w.end(storagedrivers.ErrSuperseded)
}

// endMark is a permission that no object has. Another process sets it to ask the writer to end; see
// [appended.watch]. Unlike a file beside the object it cannot be left over: the next writer removes
// it.
const endMark = 0o100

// watchInterval is how often a writer looks for the request.
const watchInterval = 200 * time.Millisecond

func asked(stat fs.FileInfo) bool { return stat.Mode()&endMark != 0 }

// askToEnd asks the writer of a file to end, in any process. A user who does not own the file
// cannot ask, and waits for the writer in vain.
func askToEnd(file *os.File) error {
	stat, err := file.Stat()
	if err == nil && !asked(stat) {
		err = file.Chmod(stat.Mode().Perm() | endMark)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return mapError(err)
}

// withdraw removes the request. Others who wait repeat theirs.
func withdraw(file *os.File) {
	if stat, err := file.Stat(); err == nil && asked(stat) {
		_ = file.Chmod(stat.Mode().Perm() &^ endMark) // see askToEnd
	}
}

// watch ends the writer when another process asks for it.
func (w *appended) watch() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-ticker.C:
		}
		w.busy <- struct{}{}
		if w.ended == nil {
			if stat, err := w.file.Stat(); err == nil && asked(stat) {
				_ = w.end(storagedrivers.ErrSuperseded) // nothing was to be written
			}
		}
		w.release()
	}
}

// fileID identifies a file in the system.
type fileID struct{ device, inode uint64 }

func idOf(stat fs.FileInfo) fileID { return fileID{device(stat), inode(stat)} }

// writers are the writers of this process, of all drivers: two of them may use one folder.
var writers = writersByFile{byFile: map[fileID]*appended{}}

type writersByFile struct {
	mu     sync.Mutex
	byFile map[fileID]*appended
}

func (w *writersByFile) add(one *appended) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.byFile[one.id] = one
}

// remove removes a writer, before its lock is released.
func (w *writersByFile) remove(one *appended) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byFile, one.id)
}

// of returns the writer of a file, or nil if this process has none.
func (w *writersByFile) of(id fileID) *appended {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byFile[id]
}

// Interface guards
var _ storagedrivers.Appended = (*appended)(nil)
