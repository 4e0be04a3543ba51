package locks

import "sync"

// References counts references to a resource that is released after the last of them. The owner
// holds the first one until it calls Close. After that no reference can be acquired. It is safe for
// concurrent use.
type References struct {
	mu      sync.Mutex
	n       int // without the owner's
	closed  bool
	release func() error
}

// NewReferences returns a count for a resource. release is called after the last reference is
// released.
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

// Release releases a reference. If it was the last, the error is that of releasing the resource.
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

// Close releases the owner's reference, like Release. Further calls do nothing.
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
