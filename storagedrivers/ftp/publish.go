package ftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/modtime"
)

var errKeyTaken = fmt.Errorf("%w: another upload of this name takes too long", storagedrivers.ErrUnavailable)

// publish renames the temporary file to its key, or removes it. At the same time no other upload of
// this process does so for the name, nor one of another process that uses the lock.
func (u *upload) publish(ctx context.Context) error {
	wait, cancel := context.WithTimeoutCause(ctx, u.driver.config.Timeout, errKeyTaken)
	defer cancel()
	unlock, err := u.driver.keys.Lock(wait, u.dst)
	if err != nil {
		return u.cleanUp(ctx, ended(wait, err))
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
	if err != nil {
		return u.cleanUpRename(ctx, err)
	}
	return nil
}

// cleanUpRename is cleanUp for a failed rename, which may have left the old object aside.
func (u *upload) cleanUpRename(ctx context.Context, failure error) error {
	failure = u.cleanUp(ctx, failure)
	if u.aside == "" {
		return failure
	}
	err := u.driver.cleanUp(ctx, u.conn, func() error {
		if failure == nil {
			return u.conn.remove(u.aside)
		}
		return u.conn.move(u.aside, u.dst)
	})
	if err != nil && !refused(err) { // refused: there is none
		u.driver.log.WarnContext(ctx, "an object may have stayed aside", "file", u.aside, "error", err)
	}
	return failure
}

// date makes an object younger than the one that it replaces, and not older than requested, see
// [modtime.After], if the server can set times.
func (u *upload) date() error {
	if u.mode == storagedrivers.CreateOnly || u.info.ModTime.IsZero() || !u.conn.ftp.IsSetTimeSupported() {
		return nil
	}
	old, err := u.conn.look(u.dst)
	if err = ignoreMissing(err); err != nil {
		return err
	}
	later, set := modtime.After(u.info.ModTime, old.modTime, u.least)
	if !set {
		return nil
	}
	if err := u.conn.setTime(u.temp, later); err != nil {
		if !u.conn.broken {
			return nil // it stays as it is
		}
		return err
	}
	e, err := u.conn.look(u.temp)
	u.info = newInfo(u.info.Key, e)
	return err
}

func (u *upload) rename() error {
	if u.mode == storagedrivers.CreateOnly {
		if err := u.isFree(); err != nil {
			return err
		}
		if u.lease.over(u.driver.now()) {
			return errLeaseOver
		}
	}
	u.renamed = true
	err := u.conn.move(u.temp, u.dst)
	if refused(err) {
		return u.renameRefused(err)
	}
	return err
}

var errTaken = errors.New("the server does not rename over an object")

// renameRefused returns the reason of a refused rename.
func (u *upload) renameRefused(refusal error) error {
	_, err := u.conn.look(u.dst)
	switch {
	case err == nil && u.mode == storagedrivers.CreateOnly:
		return fs.ErrExist
	case err == nil:
		return errTaken
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if entered := u.conn.enter(u.dst); entered == nil {
		return fmt.Errorf("%w: a folder stands there: %w", storagedrivers.ErrInvalidKey, refusal)
	}
	if u.mode == storagedrivers.Overwrite && u.driver.Features().Replace != storagedrivers.Atomic {
		return errTaken // or it was: another client may have put it aside just now
	}
	return because(refusal, storagedrivers.ErrInvalidKey)
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
		if err = u.conn.move(u.dst, u.aside); err != nil && !refused(err) {
			return err
		}
		if err = u.conn.move(u.temp, u.dst); !refused(err) {
			break
		}
		if _, looked := u.conn.look(u.dst); looked == nil {
			reason = fs.ErrPermission
			if removed := u.conn.remove(u.aside); removed != nil && !refused(removed) {
				return removed // the object aside is older than the present one
			}
		}
	}
	if refused(err) {
		return because(err, reason)
	}
	if err != nil {
		return err
	}
	if err = u.conn.remove(u.aside); refused(err) {
		return nil // there was none any more
	}
	return err
}
