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
// The folder of a process that died remains. Only the server's clock counts for its age: the age is
// compared with that of the waiting upload's own temporary file, which was just written. Any
// process may break a lock that is staleAfter old. To break it, a process first creates a second
// folder ".lock-*-break", and then checks the age again. So two processes cannot both break a lock
// and remove a new one. The holder of a lock does not rename after leaseTime by its own clock, long
// before other processes break the lock.
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

// lease is a lock that is held.
type lease struct{ until time.Time }

// over reports whether a lock has expired. The zero lease, which is no lock, never expires.
func (l lease) over(now time.Time) bool { return !l.until.IsZero() && now.After(l.until) }

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
			u.lease.until = asked.Add(leaseTime)
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
	if !*u.driver.config.Lock || u.lease.over(u.driver.now()) {
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
	if stale, err := u.isStale(lock); err != nil || !stale {
		return err
	}
	broken, err := u.conn.breakLock(lock, func() (bool, error) { return u.isStale(lock) })
	if broken {
		u.driver.log.Warn("broke the lock of a process that died", "folder", lock)
	}
	if isRefusal(err) {
		return nil
	}
	return err
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
	if err != nil && !isRefusal(err) {
		return broken, err
	}
	if left := c.removeFolder(lock + breakSuffix); left != nil && !isRefusal(left) {
		return broken, left
	}
	return broken, err
}

// lockNow creates the lock folder, or that of a process that died again, without waiting. It
// reports whether the lock is held.
func (u *upload) lockNow() (bool, error) {
	if !*u.driver.config.Lock {
		return true, nil
	}
	err := u.tryLock()
	if errors.Is(err, errLocked) {
		var broken bool
		if broken, err = u.breakOld(); !broken || err != nil {
			return false, err
		}
		err = u.tryLock()
	}
	if errors.Is(err, errLocked) {
		return false, nil
	}
	u.lease.until = u.driver.now().Add(leaseTime)
	return err == nil, err
}

// breakOld is breakStale for an upload without a temporary file. The folder that breaks the lock
// has just been made and takes its place.
func (u *upload) breakOld() (broken bool, err error) {
	lock := lockPath(u.dst)
	return u.conn.breakLock(lock, func() (bool, error) {
		u.temp = lock + breakSuffix
		if u.conn.hasFacts() {
			e, err := u.conn.facts(u.temp)
			if err != nil {
				return false, err
			}
			u.info.ModTime = e.modTime
		}
		return u.isStale(lock)
	})
}

// isStale compares the times of the lock folder and of the temporary file. Listings show both in
// the same time zone.
func (u *upload) isStale(lock string) (bool, error) {
	if u.conn.hasFacts() {
		e, err := u.conn.facts(lock)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil && u.info.ModTime.Sub(e.modTime) > staleAfter, err
	}
	entries, err := u.conn.list(u.folder)
	if err != nil {
		return false, err
	}
	var locked, sent time.Time
	for _, e := range entries {
		switch e.name {
		case path.Base(lock):
			locked = e.modTime
		case path.Base(u.temp):
			sent = e.modTime
		}
	}
	return !locked.IsZero() && sent.Sub(locked) > staleAfter, nil
}
