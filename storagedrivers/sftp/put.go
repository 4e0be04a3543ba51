package sftp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	pkgsftp "github.com/pkg/sftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
	"github.com/caddymedia/media/storagedrivers/internal/source"
)

// maxRequests is how many packets of an object are sent before their replies: 2 MiB with packets of
// 32 KiB, which is the window of an SSH connection.
const maxRequests = 64

// tidying is how long a caller whose context has ended waits for its leftovers to be removed. After
// that the removal continues in the background.
const tidying = 2 * time.Second

// scarce is the free space below which a write that failed without a reason counts as out of space.
const scarce = 1 << 20

// Put writes a hidden file beside the key and renames it.
func (d *driver) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	src := source.New(ctx, r)
	longer, cancel := lostreply.Outlive(ctx, tidying)
	defer cancel()
	u, err := do(longer, d.pool, func(c *conn) (*upload, error) { return d.send(ctx, c, key, src, opts) })
	own := src.Err() // r is not read any more, even if send is still running
	switch {
	case err == nil:
		defer d.kept.Change(key)
		err = d.commit(ctx, u)
	case ctx.Err() != nil:
		return storagedrivers.Info{}, contextError(ctx)
	case own != nil:
		return storagedrivers.Info{}, own
	}
	if err != nil {
		return storagedrivers.Info{}, err
	}
	return u.info, nil
}

// upload is an object in a temporary file.
type upload struct {
	mode    storagedrivers.Mode
	least   time.Time // of its time
	path    string    // where it is to be
	temp    string    // where it is
	info    storagedrivers.Info
	can     abilities
	removed atomic.Bool // the old object was removed, or may have been
}

// send writes the object to a temporary file, which it removes on failure.
func (d *driver) send(
	ctx context.Context, c *conn, key string, src *source.Reader, opts storagedrivers.PutOptions,
) (*upload, error) {
	u := &upload{mode: opts.Mode, least: opts.NotBefore, path: d.path(key)}
	var err error
	if u.can, err = d.findAbilities(ctx, c, folderOf(u.path)); err != nil {
		return nil, err
	}
	if u.mode == storagedrivers.CreateOnly {
		stat, err := c.Lstat(u.path)
		switch {
		case err == nil && stat.IsDir():
			if err := c.clear(u.path); err != nil {
				return nil, err
			}
		case err == nil:
			return nil, fs.ErrExist
		case unavailable(err):
			return nil, err
		}
	}
	file, temp, err := d.makeTemp(ctx, c, folderOf(u.path))
	if err != nil {
		return nil, d.spaceError(c, folderOf(u.path), err)
	}
	u.temp = temp
	var stat fs.FileInfo
	if err = fill(file, src); err == nil {
		stat, err = c.Lstat(temp)
	}
	switch {
	case src.Err() != nil || ctx.Err() != nil:
		err = errSource
	case err != nil:
		err = d.spaceError(c, folderOf(u.path), err)
	case stat.Size() != src.Size():
		err = fmt.Errorf("%w: %d bytes of %d", storagedrivers.ErrSizeMismatch, stat.Size(), src.Size())
	}
	if err != nil {
		d.discard(ctx, c, temp)
		return nil, err
	}
	u.info = newInfo(key, stat)
	return u, nil
}

// errSource means that the source failed or its context ended; [driver.Put] returns the actual
// error. The source's own error could be mistaken for one of the connection.
var errSource = errors.New("the source failed")

// fill writes all of src, syncs the file if the host can, and closes it.
func fill(file *pkgsftp.File, src *source.Reader) error {
	_, err := file.ReadFromWithConcurrency(src, maxRequests)
	if err == nil {
		err = src.Err() // the library takes an error that wraps io.EOF for the end
	}
	if err == nil {
		if err = file.Sync(); unsupported(err) {
			err = nil
		}
	}
	return errors.Join(err, file.Close())
}

// makeTemp creates a file with a unique name, and its folder if it is missing.
func (d *driver) makeTemp(ctx context.Context, c *conn, folder string) (*pkgsftp.File, string, error) {
	name := strings.TrimSuffix(folder, "/") + "/" + tempPrefix + rand.Text() + tempSuffix
	open := func() (*pkgsftp.File, error) { return c.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL) }
	file, err := open()
	for attempt := 1; err != nil && !unavailable(err) && !errors.Is(err, fs.ErrPermission) &&
		!errors.Is(err, syscall.ENOTDIR) && attempt < nameAttempts; attempt++ {
		// Others may make the folder at the same time, or remove it while it is empty.
		unmade := c.MkdirAll(folder)
		if file, err = open(); err != nil && unmade != nil {
			err = unmade
		}
	}
	if unavailable(err) { // it may exist although the answer is lost
		d.discardLater(ctx, name)
	}
	if err != nil {
		return nil, "", fmt.Errorf("making a temporary file: %w", err)
	}
	return file, name, nil
}

// clear removes a folder that is in the way of a key, if all in it are folders. Others may be
// faster.
func (c *conn) clear(folder string) error {
	reason := func(err error) error {
		switch {
		case err == nil, unavailable(err):
			return err
		case errors.Is(mapError(err), fs.ErrNotExist):
			return nil
		}
		return listing.ErrFolder
	}
	read := func(folder string) (names []string, err error) {
		entries, err := c.ReadDir(folder)
		for _, entry := range entries {
			if !entry.IsDir() {
				return nil, listing.ErrFolder
			}
			names = append(names, entry.Name())
		}
		return names, reason(err)
	}
	return listing.Clear(folder, read, func(folder string) error { return reason(c.RemoveDirectory(folder)) })
}

// Parts of the names of temporary files, which are not valid keys.
const (
	tempPrefix = ".up-"
	tempSuffix = ".part"
)

// folderOf returns the folder of a path, which contains a slash.
func folderOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// spaceError adds ErrNoSpace to a failure without a reason if the free space is scarce.
func (d *driver) spaceError(c *conn, folder string, err error) error {
	if !failed(err) {
		return err
	}
	free, statErr := c.StatVFS(folder)
	if statErr != nil || free.Bavail*free.Frsize >= scarce && (free.Favail > 0 || free.Files == 0) {
		return err
	}
	return fmt.Errorf("%w: %w", storagedrivers.ErrNoSpace, err)
}

// discard removes a temporary file, now or later.
func (d *driver) discard(ctx context.Context, c *conn, temp string) {
	if err := c.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.discardLater(ctx, temp)
	}
}

// discardLater removes a temporary file in the background, over any connection. If that fails too,
// the file stays for a day.
func (d *driver) discardLater(ctx context.Context, temp string) {
	d.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.config.timeout())
		defer cancel()
		err := run(ctx, d.pool, func(c *conn) error { return c.Remove(temp) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.log.Warn("a temporary file has stayed behind; it is removed when it is a day old",
				"file", temp, "error", err)
		}
	})
}
