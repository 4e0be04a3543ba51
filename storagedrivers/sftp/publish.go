package sftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/modtime"
)

// commit names the object. The end of ctx does not stop it, because the outcome would be unknown;
// only a silent host does.
func (d *driver) commit(ctx context.Context, u *upload) error {
	ctx = context.WithoutCancel(ctx)
	patience := d.config.timeout() + d.config.timeout()/4
	if u.mode == storagedrivers.Overwrite || u.can.create == locked {
		waiting, cancel := context.WithTimeoutCause(ctx, patience, errNameBusy)
		unlock, err := d.naming.Lock(waiting, u.path)
		cancel()
		if err != nil {
			d.discardLater(ctx, u.temp)
			return err
		}
		defer unlock()
	}
	// A silent host gets one more short request about the outcome.
	naming, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
	defer cancel()
	attempt := func(how func(*conn, *upload) error) error {
		return run(naming, d.pool, func(c *conn) error { return how(c, u) })
	}
	err := d.date(naming, u)
	if unavailable(err) { // over another connection
		err = d.date(naming, u)
	}
	if err == nil {
		if err = attempt(d.name); unavailable(err) {
			err = attempt(d.nameAgain)
		}
	}
	names := []string{u.temp} // not removed before: nameAgain depends on its existence
	if u.twice.Load() {
		names = append(names, u.second())
	}
	for _, name := range names {
		if unavailable(err) {
			d.discardLater(ctx, name)
			continue
		}
		left := run(naming, d.pool, func(c *conn) error { return c.Remove(name) })
		if left != nil && !errors.Is(left, fs.ErrNotExist) {
			d.discardLater(ctx, name)
		}
	}
	return err
}

// errNameBusy means that other uploads of the name took too long. It is not retried.
var errNameBusy = fmt.Errorf("waiting for other uploads of the same name: %w: %w", storagedrivers.ErrBusy, os.ErrDeadlineExceeded)

// date makes an object younger than the one that it replaces, and than the last one that was
// removed, and not older than requested, see [modtime.After]. If the host does not set times, the
// object keeps its time.
func (d *driver) date(ctx context.Context, u *upload) error {
	old, wasRemoved := d.removed.Get(u.path)
	if u.mode != storagedrivers.Overwrite && !wasRemoved {
		return nil
	}
	modTime, err := do(ctx, d.pool, func(c *conn) (time.Time, error) {
		stat, err := c.Stat(u.path)
		switch {
		case err == nil:
			old = stat.ModTime()
		case !errors.Is(mapError(err), fs.ErrNotExist):
			return u.info.ModTime, err
		}
		later, set := modtime.After(u.info.ModTime, old, u.least)
		if !set {
			return later, nil
		}
		if err := c.Chtimes(u.temp, later, later); err != nil {
			return u.info.ModTime, err
		}
		dated, err := c.Lstat(u.temp)
		if err != nil {
			return u.info.ModTime, err
		}
		return dated.ModTime(), nil
	})
	switch {
	case err == nil:
		u.info.ModTime = modTime
	case unavailable(err):
		return err
	}
	if err != nil || modTime.Equal(old) {
		found := *d.known.Load()
		found.dates = false
		d.known.Store(&found)
	}
	return nil
}

// nameAttempts bounds how often a name may be taken by an upload that is then rolled back or replaced.
const nameAttempts = 5

// name names the object, in a way that the host supports.
func (d *driver) name(c *conn, u *upload) error {
	how := d.create
	if u.mode == storagedrivers.Overwrite {
		how = d.replace
	}
	for attempt := 1; ; attempt++ {
		err := how(c, u)
		if err == nil || unavailable(err) {
			return err
		}
		stat, missing := c.Lstat(u.path)
		switch {
		case failed(err) && errors.Is(missing, fs.ErrNotExist) && attempt < nameAttempts:
			// An upload that had taken the name was rolled back, or another one is about to replace it.
		case missing != nil:
			return fmt.Errorf("naming the file: %w", err)
		case stat.IsDir():
			return errFolder
		case u.mode == storagedrivers.CreateOnly:
			return fmt.Errorf("%w: %w", fs.ErrExist, err)
		default:
			return fmt.Errorf("replacing: %w", err)
		}
	}
}

