package storagedrivers

import (
	"context"
	"sync"
)

// NameLocks are locks by name, for what only one in this process may do at a time. A lock
// exists while somebody holds or wants it. The zero value is usable.
type NameLocks struct {
	mu    sync.Mutex
	locks map[string]*nameLock
}

type nameLock struct {
	taken chan struct{} // full while somebody has it
	users int           // who have it or wait for it
}

// Lock waits for the lock of name, up to the end of ctx, whose cause is the error. unlock
// must be called once.
func (n *NameLocks) Lock(ctx context.Context, name string) (unlock func(), err error) {
	l := n.join(name)
	select {
	case l.taken <- struct{}{}:
		return func() {
			<-l.taken
			n.leave(name, l)
		}, nil
	case <-ctx.Done():
		n.leave(name, l)
		return nil, context.Cause(ctx)
	}
}

func (n *NameLocks) join(name string) *nameLock {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.locks == nil {
		n.locks = map[string]*nameLock{}
	}
	l := n.locks[name]
	if l == nil {
		l = &nameLock{taken: make(chan struct{}, 1)}
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
