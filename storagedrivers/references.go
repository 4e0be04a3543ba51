package storagedrivers

import "sync"

// References counts references to a resource that must be released after the last of them. The
// owner holds one from the beginning, until it calls Close. No reference can be acquired after
// that. It is safe for concurrent use.
type References struct {
	mu      sync.Mutex
	n       int // without the owner's
	closed  bool
	release func() error
}

// NewReferences returns a count for the resource that release releases.
func NewReferences(release func() error) *References { return &References{release: release} }

// Acquire acquires a reference, which must be released. It returns false after Close.
func (r *References) Acquire() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.n++
	return true
}

// Release releases a reference. If it was the last, the error is that of the resource's release.
func (r *References) Release() error {
	r.mu.Lock()
	r.n--
	last := r.closed && r.n == 0
	r.mu.Unlock()
	if last {
		return r.release()
	}
	return nil
}

// Close releases the owner's reference, as Release does. Closing again does nothing.
func (r *References) Close() error {
	r.mu.Lock()
	last := !r.closed && r.n == 0
	r.closed = true
	r.mu.Unlock()
	if last {
		return r.release()
	}
	return nil
}