// nameAgain names the object after a lost reply, unless it already has its name.
func (d *driver) nameAgain(c *conn, u *upload) error {
	if done, err := d.isNamed(c, u); done || err != nil {
		return err
	}
	err := d.name(c, u)
	if err != nil && !unavailable(err) {
		// The host may have executed the first request only now.
		if done, _ := d.isNamed(c, u); done {
			return nil
		}
	}
	return err
}

// isNamed reports with certainty whether the object has its name: the temporary name is gone, or
// both are names of one file.
func (d *driver) isNamed(c *conn, u *upload) (bool, error) {
	_, err := c.Lstat(u.temp)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil || u.mode != storagedrivers.CreateOnly || u.can.create != linked {
		return false, err
	}
	return d.oneFile(c, u)
}

// oneFile reports whether both names of a linked object are names of one file, which the protocol
// does not report. It links a second temporary name to the object and renames the first to that:
// rename(2) leaves two names of one file as they are. The object itself is not changed.
func (d *driver) oneFile(c *conn, u *upload) (bool, error) {
	u.twice.Store(true)
	err := c.Link(u.path, u.second())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = c.PosixRename(u.temp, u.second())
	}
	if err != nil {
		return false, fmt.Errorf("%w: finding out which object has the name: %w", storagedrivers.ErrUnavailable, err)
	}
	_, err = c.Lstat(u.temp)
	if errors.Is(err, fs.ErrNotExist) { // they were two files
		return false, c.PosixRename(u.second(), u.temp)
	}
	return err == nil, err
}

// create commits under a name that must be free. If the host's file system does not decide it, the
// caller holds the lock of the name.
func (d *driver) create(c *conn, u *upload) error {
	switch u.can.create {
	case linked:
		return c.Link(u.temp, u.path)
	case claimed:
		return d.claim(c, u)
	default:
		_, err := c.Lstat(u.path)
		switch {
		case err == nil:
			return fs.ErrExist
		case !errors.Is(mapError(err), fs.ErrNotExist):
			return err // it may be there, and the rename would replace it
		}
		return c.Rename(u.temp, u.path)
	}
}

// claim creates an empty file of the name, then replaces it.
func (d *driver) claim(c *conn, u *upload) error {
	if !u.claimed.Load() {
		file, err := c.OpenFile(u.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
		if err != nil {
			return err
		}
		u.claimed.Store(true)
		if err := file.Close(); err != nil {
			return err
		}
	}
	err := c.PosixRename(u.temp, u.path)
	if err == nil || unavailable(err) {
		return err
	}
	// A file that is not empty was named by a late request.
	if stat, missing := c.Lstat(u.path); missing == nil && stat.Size() == 0 {
		return errors.Join(err, c.Remove(u.path))
	}
	return err
}

// replaceAttempts bounds how often other uploads may be faster to take a free name.
const replaceAttempts = 20

// replace names the object, whether the name exists or not. If the host cannot replace in one step,
// the old object is removed first, and another process may store an object in between.
func (d *driver) replace(c *conn, u *upload) (err error) {
	if u.can.replace {
		return c.PosixRename(u.temp, u.path)
	}
	for range replaceAttempts {
		err = c.Rename(u.temp, u.path)
		if err == nil || unavailable(err) {
			return err
		}
		if _, gone := c.Lstat(u.temp); gone != nil {
			return err // the name may be of this upload
		}
		stat, missing := c.Lstat(u.path)
		switch {
		case errors.Is(missing, fs.ErrNotExist): // another upload is about to take it
			continue
		case missing != nil || stat.IsDir(): // Remove would take an empty one
			return err
		}
		if err := c.Remove(u.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}
