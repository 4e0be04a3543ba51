package ingest

import (
	"context"
	"sync"
)

// names are the pictures that are being replaced in this process. A reload changes
// nothing about them.
var names = nameLocks{held: map[string]*nameLock{}}

// lock keeps others from replacing the picture until unlock is called. Where nothing is
// replaced there is nothing to lock.
func (it *item) lock(ctx context.Context, alias *Alias) (unlock func(), err error) {
	if !alias.Overwrite || !it.isRaster() {
		return func() {}, nil
	}
	return names.lock(ctx, alias.Storage.Name()+"/"+alias.Key(it.filename))
}

// nameLocks are locks by name.
type nameLocks struct {
	mu   sync.Mutex
	held map[string]*nameLock
}

type nameLock struct {
	taken chan struct{} // full while somebody has it
	users int           // who have it or wait for it
}

func (n *nameLocks) lock(ctx context.Context, name string) (unlock func(), err error) {
	n.mu.Lock()
	l := n.held[name]
	if l == nil {
		l = &nameLock{taken: make(chan struct{}, 1)}
		n.held[name] = l
	}
	l.users++
	n.mu.Unlock()
	select {
	case l.taken <- struct{}{}:
		return func() {
			<-l.taken
			n.forget(name, l)
		}, nil
	case <-ctx.Done():
		n.forget(name, l)
		return nil, context.Cause(ctx)
	}
}

func (n *nameLocks) forget(name string, l *nameLock) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(n.held, name)
	}
}
