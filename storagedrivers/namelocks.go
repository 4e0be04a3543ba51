package storagedrivers

import (
	"context"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"
)

// NameLocks are locks by name, for what only one in this process may do at a time, or many
// who do not mind each other. A lock exists while somebody holds or wants it. The zero value
// is usable.
type NameLocks struct {
	mu    sync.Mutex
	locks map[string]*nameLock
}

type nameLock struct {
	taken *semaphore.Weighted // in the order of asking, so that nobody waits for ever
	users int                 // who have it or wait for it
}

// everybody is what a lock weighs that is nobody else's at the same time.
const everybody = math.MaxInt64

// Lock waits for the lock of name, up to the end of ctx, whose cause is the error. unlock
// must be called once.
func (n *NameLocks) Lock(ctx context.Context, name string) (unlock func(), err error) {
	return n.take(ctx, name, everybody)
}

// Share is [NameLocks.Lock] for those who may have the lock together with each other, but not
// with anybody who has it by Lock.
func (n *NameLocks) Share(ctx context.Context, name string) (unlock func(), err error) {
	return n.take(ctx, name, 1)
}

func (n *NameLocks) take(ctx context.Context, name string, weight int64) (unlock func(), err error) {
	l := n.join(name)
	if l.taken.Acquire(ctx, weight) != nil {
		n.leave(name, l)
		return nil, context.Cause(ctx)
	}
	return func() {
		l.taken.Release(weight)
		n.leave(name, l)
	}, nil
}

func (n *NameLocks) join(name string) *nameLock {
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

func (n *NameLocks) leave(name string, l *nameLock) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(n.locks, name)
	}
}
