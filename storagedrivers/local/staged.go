package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"

	"github.com/caddymedia/media/storagedrivers"
)

// staged is an object before its commit: an open file without a name, or with one in the scratch
// folder.
type staged struct {
	folder *folder // released by Close
	file   *os.File
	temp   string // its name in the scratch folder; empty while it has none
	size   int64
	dirty  int64 // bytes since the disk was last asked to begin writing

	reserved int64 // the size up to which room is allocated; 0 for a small object

	failures int  // of the disk when it was begun
	stamped  bool // written, with the time of its commit
	sealed   bool // and on the disk

	adopted bool // an object has the bytes too, see [appended.Adopt] and [Driver.StageLink]
}

// writeBehind is how much is written before the disk is asked to start writing it, so that the sync
// of the object takes less time.
const writeBehind = 8 << 20

// mostReserved is how much room is allocated in advance.
const mostReserved = 64 << 20

// Stage returns a new object on the file system of the root, which stays open until the object is
// closed.
func (d *Driver) Stage(ctx context.Context) (storagedrivers.Staged, error) {
	f, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	st := &staged{folder: f, failures: f.shared.failures()}
	if err := st.make(); err != nil {
		f.release()
		return nil, err
	}
	return st, nil
}

// make creates the file, without a name if possible.
func (st *staged) make() (err error) {
	f := st.folder
	if !f.named {
		st.file, err = openUnnamed(f.dir)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return fmt.Errorf("making an unnamed file: %w", mapError(err))
		}
	}
	if st.temp, err = f.scratchName(); err != nil {
		return f.lookupError(err)
	}
	st.file, err = f.root.OpenFile(st.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return fmt.Errorf("making a temporary file: %w", mapError(err))
	}
	return nil
}

