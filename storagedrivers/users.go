package storagedrivers

import "sync"

// Users counts who is using something that must be released after the last of them.
// It begins with one user, the owner, whose Close is the last word: nobody is let in
// after it, and release runs when those inside are gone.
type Users struct {
	mu      sync.Mutex
	n       int
	closed  bool
	release func() error
}

// NewUsers counts the users of what release releases.
func NewUsers(release func() error) *Users { return &Users{release: release} }

// Acquire lets a user in; false once the owner has closed.
func (u *Users) Acquire() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.n++
	return true
}

// Release ends one use. The error is that of the release it may have caused.
func (u *Users) Release() error {
	u.mu.Lock()
	u.n--
	last := u.closed && u.n == 0
	u.mu.Unlock()
	if last {
		return u.release()
	}
	return nil
}

// Close lets nobody in any more and releases at once or after the last user. Closing
// again does nothing.
func (u *Users) Close() error {
	u.mu.Lock()
	last := !u.closed && u.n == 0
	u.closed = true
	u.mu.Unlock()
	if last {
		return u.release()
	}
	return nil
}
