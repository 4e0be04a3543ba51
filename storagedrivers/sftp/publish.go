package sftp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/listing"
	"github.com/caddymedia/media/storagedrivers/internal/modtime"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// commit names the object. The end of ctx does not stop it, because the outcome would be unknown;
// only a silent host does.
func (d *driver) commit(ctx context.Context, u *upload) error {
	ctx = context.WithoutCancel(ctx)
	patience := d.config.timeout() + d.config.timeout()/4
	if u.mode == storagedrivers.Overwrite || !u.can.links {
		waiting, cancel := context.WithTimeoutCause(ctx, patience, errNameBusy)
		unlock, err := naming.Lock(waiting, d.lockName(u.info.Key))
		cancel()
		if err != nil {
			d.discardLater(ctx, u.temp)
			return err
		}
		defer unlock()
	}
	// A silent host gets one more short request about the outcome.
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errSilent)
	defer cancel()
	attempt := func(how func(*conn, *upload) error) error {
		return run(ctx, d.pool, func(c *conn) error { return how(c, u) })
	}
	err := d.date(ctx, u)
	if unavailable(err) { // over another connection
		err = d.date(ctx, u)
	}
	if err == nil {
		if err = attempt(d.name); unavailable(err) {
			err = attempt(d.nameAgain)
		}
	}
	switch {
	case err != nil && u.removed.Load(): // the file is what is left of the object
		d.log.Warn("an object was removed, and the new one did not get its name", "file", u.temp, "of", u.path)
	case unavailable(err):
		d.discardLater(ctx, u.temp)
	default: // not removed before: nameAgain depends on its existence
		left := run(ctx, d.pool, func(c *conn) error { return c.Remove(u.temp) })
		if left != nil && !errors.Is(left, fs.ErrNotExist) {
			d.discardLater(ctx, u.temp)
		}
	}
	return err
}

// naming are the locks of names during a commit. All drivers of the process share them, because two
// of them may have the same root.
var naming locks.Names

// lockName returns the name of the lock of an object.
func (d *driver) lockName(key string) string { return d.config.Location().Backend + " " + d.path(key) }

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

// nameAttempts bounds how often a name may be taken by an upload that is then rolled back or
// replaced, or may be a folder by turns.
const nameAttempts = 10

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
			if err := c.clear(u.path); err != nil || attempt == nameAttempts {
				return cmp.Or(err, listing.ErrFolder)
			}
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
	if err != nil || u.mode != storagedrivers.CreateOnly || !u.can.links {
		return false, err
	}
	return d.oneFile(c, u)
}

// ownerExecutes is the permission that [driver.oneFile] changes for a moment.
const ownerExecutes fs.FileMode = 0o100

// oneFile reports whether both names of a linked object are names of one file, which the protocol
// does not report: if the permissions of the first name are changed, so are those of the second.
func (d *driver) oneFile(c *conn, u *upload) (bool, error) {
	modes := func() (ours, theirs fs.FileMode, err error) {
		stat, err := c.Lstat(u.temp)
		if err != nil {
			return 0, 0, err
		}
		other, err := c.Lstat(u.path)
		if err != nil {
			return 0, 0, err
		}
		return stat.Mode(), other.Mode(), nil
	}
	ours, theirs, err := modes()
	if err == nil {
		if err = c.Chmod(u.temp, ours.Perm()^ownerExecutes); err == nil {
			defer func() { _ = c.Chmod(u.temp, ours.Perm()) }() // it makes no difference to a client
		}
	}
	var changed, other fs.FileMode
	if err == nil {
		changed, other, err = modes()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err == nil && changed == ours:
		err = errors.ErrUnsupported
	}
	if err != nil {
		return false, fmt.Errorf("%w: finding out which object has the name: %w", storagedrivers.ErrUnavailable, err)
	}
	return other != theirs, nil
}

// create commits under a name that must be free. Without links the caller holds the lock of the
// name.
func (d *driver) create(c *conn, u *upload) error {
	if u.can.links {
		return c.Link(u.temp, u.path)
	}
	_, err := c.Lstat(u.path)
	switch {
	case err == nil:
		return fs.ErrExist
	case !errors.Is(mapError(err), fs.ErrNotExist):
		return err // it may be there, and the rename would replace it
	}
	return c.Rename(u.temp, u.path)
}

// replace names the object, whether the name exists or not. If the host cannot replace in one step,
// the old object is removed first. The caller holds the lock of the name.
func (d *driver) replace(c *conn, u *upload) error {
	if u.can.replace {
		return c.PosixRename(u.temp, u.path)
	}
	err := c.Rename(u.temp, u.path)
	if err == nil || unavailable(err) {
		return err
	}
	if _, gone := c.Lstat(u.temp); gone != nil {
		return err // the name may be of this upload
	}
	if stat, missing := c.Lstat(u.path); missing != nil || stat.IsDir() { // Remove would take an empty one
		return err
	}
	u.removed.Store(true)
	if err := c.Remove(u.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		u.removed.Store(unavailable(err))
		return err
	}
	return c.Rename(u.temp, u.path)
}
