// Package locks has locks by name, and counts references to what is released after its last use.
// The locks are those of one process; what several processes may do at once is for the storage to
// decide. Begin with [Names]. The package is stable.
package locks

import (
	"context"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Names are locks by name within this process, exclusive or shared. A lock exists while it is
// held or waited for. The zero value is usable.
type Names struct {
	mu    sync.Mutex
	locks map[string]*nameLock
}

type nameLock struct {
	taken *semaphore.Weighted // first come, first served, so that no one starves
	users int                 // that hold it or wait for it
}

// everybody is the weight of an exclusive lock.
const everybody = math.MaxInt64

// Lock waits for the exclusive lock of name until ctx ends; the error is then its cause. unlock
// must be called once.
func (n *Names) Lock(ctx context.Context, name string) (unlock func(), err error) {
	return n.take(ctx, name, everybody)
}

// Share waits for the shared lock of name. It excludes [Names.Lock], but not other shared
// locks.
func (n *Names) Share(ctx context.Context, name string) (unlock func(), err error) {
	return n.take(ctx, name, 1)
}

func (n *Names) take(ctx context.Context, name string, weight int64) (unlock func(), err error) {
	l := n.join(name)
	if l.taken.Acquire(ctx, weight) != nil {
		n.leave(name, l)
		return nil, context.Cause(ctx)
	}
	return n.unlock(name, l, weight), nil
}

func (n *Names) unlock(name string, l *nameLock, weight int64) func() {
	return func() {
		l.taken.Release(weight)
		n.leave(name, l)
	}
}

func (n *Names) join(name string) *nameLock {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.locks == nil {
		n.locks = map[string]*nameLock{}
	}
	l := n.locks[name]
	if l == nil {
		l = &nameLock{taken: semaphore.NewWeighted(everybody)}
		n.locks[name] = l
	}
	l.users++
	return l
}

func (n *Names) leave(name string, l *nameLock) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(n.locks, name)
	}
}

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
