package ftp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Between processes, the creator of a name holds a lock folder beside it: if several clients create
// one folder, exactly one succeeds. The lock is held while the name is checked and renamed, which
// takes a few round trips, and then removed. An overwriting upload needs it only if the server does
// not rename over a file.
//
// The folder of a process that died remains. Any process may break a lock that is staleAfter old. To
// break it, a process first creates a second folder ".lock-*-break". So two processes cannot both
// break a lock and remove a new one. Only the server's clock counts: the age of a lock is the
// difference to the time of that second folder. The holder of a lock does not rename after leaseTime
// by its own clock, long before other processes break the lock.
const (
	lockPrefix  = ".lock-"
	breakSuffix = "-break"
	staleAfter  = 10 * time.Minute
	leaseTime   = 5 * time.Minute

	firstPause  = 20 * time.Millisecond
	lastPause   = 500 * time.Millisecond
	breakingLag = time.Second // of waiting before a lock is suspected
)

var (
	errLocked    = errors.New("the lock folder exists")
	errLeaseOver = fmt.Errorf("%w: the lock was held for too long", storagedrivers.ErrUnavailable)
)

// leaseOver reports whether the lock of the upload has expired. No lock never expires.
func (u *upload) leaseOver() bool { return !u.lease.IsZero() && u.driver.now().After(u.lease) }

// lockPath returns the lock folder of an object. It does not depend on the parent folders, whose
// names may differ between logins.
func lockPath(dst string) string {
	return path.Join(path.Dir(dst), fmt.Sprintf("%s%x", lockPrefix, sha256.Sum256([]byte(path.Base(dst)))))
}

// lock creates the lock folder, and waits while another process holds it. It returns fs.ErrExist if
// the object to create appears meanwhile.
func (u *upload) lock(ctx context.Context) error {
	if !*u.driver.config.Lock {
		return nil
	}
	start := u.driver.now()
	suspected := false
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		asked := u.driver.now()
		err := u.conn.run(ctx, u.tryLock)
		if err == nil {
			u.lease = asked.Add(leaseTime)
			return nil
		}
		if !errors.Is(err, errLocked) {
			return err
		}
		lag := min(breakingLag, u.driver.config.timeout()/4)
		if !suspected && u.driver.now().Sub(start) >= lag {
			suspected = true
			if err := u.conn.run(ctx, u.breakStale); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return operationError(ctx, fmt.Errorf("making %q: %w", lockPath(u.dst), err))
		case <-time.After(pause):
		}
	}
}

func (u *upload) tryLock() error {
	err := u.conn.makeFolder(lockPath(u.dst))
	if !isRefusal(err) {
		return err
	}
	if u.mode == storagedrivers.CreateOnly {
		if err := u.isFree(); err != nil {
			return err
		}
	}
	if mapped := mapError(err); errors.Is(mapped, fs.ErrPermission) {
		return fmt.Errorf("making a lock folder: %w", mapped)
	}
	return fmt.Errorf("%w: %w", errLocked, err)
}

// unlock removes the lock folder, unless another process may hold it by now.
func (u *upload) unlock(ctx context.Context) {
	if !*u.driver.config.Lock || u.leaseOver() {
		return
	}
	err := u.driver.cleanUp(ctx, u.conn, func() error { return u.conn.removeFolder(lockPath(u.dst)) })
	if err != nil {
		u.driver.log.WarnContext(ctx, "a lock folder may have stayed behind", "folder", lockPath(u.dst), "error", err)
	}
}

// breakStale removes the lock folder of a process that died. If it cannot, it returns no error,
// because the lock is then held.
func (u *upload) breakStale() error {
	lock := lockPath(u.dst)
	if u.temp != "" { // it was just written, so the second folder is made only for a stale lock
		if stale, err := u.conn.isStale(lock, u.temp); err != nil || !stale {
			return err
		}
	}
	broken, err := u.conn.breakLock(lock, func() (bool, error) { return u.conn.isStale(lock, lock+breakSuffix) })
	if broken {
		u.driver.log.Warn("broke the lock of a process that died", "folder", lock)
	}
	return ignoreRefusal(err)
}

// isStale compares the time of a lock folder with that of a file or folder that was just made.
func (c *conn) isStale(lock, made string) (bool, error) {
	locked, err := c.look(lock)
	if err != nil || locked.modTime.IsZero() {
		return false, ignoreMissing(err)
	}
	now, err := c.look(made)
	return err == nil && now.modTime.Sub(locked.modTime) > staleAfter, ignoreMissing(err)
}

// breakLock removes a lock folder if stale returns true. stale is called while no other process can
// break the lock. It reports whether the lock was removed.
func (c *conn) breakLock(lock string, stale func() (bool, error)) (broken bool, err error) {
	err = c.makeFolder(lock + breakSuffix)
	if isRefusal(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	isStale, err := stale()
	if err == nil && isStale {
		err = c.removeFolder(lock)
		broken = err == nil
	}
	if ignoreRefusal(err) != nil {
		return broken, err
	}
	if left := ignoreRefusal(c.removeFolder(lock + breakSuffix)); left != nil {
		return broken, left
	}
	return broken, err
}

// lockNow creates the lock folder, also in place of a stale one, without waiting. It reports whether
// the lock is held.
func (u *upload) lockNow() (bool, error) {
	if !*u.driver.config.Lock {
		return true, nil
	}
	err := u.tryLock()
	if errors.Is(err, errLocked) {
		if err = u.breakStale(); err == nil {
			err = u.tryLock()
		}
	}
	if errors.Is(err, errLocked) {
		return false, nil
	}
	u.lease = u.driver.now().Add(leaseTime)
	return err == nil, err
}
