package mediaapp

import (
	"crypto/sha256"
	"io"

	"github.com/caddyserver/caddy/v2"
)

// pool keeps drivers, token stores and login counters with unchanged settings across a reload. So
// connections stay open, and a reload does not reset the limit of failed logins.
var pool = caddy.NewUsagePool()

// pooled returns the value for a key, and opens it if there is none yet. done returns the value to
// the pool; the last call closes it. done is also added to a.opened.
func pooled[T any](a *App, sort, key string, open func() (T, error)) (value T, done func() error, err error) {
	// Settings contain secrets, so the key is a hash.
	hashed := sha256.Sum256([]byte(sort + "\x00" + key))
	entry, _, err := pool.LoadOrNew(hashed, func() (caddy.Destructor, error) {
		v, err := open()
		return poolEntry[T]{v}, err
	})
	if err != nil {
		return value, nil, err
	}
	done = func() error {
		_, err := pool.Delete(hashed)
		return err
	}
	a.opened = append(a.opened, done)
	return entry.(poolEntry[T]).value, done, nil // the sort is part of the key
}

type poolEntry[T any] struct{ value T }

// Destruct closes the value if it can be closed.
func (e poolEntry[T]) Destruct() error {
	if closer, ok := any(e.value).(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
