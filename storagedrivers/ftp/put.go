package ftp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/modtime"
	"github.com/caddymedia/media/storagedrivers/internal/source"
)

// Prefixes of the names of temporary files, and of objects that are moved aside. Such names are not
// valid keys.
const (
	tempPrefix    = ".up-"
	tempSuffix    = ".part"
	asidePrefix   = ".aside-" // and the name of the object
	unnamedPrefix = ".old-"   // for a name that is too long
)

func tempName(folder string) string { return newName(folder, tempPrefix) + tempSuffix }

// newName returns a unique name.
func newName(folder, prefix string) string {
	return path.Join(folder, prefix+strings.ToLower(rand.Text()))
}

// asideName returns the name of an object while it is replaced. A sweep restores the object by it.
func asideName(dst string) string {
	folder, name := path.Split(dst)
	if len(asidePrefix)+len(name) > 255 {
		return newName(folder, unnamedPrefix)
	}
	return folder + asidePrefix + name
}

// upload is a running Put.
type upload struct {
	driver  *driver
	conn    *conn
	mode    storagedrivers.Mode
	least   time.Time // of its time
	dst     string
	temp    string
	info    storagedrivers.Info
	sent    bool      // there may be a temporary file
	renamed bool      // the rename was asked for
	aside   string    // where the old object waits, if the server would not replace it
	lease   time.Time // the end of the lock folder; zero without one
}

// Put stores all of r under key.
func (d *driver) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (info storagedrivers.Info, err error) {
	defer d.kept.Change(key)
	err = d.withConn(ctx, func(c *conn) error {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return err
		}
		info, err = d.put(ctx, c, key, r, opts)
		return err
	})
	return info, err
}

func (d *driver) put(
	ctx context.Context, c *conn, key string, r io.Reader, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	dst := c.path(key)
	u := &upload{
		driver: d, conn: c, mode: opts.Mode, least: opts.NotBefore, dst: dst, temp: tempName(path.Dir(dst)),
	}
	src := source.New(ctx, r)
	err := c.run(ctx, func() error { return u.store(key, src) })
	failed := src.Err()
	if failed != nil {
		err = failed // whatever the network says to that
	}
	if err == nil {
		err = u.publish(ctx)
	} else {
		err = u.cleanUp(ctx, err)
	}
	switch {
	case err == nil:
		return u.info, nil
	case failed != nil && ctx.Err() == nil:
		return storagedrivers.Info{}, err // it may look like one of the network
	}
	return storagedrivers.Info{}, operationError(ctx, err)
}

// store sends the temporary file.
func (u *upload) store(key string, src *source.Reader) error {
	if u.mode == storagedrivers.CreateOnly {
		if err := u.isFree(); err != nil { // it spares the transfer
			return err
		}
	}
	folder := path.Dir(u.dst)
	if err := u.driver.ensureFolder(u.conn, folder); err != nil {
		return err
	}
	u.sent = true
	err := u.conn.store(u.temp, src)
	if isRefusal(err) && src.Size() == 0 {
		u.driver.folders.Purge() // another client may have removed it, with those below it
		if err := u.driver.ensureFolder(u.conn, folder); err != nil {
			return err
		}
		err = u.conn.store(u.temp, src)
	}
	if isRefusal(err) {
		return refusalReason(err, fs.ErrPermission)
	}
	if err != nil {
		return err
	}
	e, err := u.conn.stat(u.temp)
	if err != nil {
		return fmt.Errorf("looking for the temporary file: %w", err)
	}
	if e.size != src.Size() {
		return fmt.Errorf("%w: %w: %d of %d bytes", storagedrivers.ErrUnavailable,
			storagedrivers.ErrSizeMismatch, e.size, src.Size())
	}
	u.info = newInfo(key, e)
	return nil
}

