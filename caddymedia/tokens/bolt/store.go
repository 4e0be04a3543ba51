// Package bolt keeps tokens in a file: they survive a restart. It is not for several processes: the
// file belongs to one at a time. Begin with [New].
package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/singleflight"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/caddymedia/tokens/memory"
)

const (
	// sweepPerWrite is the number of expired entries removed with each write. More than one lets
	// sweeping catch up; few, because every removed entry is a page to write.
	sweepPerWrite = 4
	// deletePerWrite is the number of entries of an index removed at once. Other writes wait for it.
	deletePerWrite = 1000
)

// The file has three buckets: entries by key, the times at which they expire, and their indexes.
// The last two are keys only: the time as in an entry, or the index and a zero byte, and then the
// key.
var (
	bucketEntries  = []byte("entries")
	bucketExpiries = []byte("expiries")
	bucketIndexes  = []byte("indexes")
)

var errClosed = errors.New("closed")

// Store is a tokens.Store in a bbolt file, opened at its first use.
type Store struct {
	path     string
	log      *slog.Logger
	now      func() time.Time
	volatile *memory.Store // the volatile entries; they need no write

	opening singleflight.Group

	mu         sync.Mutex
	file       *file // nil when not open
	closed     bool
	damage     error // why the file is not opened again until retryAt
	retryAt    time.Time
	pending    []*write
	committing bool
}

// New returns a Store for the file at path without opening it. Without a logger it is silent;
// without a clock it uses time.Now.
func New(path string, log *slog.Logger, now func() time.Time) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if now == nil {
		now = time.Now //nolint:forbidigo // the default clock
	}
	return &Store{path: path, log: log, now: now, volatile: memory.New(now)}
}

// Get implements tokens.Store.
func (s *Store) Get(ctx context.Context, key string) (tokens.Entry, error) {
	if isVolatile(key) {
		return s.volatile.Get(ctx, key)
	}
	f, err := s.open(ctx)
	if err != nil {
		return tokens.Entry{}, err
	}
	var e tokens.Entry
	err = guarded(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			found, err := load(tx, []byte(key))
			e = s.visible(found)
			return err
		})
	})
	if err != nil {
		return tokens.Entry{}, s.failed(f, err)
	}
	return e, nil
}

func isVolatile(key string) bool { return strings.HasPrefix(key, tokens.Volatile) }

// visible returns what callers see of an entry: nothing if it has expired. The value is a copy,
// because that of the entry ends with its transaction.
func (s *Store) visible(e entry) tokens.Entry {
	if s.isExpired(e.Entry) {
		return tokens.Entry{}
	}
	return tokens.Entry{Value: bytes.Clone(e.Value), Expires: e.Expires}
}

func (s *Store) isExpired(e tokens.Entry) bool {
	return !e.Expires.IsZero() && !s.now().Before(e.Expires)
}

// Update implements tokens.Store. It returns when the entry is synced to the disk.
func (s *Store) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	if isVolatile(key) {
		return s.volatile.Update(ctx, key, index, change)
	}
	var refused error // separate, because an error of the transaction undoes the other writes of its commit
	err := s.write(ctx, func(tx *bbolt.Tx) error {
		old, err := load(tx, []byte(key))
		if err != nil {
			refused = s.unavailable(err)
			return nil
		}
		var changed tokens.Entry
		if changed, refused = change(s.visible(old)); refused != nil {
			return nil //nolint:nilerr // refused is returned after the commit
		}
		if changed.Value == nil || s.isExpired(changed) {
			return remove(tx, []byte(key), old)
		}
		return put(tx, []byte(key), old, entry{changed, cmp.Or(index, old.index)})
	})
	if err != nil {
		return err // the commit may still run, so refused must not be read
	}
	return refused
}

// DeleteIndex implements tokens.Store. It returns when the removal is synced to the disk.
func (s *Store) DeleteIndex(ctx context.Context, index string) (int, error) {
	total, err := s.volatile.DeleteIndex(ctx, index)
	for err == nil {
		var found, valid int
		err = s.write(ctx, func(tx *bbolt.Tx) error {
			removed, err := removeRange(tx, bucketIndexes, indexKey(index, nil), []byte(index+"\x01"), deletePerWrite)
			found = len(removed)
			for _, e := range removed {
				if !s.isExpired(e.Entry) {
					valid++
				}
			}
			return err
		})
		if err != nil {
			break // the commit may still run, so its numbers must not be read
		}
		total += valid
		if found < deletePerWrite {
			return total, nil
		}
	}
	return 0, err
}

// Check implements tokens.Store. The transaction sweeps, so it checks writing as well.
func (s *Store) Check(ctx context.Context) error {
	return s.write(ctx, func(*bbolt.Tx) error { return nil })
}

// Close implements tokens.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	f := s.file
	s.file, s.closed = nil, true
	s.mu.Unlock()
	_ = s.volatile.Close() // it cannot fail
	if f == nil {
		return nil
	}
	if err := guarded(f.db.Close); err != nil {
		return fmt.Errorf("closing the token file %s: %w", s.path, err)
	}
	return nil
}

// Interface guards
var _ tokens.Store = (*Store)(nil)
