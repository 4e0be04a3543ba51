package s3

import (
	"context"
	"sync"
)

// locks are held by names. The zero value is usable.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when it is let go
}

// lock waits until name is free and holds it until release is called.
func (l *locks) lock(ctx context.Context, name string) (release func(), err error) {
	for {
		freed := l.take(name)
		if freed == nil {
			return func() { l.free(name) }, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take holds name, or tells when to try again.
func (l *locks) take(name string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if freed, taken := l.held[name]; taken {
		return freed
	}
	if l.held == nil {
		l.held = map[string]chan struct{}{}
	}
	l.held[name] = make(chan struct{})
	return nil
}

func (l *locks) free(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.held[name])
	delete(l.held, name)
}
