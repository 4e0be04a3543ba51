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

// pooled gives the value for a key, made by open if nobody has it yet, and the function
// that gives it back; the last to do so closes it.
func pooled[T any](sort, key string, open func() (T, error)) (value T, done func() error, err error) {
	// Settings hold secrets, so only their hash is kept as a key.
	hashed := sha256.Sum256([]byte(sort + "\x00" + key))
	entry, _, err := pool.LoadOrNew(hashed, func() (caddy.Destructor, error) {
		v, err := open()
		return poolEntry[T]{v}, err
	})
	if err != nil {
		return value, nil, err
	}
	return entry.(poolEntry[T]).value, func() error { // the sort is part of the key
		_, err := pool.Delete(hashed)
		return err
	}, nil
}

type poolEntry[T any] struct{ value T }

// Destruct closes the value if it can be closed.
func (e poolEntry[T]) Destruct() error {
	if closer, ok := any(e.value).(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