// isFree returns fs.ErrExist if the object exists.
func (u *upload) isFree() error {
	_, err := u.conn.stat(u.dst)
	switch {
	case err == nil:
		return fs.ErrExist
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// cleanUp removes the temporary file after a failure. If the reply to the rename was lost, the file
// decides: if it can be removed, it was not renamed and never will be. If it is gone, the rename
// has succeeded, and cleanUp returns no error.
func (u *upload) cleanUp(ctx context.Context, failure error) error {
	if !u.sent {
		return failure
	}
	published := false
	err := u.driver.cleanUp(ctx, u.conn, func() error {
		err := u.conn.remove(u.temp)
		if !isRefusal(err) {
			return err
		}
		if _, gone := u.conn.stat(u.temp); !errors.Is(gone, fs.ErrNotExist) {
			return err // it was not renamed, whatever stands under the name
		}
		if u.renamed {
			e, err := u.conn.stat(u.dst)
			published = err == nil && e.size == u.info.Size
		}
		return nil
	})
	u.sent = false
	if err != nil {
		u.driver.log.WarnContext(ctx, "a temporary file may have stayed behind", "file", u.temp, "error", err)
	}
	if published {
		return nil
	}
	return failure
}

var errKeyTaken = fmt.Errorf("%w: another upload of this name takes too long", storagedrivers.ErrUnavailable)

// publish renames the temporary file to its key, or removes it. At the same time no other upload of
// this process does so for the name, nor one of another process that uses the lock.
func (u *upload) publish(ctx context.Context) error {
	wait, cancel := context.WithTimeoutCause(ctx, u.driver.config.timeout(), errKeyTaken)
	defer cancel()
	unlock, err := u.driver.keys.Lock(wait, u.dst)
	if err != nil {
		return u.cleanUp(ctx, operationError(wait, err))
	}
	defer unlock()
	if u.mode == storagedrivers.CreateOnly {
		if err := u.lock(wait); err != nil {
			return u.cleanUp(ctx, err)
		}
		defer u.unlock(ctx)
	}
	err = u.conn.run(ctx, func() error {
		if err := u.date(); err != nil {
			return err
		}
		return u.rename()
	})
	if errors.Is(err, errTaken) {
		if err = u.lock(wait); err == nil {
			defer u.unlock(ctx)
			err = u.conn.run(ctx, u.replace)
		}
	}
	if err == nil {
		return nil
	}
	err = u.cleanUp(ctx, err)
	if u.aside == "" {
		return err
	}
	left := u.driver.cleanUp(ctx, u.conn, func() error { // the old object may still be aside
		if err == nil {
			return u.conn.remove(u.aside)
		}
		return u.conn.rename(u.aside, u.dst)
	})
	if ignoreRefusal(left) != nil { // refused: there is none
		u.driver.log.WarnContext(ctx, "an object may have stayed aside", "file", u.aside, "error", left)
	}
	return err
}

// date makes an object younger than the one that it replaces, and than the last one that was
// removed, and not older than requested, see [modtime.After], if the server can set times.
func (u *upload) date() error {
	removed, wasRemoved := u.driver.removed.Get(u.dst)
	if u.mode == storagedrivers.CreateOnly && !wasRemoved || u.info.ModTime.IsZero() || !u.conn.ftp.IsSetTimeSupported() {
		return nil
	}
	old, err := u.conn.stat(u.dst)
	if errors.Is(err, fs.ErrNotExist) {
		old.modTime, err = removed, nil
	}
	if err != nil {
		return err
	}
	later, set := modtime.After(u.info.ModTime, old.modTime, u.least)
	if !set {
		return nil
	}
	if err := u.conn.checkPathReply(u.temp, u.conn.ftp.SetTime(u.temp, later)); err != nil {
		if u.conn.broken {
			return err
		}
		u.driver.undated() // it stays as it is
		return nil
	}
	e, err := u.conn.stat(u.temp)
	u.info = newInfo(u.info.Key, e)
	if err == nil && e.modTime.Equal(old.modTime) {
		u.driver.undated()
	}
	return err
}

// undated records that the server does not set times.
func (d *driver) undated() {
	if found := d.Features(); found.Dated {
		found.Dated = false
		d.features.Store(&found)
	}
}

func (u *upload) rename() error {
	if u.mode == storagedrivers.CreateOnly {
		if err := u.isFree(); err != nil {
			return err
		}
		if u.leaseOver() {
			return errLeaseOver
		}
	}
	u.renamed = true
	err := u.conn.rename(u.temp, u.dst)
	if isRefusal(err) {
		return u.renameRefused(err)
	}
	return err
}

var errTaken = errors.New("the server does not rename over an object")

// renameRefused returns the reason of a refused rename.
func (u *upload) renameRefused(refusal error) error {
	_, err := u.conn.stat(u.dst)
	switch {
	case err == nil && u.mode == storagedrivers.CreateOnly:
		return fs.ErrExist
	case err == nil:
		return errTaken
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if entered := u.conn.changeDir(u.dst); entered == nil {
		return fmt.Errorf("%w: a folder stands there: %w", storagedrivers.ErrInvalidKey, refusal)
	}
	if u.mode == storagedrivers.Overwrite && u.driver.Features().Replace != storagedrivers.Atomic {
		return errTaken // or it was: another client may have put it aside just now
	}
	return refusalReason(refusal, storagedrivers.ErrInvalidKey)
}

// replaceAttempts bounds how often other clients, which do not lock, may be faster.
const replaceAttempts = 5

// replace moves the old object aside, if the server does not rename over it. For a moment there is
// no object.
func (u *upload) replace() error {
	var err error
	reason := storagedrivers.ErrInvalidKey
	u.aside = asideName(u.dst)
	for range replaceAttempts {
		if err = ignoreRefusal(u.conn.rename(u.dst, u.aside)); err != nil {
			return err
		}
		if err = u.conn.rename(u.temp, u.dst); !isRefusal(err) {
			break
		}
		if _, looked := u.conn.stat(u.dst); looked == nil {
			reason = fs.ErrPermission
			if removed := ignoreRefusal(u.conn.remove(u.aside)); removed != nil {
				return removed // the object aside is older than the present one
			}
		}
	}
	if isRefusal(err) {
		return refusalReason(err, reason)
	}
	if err != nil {
		return err
	}
	return ignoreRefusal(u.conn.remove(u.aside)) // refused: there was none any more
}
