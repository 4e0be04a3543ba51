package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/user"
	"path"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
)

// Permissions of new files and folders, before the umask of the process.
const (
	filePerm = 0o644
	dirPerm  = 0o755
)

// Driver is the driver of the folder at a path, which may be replaced; see [New]. An object that
// was staged in one folder is never committed in another. The path is checked before every change,
// and by a reader that does not find its object.
type Driver struct {
	path  string
	sync  bool
	named bool // never use unnamed files
	log   *slog.Logger
	now   func() time.Time

	keepFrom, keepNames int // [listing.Kept.Least] and Most
	firstNames          int // as the constant

	// step, if set, is called after each change of the file system in a commit. Tests simulate the
	// end of the process there.
	step func(name string)
	// synced, if set, is called instead of each sync of a file or folder. Tests simulate power
	// failures.
	synced func(*os.File) error

	mu      sync.Mutex
	current *folder // nil until first used
	swept   bool    // Sweep was called: no folder removes leftovers by itself
}

// New returns a driver of a folder, which is created at its first use. Without sync, an object
// counts as stored before it is synced.
func New(config Config, log *slog.Logger) *Driver {
	return &Driver{
		path: config.Root, sync: config.sync(), named: !canLink(), log: log,
		keepFrom: listing.KeepFrom, keepNames: keepNames, firstNames: firstNames,
		now: time.Now, //nolint:forbidigo // the clock's one default
	}
}

// mark calls the hook of a test.
func (d *Driver) mark(step string) {
	if d.step != nil {
		d.step(step)
	}
}

// Check opens the root and tests whether it can be read and written.
func (d *Driver) Check(ctx context.Context) error { return d.explained(d.check(ctx)) }

func (d *Driver) check(ctx context.Context) error {
	f, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer f.release()
	dir, err := f.root.Open(".")
	if err != nil {
		return mapError(err)
	}
	defer dir.Close()
	if _, err := dir.ReadDir(1); err != nil && !errors.Is(err, io.EOF) {
		return mapError(err)
	}
	if err := writable(dir); err != nil {
		return fmt.Errorf("writing to the root: %w", mapError(err))
	}
	return ctx.Err()
}

// explained attaches the folder and the system user to a missing permission. Administrators read
// them; the error itself names neither.
func (d *Driver) explained(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	name := strconv.Itoa(os.Getuid())
	if current, lookupErr := user.Current(); lookupErr == nil {
		name = current.Username
	}
	return storagedrivers.WithCause(err, storagedrivers.Cause("Caddy runs as the system user "+name+", who may not use "+
		d.path+". Change the owner or the permissions of the folder, or choose another folder."))
}

// Space returns the space of the file system of the root.
func (d *Driver) Space(ctx context.Context) (space storagedrivers.Space, err error) {
	err = d.look(ctx, func(f *folder) (err error) {
		space, err = spaceOf(f.dir)
		return mapError(err)
	})
	return space, err
}

// Features returns all guarantees: link(2) and rename(2) are atomic.
func (d *Driver) Features() storagedrivers.Features {
	return storagedrivers.Features{
		Create: storagedrivers.Atomic, Replace: storagedrivers.Atomic, Together: storagedrivers.Atomic, Seek: true,
		Copies: true, EmptyFolders: true, Local: true,
	}
}

// Close closes the root and the scratch folder.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swept = false
	if d.current == nil {
		return nil
	}
	err := d.current.references.Close()
	d.current = nil
	return err
}

// Stat returns the Info of an object.
func (d *Driver) Stat(ctx context.Context, key string) (info storagedrivers.Info, err error) {
	err = d.look(ctx, func(f *folder) error {
		var mode fs.FileMode
		info, mode, err = f.stat(key, true)
		if err == nil && !mode.IsRegular() {
			err = notAnObject(key)
		}
		return mapReadError(err)
	})
	return info, err
}

// stat describes what has the name of a key; with follow what a link leads to.
func (f *folder) stat(key string, follow bool) (storagedrivers.Info, fs.FileMode, error) {
	if info, mode, err := statBeneath(f.dir, key, follow); err == nil || isMissing(err) {
		return info, mode, err
	}
	look := f.root.Lstat
	if follow {
		look = f.root.Stat
	}
	stat, err := look(key)
	if err != nil {
		return storagedrivers.Info{}, 0, err
	}
	return newInfo(key, stat), stat.Mode(), nil
}

// Open returns a seeking reader for the zero range. The reader does not need the folder any more.
func (d *Driver) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (body io.ReadCloser, info storagedrivers.Info, err error) {
	err = d.look(ctx, func(f *folder) (err error) {
		body, info, err = f.openObject(key, rng)
		return err
	})
	return body, info, err
}

