// Package bolt keeps tokens in a file: they survive a restart. The file belongs to one process at a
// time.
package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/singleflight"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// sweepPerSave is the number of expired records removed with each new one. More than one lets
// sweeping catch up; few, because every removed record is a page to write.
const sweepPerSave = 4

// The file has six buckets: records by ID, the times at which they and requests may be swept, the uses
// of tickets, secrets by name, and two of requests. The times are keys only: milliseconds since 1970,
// then the ID.
var (
	bucketRecords  = []byte("records")
	bucketExpiries = []byte("expiries")
	bucketUses     = []byte("uses")
	bucketSecrets  = []byte("secrets")
	bucketRequests = []byte("requests")
	bucketOldest   = []byte("oldest requests")
)

var errClosed = errors.New("closed")

// Store is a tokens.Store in a bbolt file, opened at its first use.
type Store struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	opening singleflight.Group

	mu         sync.Mutex
	file       *file // nil when not open
	closed     bool
	damage     error // why the file is not opened again until retryAt
	retryAt    time.Time
	pending    []*write
	committing bool
	leases     map[tokens.ID]lease // of requests; no other process has any
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
	return &Store{path: path, log: log, now: now, leases: map[tokens.ID]lease{}}
}

// Save implements tokens.Store. It returns when the record is synced to the disk.
func (s *Store) Save(ctx context.Context, id tokens.ID, rec tokens.Record) error {
	value, err := json.Marshal(rec)
	if err != nil {
		return s.unavailable(err)
	}
	return s.write(ctx, func(tx *bbolt.Tx) error {
		if err := remove(tx, id[:]); err != nil {
			return err
		}
		if err := tx.Bucket(bucketRecords).Put(id[:], value); err != nil {
			return err
		}
		return tx.Bucket(bucketExpiries).Put(expiryKey(rec.Expires, id), nil)
	})
}

// Load implements tokens.Store.
func (s *Store) Load(ctx context.Context, id tokens.ID) (tokens.Record, error) {
	f, err := s.open(ctx)
	if err != nil {
		return tokens.Record{}, err
	}
	var rec tokens.Record
	err = guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			value := tx.Bucket(bucketRecords).Get(id[:])
			if value == nil {
				return tokens.ErrUnknown
			}
			rec.Used, rec.Refused = usedOf(tx, id[:]), refusedOf(tx, id[:])
			return json.Unmarshal(value, &rec)
		})
	})
	if err == nil && !s.now().Before(rec.Expires) {
		err = tokens.ErrUnknown
	}
	if err != nil {
		return tokens.Record{}, s.failed(f, err)
	}
	return rec, nil
}

// Delete implements tokens.Store.
func (s *Store) Delete(ctx context.Context, id tokens.ID) error {
	return s.write(ctx, func(tx *bbolt.Tx) error {
		return remove(tx, id[:])
	})
}

// remove removes a record and its uses.
func remove(tx *bbolt.Tx, id []byte) error {
	return errors.Join(tx.Bucket(bucketRecords).Delete(id), removeUses(tx, id))
}

// Secret implements tokens.Store. It returns when the secret is synced to the disk. It reads first,
// because a full disk still reads.
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	f, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	var secret []byte
	err = guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			secret = bytes.Clone(tx.Bucket(bucketSecrets).Get([]byte(name)))
			return nil
		})
	})
	if err != nil {
		return nil, s.failed(f, err)
	}
	if secret != nil {
		return secret, nil
	}
	err = s.write(ctx, func(tx *bbolt.Tx) error {
		secrets := tx.Bucket(bucketSecrets)
		if secret = bytes.Clone(secrets.Get([]byte(name))); secret != nil {
			return nil
		}
		secret = bytes.Clone(fresh)
		return secrets.Put([]byte(name), secret)
	})
	if err != nil {
		return nil, err // the commit may still run, so secret must not be read
	}
	return secret, nil
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
	if f == nil {
		return nil
	}
	if err := guard(f.db.Close); err != nil {
		return fmt.Errorf("closing the token file %s: %w", s.path, err)
	}
	return nil
}

// sweep removes at most n expired records. If a record was deleted, or saved again with a later
// expiry, only its entry is removed.
func sweep(tx *bbolt.Tx, now time.Time, n int) error {
	records, expiries := tx.Bucket(bucketRecords), tx.Bucket(bucketExpiries)
	end := expiryKey(now, tokens.ID{})
	var due [][]byte // collected first: a cursor may skip keys when deleting under it
	for c, key := first(expiries); key != nil && len(due) < n && string(key) < string(end); key, _ = c.Next() {
		due = append(due, key)
	}
	for _, key := range due {
		id := key[8:]
		var rec tokens.Record
		if value := records.Get(id); value != nil && json.Unmarshal(value, &rec) == nil && !now.Before(rec.Expires) {
			if err := remove(tx, id); err != nil {
				return err
			}
		}
		if err := sweepRequest(tx, now, tokens.ID(id)); err != nil {
			return err
		}
		if err := expiries.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

func first(b *bbolt.Bucket) (*bbolt.Cursor, []byte) {
	c := b.Cursor()
	key, _ := c.First()
	return c, key
}

func expiryKey(at time.Time, id tokens.ID) []byte {
	key := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(id)), uint64(max(at.UnixMilli(), 0)))
	return append(key, id[:]...)
}

// Interface guards
var _ tokens.Store = (*Store)(nil)
