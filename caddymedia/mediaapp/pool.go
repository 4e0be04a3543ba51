package mediaapp

import (
	"crypto/sha256"
	"io"

	"github.com/caddyserver/caddy/v2"
)

// pool keeps drivers, token stores and login counters that have the same settings in the
// configuration before and after a reload: connections stay open, and nobody gets new
// attempts at a password by a reload.
var pool = caddy.NewUsagePool()

// pooled returns the value for a key, opened if there is none yet, and the function that returns it to
// the pool; the last of these closes it. It is also in a.opened.
func pooled[T any](a *App, sort, key string, open func() (T, error)) (value T, done func() error, err error) {
	// Settings hold secrets, so only their hash is kept as a key.
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