func (f *folder) openObject(key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	file, ok := openFileBeneath(f.dir, key)
	if !ok {
		opened, err := f.root.OpenFile(key, os.O_RDONLY|openNonblock, 0)
		if err != nil {
			return nil, storagedrivers.Info{}, mapReadError(err)
		}
		file = plainFile{opened}
	}
	var n int64
	info, err := file.info(key)
	if err == nil {
		n, err = rng.Within(info.Size)
	}
	if err != nil {
		return nil, storagedrivers.Info{}, errors.Join(err, file.Close())
	}
	if rng == (storagedrivers.Range{}) {
		return &reader{io.NewSectionReader(file, 0, info.Size), file}, info, nil
	}
	return &section{Reader: io.NewSectionReader(file, rng.Offset, n), Closer: file}, info, nil
}

// readFile is a file that is read at offsets.
type readFile interface {
	io.ReaderAt
	io.Closer
	// info returns the Info of the object of a key, unless it is no regular file.
	info(key string) (storagedrivers.Info, error)
	// osFile returns the same file; Close closes it too.
	osFile() (*os.File, error)
}

type plainFile struct{ *os.File }

func (f plainFile) info(key string) (storagedrivers.Info, error) {
	stat, err := f.Stat()
	if err != nil {
		return storagedrivers.Info{}, mapError(err)
	}
	if !stat.Mode().IsRegular() {
		return storagedrivers.Info{}, notAnObject(key)
	}
	return newInfo(key, stat), nil
}

func (f plainFile) osFile() (*os.File, error) { return f.File, nil }

// reader reads a whole file, up to its size at opening. It keeps the offset itself, so that seeking
// needs no system call.
type reader struct {
	*io.SectionReader
	file readFile
}

func (r *reader) Close() error { return r.file.Close() }

// File returns the file at the reader's offset, so that the kernel can send it.
func (r *reader) File() (*os.File, error) {
	file, err := r.file.osFile()
	if err != nil {
		return nil, err
	}
	at, err := r.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = file.Seek(at, io.SeekStart)
	}
	return file, err
}

// section is a part of a file.
type section struct {
	io.Reader
	io.Closer
}

// Delete unlinks the file. Folders stay.
func (d *Driver) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	if opts.IfMatch != "" { // only Commit compares
		return errors.ErrUnsupported
	}
	f, err := d.open(ctx)
	if err != nil {
		return err
	}
	defer f.release()
	return f.remove(key)
}

func (f *folder) remove(key string) error {
	stat, err := f.root.Lstat(key)
	if err != nil {
		return f.lookupError(err)
	}
	if stat.IsDir() { // Remove would take an empty one
		return notAnObject(key)
	}
	err = f.root.Remove(key)
	if errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.ENOTEMPTY) { // by now
		return notAnObject(key)
	}
	if err != nil {
		return f.lookupError(err)
	}
	f.mark("unlinked")
	return f.syncDir(path.Dir(key), true)
}

func notAnObject(key string) error {
	return fmt.Errorf("%q is no regular file: %w", key, fs.ErrNotExist)
}

func newInfo(key string, stat fs.FileInfo) storagedrivers.Info {
	return infoOf(key, inode(stat), stat.ModTime(), stat.Size())
}

func infoOf(key string, inode uint64, modTime time.Time, size int64) storagedrivers.Info {
	return storagedrivers.Info{
		Key: key, Size: size, ModTime: modTime, ETag: etagOf(inode, modTime, size),
		ContentType: storagedrivers.ContentType(key),
	}
}

func etag(stat fs.FileInfo) string { return etagOf(inode(stat), stat.ModTime(), stat.Size()) }

// etagOf identifies a generation by inode, time in nanoseconds and size. It is strong because every
// object is a new inode with the time of its own commit, and a growing one has the time of its last
// write.
func etagOf(inode uint64, modTime time.Time, size int64) string {
	tag := make([]byte, 0, 48) // hexadecimal digits of three numbers, with their marks
	tag = strconv.AppendUint(append(tag, '"'), inode, 16)
	tag = strconv.AppendInt(append(tag, '-'), modTime.UnixNano(), 16)
	tag = strconv.AppendInt(append(tag, '-'), size, 16)
	return string(append(tag, '"'))
}

// Interface guards
var (
	_ storagedrivers.Driver        = (*Driver)(nil)
	_ storagedrivers.Stager        = (*Driver)(nil)
	_ storagedrivers.Linker        = (*Driver)(nil)
	_ storagedrivers.Sweeper       = (*Driver)(nil)
	_ storagedrivers.SpaceReporter = (*Driver)(nil)
	_ storagedrivers.Appender      = (*Driver)(nil)
)
