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
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Permissions of new files and folders, before the umask of the process.
const (
	filePerm = 0o644
	dirPerm  = 0o755
)

// Driver is the local driver; see [New].
type Driver struct {
	path  string
	sync  bool
	named bool // never use unnamed files
	log   *slog.Logger
	now   func() time.Time

	// step, if set, is called after each change of the file system in a commit. Tests simulate the
	// end of the process there.
	step func(name string)
	// synced, if set, is called instead of each sync of a file or folder. Tests simulate power
	// failures.
	synced func(*os.File) error

	mu        sync.Mutex
	root      *os.Root    // nil until first used
	dir       *os.File    // the root once more, for system calls that os.Root has not
	opened    fs.FileInfo // of the root
	recovered bool        // commits of earlier runs were looked for
	swept     bool        // leftovers of earlier runs were removed, or the caller of Sweep decides
	scratch   *scratch
	shared    sharer
	flush     flusher
}

// New returns a driver of a folder, which is created at its first use. Without sync, an object
// counts as stored before it is synced.
func New(config Config, log *slog.Logger) *Driver {
	return &Driver{path: config.Root, sync: config.sync(), log: log, now: time.Now} //nolint:forbidigo // the clock's one default
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
	root, err := d.open()
	if err != nil {
		return err
	}
	dir, err := root.Open(".")
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
	return storagedrivers.WithCause(err, storagedrivers.Cause("The system user "+name+", as whom Caddy runs, may not use "+
		d.path+". Change the owner or the rights of the folder, or name another one."))
}

// Features returns all guarantees: link(2) and rename(2) are atomic.
func (d *Driver) Features() storagedrivers.Features {
	return storagedrivers.Features{
		Create: storagedrivers.Atomic, Replace: storagedrivers.Atomic, Together: storagedrivers.Atomic, Seek: true,
	}
}

// Close closes the root and the scratch folder.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.root == nil {
		return nil
	}
	err := errors.Join(d.closeScratch(), d.dir.Close(), d.root.Close())
	d.root, d.dir, d.opened, d.recovered, d.swept, d.scratch = nil, nil, nil, false, false, nil
	return err
}

// Stat returns the Info of an object.
func (d *Driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	if err := ctx.Err(); err != nil {
		return storagedrivers.Info{}, err
	}
	root, err := d.open()
	if err != nil {
		return storagedrivers.Info{}, err
	}
	stat, err := root.Stat(key)
	if err != nil {
		return storagedrivers.Info{}, d.lookupError(err)
	}
	if !stat.Mode().IsRegular() {
		return storagedrivers.Info{}, notAnObject(key)
	}
	return newInfo(key, stat), nil
}

// Delete unlinks the file. Folders stay.
func (d *Driver) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	root, err := d.open()
	if err != nil {
		return err
	}
	stat, err := root.Lstat(key)
	if err != nil {
		return d.lookupError(err)
	}
	if stat.IsDir() { // Remove would take an empty one
		return notAnObject(key)
	}
	if err := root.Remove(key); err != nil {
		return d.lookupError(err)
	}
	return d.syncDir(root, path.Dir(key))
}

// lookupError is mapError for an object that was not found or not reached. If the root is missing,
// the backend is unavailable.
func (d *Driver) lookupError(err error) error {
	err = mapReadError(err)
	if errors.Is(err, fs.ErrNotExist) {
		if _, rootErr := os.Stat(d.path); errors.Is(rootErr, fs.ErrNotExist) {
			return fmt.Errorf("the root is gone: %w", storagedrivers.ErrUnavailable)
		}
	}
	return err
}

func notAnObject(key string) error {
	return fmt.Errorf("%q is no regular file: %w", key, fs.ErrNotExist)
}

func newInfo(key string, stat fs.FileInfo) storagedrivers.Info {
	return storagedrivers.Info{
		Key: key, Size: stat.Size(), ModTime: stat.ModTime(), ETag: etag(stat),
		ContentType: storagedrivers.ContentType(key),
	}
}

// etag identifies a generation by inode, time in nanoseconds and size. It is strong because every
// object is a new inode with the time of its own commit, and a growing one has the time of its last
// write.
func etag(stat fs.FileInfo) string {
	return fmt.Sprintf(`"%x-%x-%x"`, inode(stat), stat.ModTime().UnixNano(), stat.Size())
}

// Interface guards
var (
	_ storagedrivers.Driver   = (*Driver)(nil)
	_ storagedrivers.Stager   = (*Driver)(nil)
	_ storagedrivers.Sweeper  = (*Driver)(nil)
	_ storagedrivers.Appender = (*Driver)(nil)
)
