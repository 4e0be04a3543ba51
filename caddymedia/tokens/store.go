// Package tokens is the contract of what keeps tokens: a [Store] and its configuration, and the
// comparison of passwords. It issues no tokens and knows no accounts; the media service does, with
// a store of package memory, bolt or redis, or with one of your own. Begin with [Store], and let
// package tokentest test yours.
//
// A stolen store has no usable token: each is stored as its SHA-256. The package and tokentest are
// stable.
package tokens

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// ErrUnavailable means that the store could not answer: unreachable, too slow, locked, damaged,
// full, closed, or the context ended. It never means that a token is wrong.
var ErrUnavailable = errors.New("token store unavailable")

// Entry is what a [Store] keeps under a key.
type Entry struct {
	// Value is never changed; nil for a missing entry.
	Value []byte
	// Expires is the first moment at which the entry is missing; zero for never. It may be rounded up
	// to a millisecond.
	Expires time.Time
}

// Volatile begins the keys of entries that may be lost when the store is closed or its process
// ends, if no other process shares the store.
const Volatile = "~"

// A Store keeps entries under keys: up to 200 bytes of printable ASCII. Several processes may share
// one.
//
// All methods must be safe for concurrent use, except that calls after Close must fail with
// ErrUnavailable. A method whose context has ended before must fail. Its error must satisfy
// errors.Is with both ErrUnavailable and the context's error; so must each error with
// ErrUnavailable that is not one of change. Errors may carry detail for the log, but must not carry
// a password. A store that was unreachable must recover by itself.
type Store interface {
	// Get returns the entry of a key; the zero Entry if it is missing.
	Get(ctx context.Context, key string) (Entry, error)
	// Update replaces the entry of a key by change(old), and adds it to an index, a text like a key,
	// unless that is empty. No other Update of the key, in any process, comes between old and the new
	// entry. When it returns nil the entry is as durable as the store promises. A zero Entry, or one
	// that has expired, removes the old one. All indexes given for a key must be the same.
	//
	// If change returns an error, nothing changes, and the error is that one. change may be called
	// several times, also for an Entry that an Update which failed before has stored, but not at the
	// same time. After another error the entry may be stored, and change may still be called.
	Update(ctx context.Context, key, index string, change func(old Entry) (Entry, error)) error
	// DeleteIndex removes the entries of an index, and no others. It returns how many there were.
	//
	// When it returns nil, every entry whose Update returned before the call must be gone, for all
	// processes and as durably as it was stored. One that is stored meanwhile may stay. Concurrent
	// calls must not be blocked for long. The duration depends on the number of entries, so it must
	// end early when the context does. With an error the number is zero, any of the entries may be
	// gone, and it can be called again.
	DeleteIndex(ctx context.Context, index string) (int, error)
	// Check checks that the store is reachable and accepts writes.
	Check(ctx context.Context) error
	// Close releases all resources. Later calls must fail with ErrUnavailable; a second Close must
	// be no error.
	Close() error
}

// StoreConfig is the configuration of a store: a pointer to a struct of options. No method uses the
// network or locks a file.
type StoreConfig interface {
	// Complete checks the options, sets the defaults and reads the files that the options name.
	// folder is the one for files of a store that has no other. A second call is no error.
	Complete(folder string) error
	// NewStore returns the store, which connects at its first use. The configuration must be
	// complete.
	NewStore(log *slog.Logger) (Store, error)
}

// A Comparer reports whether hashed is a hash of plaintext. An error means that it cannot, for
// example because hashed is malformed. Caddy's http.authentication.hashes modules are Comparers.
type Comparer interface {
	Compare(hashed, plaintext []byte) (bool, error)
}

// CompareFunc is a function that implements Comparer.
type CompareFunc func(hashed, plaintext []byte) (bool, error)

// Compare calls f.
func (f CompareFunc) Compare(hashed, plaintext []byte) (bool, error) { return f(hashed, plaintext) }
