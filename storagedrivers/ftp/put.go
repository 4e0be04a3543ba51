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
	if len(asidePrefix)+len(name) > storagedrivers.MaxSegmentBytes {
		return newName(folder, unnamedPrefix)
	}
	return folder + asidePrefix + name
}

// upload is a running Put.
type upload struct {
	driver  *Driver
	conn    *conn
	mode    storagedrivers.Mode
	least   time.Time // of its time
	dst     string
	folder  string
	temp    string
	info    storagedrivers.Info
	sent    bool   // there may be a temporary file
	renamed bool   // the rename was asked for
	aside   string // where the old object waits, if the server would not replace it
	lease   lease
}

// Put stores all of r under key.
func (d *Driver) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (info storagedrivers.Info, err error) {
	err = d.lend(ctx, func(c *conn) error {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return err
		}
		info, err = d.put(ctx, c, key, r, opts)
		return err
	})
	return info, err
}

func (d *Driver) put(
	ctx context.Context, c *conn, key string, r io.Reader, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	dst := c.path(key)
	folder := path.Dir(dst)
	u := &upload{
		driver: d, conn: c, mode: opts.Mode, least: opts.NotBefore, dst: dst, folder: folder, temp: tempName(folder),
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
	return storagedrivers.Info{}, ended(ctx, err)
}

// store sends the temporary file.
func (u *upload) store(key string, src *source.Reader) error {
	if u.mode == storagedrivers.CreateOnly {
		if err := u.isFree(); err != nil { // it spares the transfer
			return err
		}
	}
	if err := u.driver.folders.ensure(u.conn, u.folder); err != nil {
		return err
	}
	u.sent = true
	err := u.conn.store(u.temp, src)
	if refused(err) && src.Size() == 0 {
		u.driver.folders.forget() // another client may have removed it
		if err := u.driver.folders.ensure(u.conn, u.folder); err != nil {
			return err
		}
		err = u.conn.store(u.temp, src)
	}
	if refused(err) {
		return because(err, fs.ErrPermission)
	}
	if err != nil {
		return err
	}
	e, err := u.conn.look(u.temp)
	if err != nil {
		return fmt.Errorf("looking for what was sent: %w", err)
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
	_, err := u.conn.look(u.dst)
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
		if !refused(err) {
			return err
		}
		if _, gone := u.conn.look(u.temp); !errors.Is(gone, fs.ErrNotExist) {
			return err // it was not renamed, whatever stands under the name
		}
		if u.renamed {
			e, err := u.conn.look(u.dst)
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