// StageCopy stages a copy of an object, which the kernel makes: copy_file_range(2), which shares
// the blocks of both files where the file system can. The new file is not a link, because the
// objects of an Appender are changed in place.
func (d *Driver) StageCopy(ctx context.Context, source storagedrivers.Info) (storagedrivers.Staged, error) {
	body, _, err := d.Open(ctx, source.Key, storagedrivers.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", storagedrivers.ErrChanged, err)
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	made, err := d.Stage(ctx)
	if err != nil {
		return nil, err
	}
	st := made.(*staged)                      //nolint:forcetypeassert // of Stage
	file, err := body.(*reader).file.osFile() //nolint:forcetypeassert // of the zero range
	if err == nil {
		err = st.copyFrom(ctx, file, source)
	}
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return st, nil
}

// copyFrom copies an object that must be source before and afterwards.
func (st *staged) copyFrom(ctx context.Context, file *os.File, source storagedrivers.Info) error {
	same := func() error {
		stat, err := file.Stat()
		if err == nil && !newInfo(source.Key, stat).Same(source) {
			err = storagedrivers.ErrChanged
		}
		return mapError(err)
	}
	if err := same(); err != nil {
		return err
	}
	for st.size < source.Size {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.CopyN(st.file, file, min(source.Size-st.size, writeBehind))
		st.size += n
		if errors.Is(err, io.EOF) { // it was truncated
			return storagedrivers.ErrChanged
		}
		if err != nil {
			return fmt.Errorf("copying a file: %w", mapError(err))
		}
		if st.folder.sync {
			beginWriting(st.file, st.size-n, n)
		}
	}
	return same()
}

// StageLink stages a further name of an object, link(2).
func (d *Driver) StageLink(ctx context.Context, source storagedrivers.Info) (storagedrivers.Staged, error) {
	f, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	st := &staged{folder: f, size: source.Size, failures: f.shared.failures(), stamped: true, sealed: true, adopted: true}
	if err := st.link(source); err != nil {
		f.release()
		return nil, err
	}
	return st, nil
}

// link gives an object a name in the scratch folder, unless it is another one than source.
func (st *staged) link(source storagedrivers.Info) (err error) {
	root := st.folder.root
	if st.temp, err = st.folder.scratchName(); err != nil {
		return err
	}
	switch err := root.Link(source.Key, st.temp); {
	case err == nil:
	case errors.Is(mapReadError(err), fs.ErrNotExist):
		return fmt.Errorf("%w: %w", storagedrivers.ErrChanged, err)
	default: // not on this file system, or not any more of this file
		return fmt.Errorf("linking: %w: %w", errors.ErrUnsupported, err)
	}
	stat, err := root.Lstat(st.temp)
	switch {
	case err != nil:
	case !stat.Mode().IsRegular(): // of a link, whose target may be anywhere
		err = errors.ErrUnsupported
	case !newInfo(source.Key, stat).Same(source):
		err = storagedrivers.ErrChanged
	default:
		st.file, err = root.Open(st.temp)
	}
	if err != nil {
		return errors.Join(mapError(err), root.Remove(st.temp))
	}
	return nil
}

const copyBuffer = 256 << 10

// Put stages r and commits it.
func (d *Driver) Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (info storagedrivers.Info, err error) {
	st, err := d.Stage(ctx)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if err := copyAll(ctx, st, r); err != nil {
		return info, err
	}
	infos, err := d.Commit(ctx, []storagedrivers.Change{{Staged: st, Key: key, Options: opts}})
	if err != nil {
		return info, err
	}
	return infos[0], nil
}

func copyAll(ctx context.Context, w io.Writer, r io.Reader) error {
	buf := make([]byte, copyBuffer)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		if _, werr := w.Write(buf[:n]); werr != nil {
			return werr
		}
		if err == io.EOF { // the end is io.EOF itself; a wrapped one is a failure
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (st *staged) Write(p []byte) (int, error) {
	if st.adopted {
		return 0, fmt.Errorf("writing to a stored object: %w", errors.ErrUnsupported)
	}
	st.reserve(int64(len(p)))
	n, err := st.file.Write(p)
	st.size += int64(n)
	st.dirty += int64(n)
	if st.folder.sync && st.dirty >= writeBehind {
		beginWriting(st.file, st.size-st.dirty, st.dirty)
		st.dirty = 0
	}
	return n, mapError(err)
}

// reserve allocates room for more bytes of a large object, and for as many again as it has. Pieces
// of a file that is allocated as a whole take less processor time to write.
func (st *staged) reserve(more int64) {
	if st.size < writeBehind || st.size+more <= st.reserved {
		return
	}
	length := min(st.size, mostReserved)
	st.reserved = st.size + length
	if allocate(st.file, st.size, length) != nil { // the system cannot, or the room is scarce
		st.reserved = math.MaxInt64
	}
}

func (st *staged) Read(p []byte) (int, error) { return st.file.Read(p) }

func (st *staged) Seek(offset int64, whence int) (int64, error) {
	return st.file.Seek(offset, whence)
}

// seal ends the writing: the bytes are on the disk before they have a name.
func (st *staged) seal() error {
	if st.sealed {
		return nil
	}
	if err := st.stamp(); err != nil {
		return err
	}
	if st.folder.sync {
		sync := st.durable
		if st.large() {
			sync = func(own func() error) error { return own() }
		}
		if err := sync(st.syncFile); err != nil {
			return fmt.Errorf("syncing the file: %w", mapError(err))
		}
	}
	st.sealed = true
	return nil
}

// stamp ends the file, and sets the time of the commit.
func (st *staged) stamp() error {
	if st.stamped {
		return nil
	}
	if st.reserved > 0 {
		if err := st.file.Truncate(st.size); err != nil {
			return fmt.Errorf("releasing room that is not needed: %w", mapError(err))
		}
	}
	if err := stamp(st.file, st.folder.now()); err != nil {
		return fmt.Errorf("setting the time: %w", mapError(err))
	}
	st.stamped = true
	return nil
}

func (st *staged) syncFile() error { return st.folder.syncFile(st.file) }

// large reports whether the file is synced on its own, so that no other upload waits for it.
func (st *staged) large() bool { return st.size > writeBehind }

// syncName syncs the new name, and the file again: the file counts its names, and a file system
// without a journal removes a file that counts none.
func (st *staged) syncName(dir *os.File, name string) error {
	if !st.folder.sync {
		return nil
	}
	return st.durable(func() error {
		if err := st.syncFile(); err != nil {
			return fmt.Errorf("syncing the file: %w", mapError(err))
		}
		return st.folder.syncOpenDir(dir, name)
	})
}

// durable returns when the current state of the object is on the disk, by own or by a shared sync.
func (st *staged) durable(own func() error) error {
	return st.folder.shared.do(own, st.failures)
}

// create links the file to a name that must be free.
func (st *staged) create(dir *os.File, key string) error {
	link := func() error {
		if st.temp == "" {
			return linkUnnamed(st.file, dir, path.Base(key))
		}
		return st.folder.root.Link(st.temp, key)
	}
	err := link()
	if errors.Is(err, fs.ErrExist) {
		if there, missing := st.folder.root.Lstat(key); missing == nil && there.IsDir() {
			if err = st.folder.clear(key); err == nil {
				err = link()
			}
		}
	}
	if err != nil {
		return fmt.Errorf("linking to the name: %w", mapError(err))
	}
	return nil
}

// nameTemp ensures that the file has a name in the scratch folder.
func (st *staged) nameTemp() error {
	if st.temp != "" {
		return nil
	}
	name, err := st.folder.scratchName()
	if err != nil {
		return err
	}
	if err := linkUnnamed(st.file, st.folder.scratch.lock, path.Base(name)); err != nil {
		return fmt.Errorf("naming the temporary file: %w", mapError(err))
	}
	st.temp = name
	return nil
}

// Close removes the name in the scratch folder, which a replacement may have moved. A file that was
// not linked is removed with its handle.
func (st *staged) Close() error {
	var err error
	if st.temp != "" {
		if err = st.folder.root.Remove(st.temp); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	err = errors.Join(err, st.file.Close())
	st.folder.release()
	return err
}

// Interface guards
var (
	_ storagedrivers.Staged = (*staged)(nil)
	_ io.ReadWriteSeeker    = (*staged)(nil)
)
