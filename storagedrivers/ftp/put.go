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
	"github.com/caddymedia/media/storagedrivers/internal/listing"
	"github.com/caddymedia/media/storagedrivers/internal/modtime"
	"github.com/caddymedia/media/storagedrivers/internal/source"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// Parts of the names of temporary files, which are not valid keys.
const (
	tempPrefix = ".up-"
	tempSuffix = ".part"
)

// tempName returns a unique name.
func tempName(folder string) string {
	return path.Join(folder, tempPrefix+strings.ToLower(rand.Text())+tempSuffix)
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
	sent    bool // there may be a temporary file
	renamed bool // the rename was asked for
	removed bool // the removal of the old object was asked for
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
// has succeeded, and cleanUp returns no error. After the removal of the old object, cleanUp renames
// the file instead, which is all that is left.
func (u *upload) cleanUp(ctx context.Context, failure error) error {
	if !u.sent {
		return failure
	}
	published := false
	err := u.driver.cleanUp(ctx, u.conn, func() error {
		var err error
		if u.removed {
			err = u.conn.rename(u.temp, u.dst)
			published = err == nil
		} else {
			err = u.conn.remove(u.temp)
		}
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
		u.driver.log.WarnContext(ctx, "a temporary file may have stayed behind",
			"file", u.temp, "of", u.dst, "error", err)
	}
	if published {
		return nil
	}
	return failure
}

// naming are the locks of names during a commit. All drivers of the process share them, because two
// of them may have the same root.
var naming locks.Names

// lockName returns the name of the lock of an object.
func (d *driver) lockName(path string) string { return d.config.Address + path }

var errKeyTaken = fmt.Errorf("%w: another upload of this name takes too long", storagedrivers.ErrUnavailable)

// publish renames the temporary file to its key, or removes it. At the same time no other upload of
// this process does so for the name.
func (u *upload) publish(ctx context.Context) error {
	wait, cancel := context.WithTimeoutCause(ctx, u.driver.config.timeout(), errKeyTaken)
	defer cancel()
	unlock, err := naming.Lock(wait, u.driver.lockName(u.dst))
	if err != nil {
		return u.cleanUp(ctx, operationError(wait, err))
	}
	defer unlock()
	err = u.conn.run(ctx, func() error {
		if err := u.date(); err != nil {
			return err
		}
		return u.rename()
	})
	if err != nil {
		err = u.cleanUp(ctx, err)
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

// rename renames the temporary file to the name of the object.
func (u *upload) rename() error {
	if u.mode == storagedrivers.CreateOnly {
		if err := u.isFree(); err != nil {
			return err
		}
	}
	u.renamed = true
	refusal := u.conn.rename(u.temp, u.dst)
	if !isRefusal(refusal) {
		return refusal
	}
	_, err := u.conn.stat(u.dst)
	switch {
	case err == nil && u.mode == storagedrivers.CreateOnly:
		return fs.ErrExist
	case err == nil:
		return u.replace()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if entered := u.conn.changeDir(u.dst); entered != nil {
		return refusalReason(refusal, storagedrivers.ErrInvalidKey)
	}
	if err := u.driver.clear(u.conn, u.dst); err != nil {
		return err
	}
	if refusal = u.conn.rename(u.temp, u.dst); isRefusal(refusal) {
		return refusalReason(refusal, storagedrivers.ErrInvalidKey)
	}
	return refusal
}

// clear removes a folder that is in the way of a key, if all in it are folders.
func (d *driver) clear(c *conn, folder string) error {
	read := func(folder string) (names []string, err error) {
		entries, err := c.list(folder)
		for _, e := range entries {
			switch {
			case e.name == ".", e.name == "..":
			case e.folder:
				names = append(names, e.name)
			default:
				return nil, listing.ErrFolder
			}
		}
		return names, ignoreMissing(err)
	}
	return listing.Clear(folder, read, func(folder string) error {
		err := c.changeDir(path.Dir(folder)) // servers do not, or must not, remove the current folder
		if err == nil {
			err = c.checkPathReply(folder, c.ftp.RemoveDir(folder))
		}
		if isRefusal(err) {
			_, file := c.stat(folder)
			if !errors.Is(file, fs.ErrNotExist) || !isRefusal(c.changeDir(folder)) {
				return fmt.Errorf("%w: %w", listing.ErrFolder, err)
			}
			err = nil // another client was faster
		}
		d.folders.Remove(folder)
		return err
	})
}

// replace removes the old object first, because the server does not rename over it. For a moment
// there is no object. Before that, replace renames the temporary file to another temporary name: a
// server that refuses each rename must not lose the old object.
func (u *upload) replace() error {
	u.renamed = false
	temp := u.temp
	u.temp = tempName(path.Dir(temp))
	if err := u.conn.rename(temp, u.temp); err != nil {
		if isRefusal(err) {
			u.temp = temp
			err = refusalReason(err, fs.ErrPermission)
		}
		return err
	}
	u.removed = true
	if err := u.conn.remove(u.dst); isRefusal(err) {
		if _, looked := u.conn.stat(u.dst); !errors.Is(looked, fs.ErrNotExist) {
			u.removed = false
			return refusalReason(err, fs.ErrPermission)
		}
	} else if err != nil {
		return err
	}
	u.renamed = true
	return u.conn.rename(u.temp, u.dst)
}
