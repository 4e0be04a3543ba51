package ingest

import (
	"context"
	"slices"
	"sync"
)

// names are those that are being replaced in this process. A reload changes nothing about
// them.
var names = nameLocks{held: map[string]*nameLock{}}

// lockNames keeps others from replacing the items of the request until unlock is called.
// Where nothing is replaced there is nothing to lock.
func (b *batch) lockNames(ctx context.Context, alias *Alias) (unlock func(), err error) {
	if !alias.Overwrite {
		return func() {}, nil
	}
	wanted := make([]string, len(b.items))
	for i, it := range b.items {
		wanted[i] = alias.Storage.Name() + "/" + alias.Key(it.filename)
	}
	slices.Sort(wanted) // in one order for all, so that nobody waits in a circle
	var unlocks []func()
	unlock = func() {
		for _, one := range unlocks {
			one()
		}
	}
	for _, name := range wanted {
		one, err := names.lock(ctx, name)
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, one)
	}
	return unlock, nil
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
