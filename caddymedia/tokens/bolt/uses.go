package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"

	"go.etcd.io/bbolt"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// The bucket of uses has a key for each ticket that was used, its ID, with the number of reserved
// items. Keys that begin with the ID follow it: one for each use, with its name and its items, and one
// for the number of refused items.

// Take implements tokens.Store. It returns when the use is synced to the disk.
func (s *Store) Take(ctx context.Context, id tokens.ID, use string, n, limit int) error {
	var refused error
	err := s.write(ctx, func(tx *bbolt.Tx) error {
		var err error
		refused, err = s.take(tx, id[:], use, n, limit)
		return err
	})
	if err != nil {
		return err // the commit may still run, so refused must not be read
	}
	return refused
}

// take reserves n items. An err would undo the other writes of the commit, so refused is separate.
func (s *Store) take(tx *bbolt.Tx, id []byte, use string, n, limit int) (refused, err error) {
	if !s.hasTicket(tx, id) {
		return tokens.ErrUnknown, nil
	}
	uses, key := tx.Bucket(bucketUses), useKey(id, use)
	if uses.Get(key) != nil {
		return nil, nil
	}
	used := usedOf(tx, id)
	if used+n > limit {
		return tokens.ErrUsedUp, nil
	}
	if err := uses.Put(key, encode(n)); err != nil {
		return nil, err
	}
	return nil, uses.Put(id, encode(used+n))
}

// hasTicket reports whether id is that of a ticket that has not expired.
func (s *Store) hasTicket(tx *bbolt.Tx, id []byte) bool {
	var rec tokens.Record
	value := tx.Bucket(bucketRecords).Get(id)
	return value != nil && json.Unmarshal(value, &rec) == nil && rec.Ticket != nil && s.now().Before(rec.Expires)
}

// GiveBack implements tokens.Store.
func (s *Store) GiveBack(ctx context.Context, id tokens.ID, use string) error {
	return s.write(ctx, func(tx *bbolt.Tx) error {
		uses, key := tx.Bucket(bucketUses), useKey(id[:], use)
		value := uses.Get(key)
		if value == nil {
			return nil
		}
		left := usedOf(tx, id[:]) - decode(value)
		if err := uses.Delete(key); err != nil {
			return err
		}
		return uses.Put(id[:], encode(left))
	})
}

// Refuse implements tokens.Store.
func (s *Store) Refuse(ctx context.Context, id tokens.ID, n int) error {
	return s.write(ctx, func(tx *bbolt.Tx) error {
		if !s.hasTicket(tx, id[:]) {
			return nil
		}
		return tx.Bucket(bucketUses).Put(refusedKey(id[:]), encode(refusedOf(tx, id[:])+n))
	})
}

// refusedOf returns how many items of a ticket were refused.
func refusedOf(tx *bbolt.Tx, id []byte) int { return decode(tx.Bucket(bucketUses).Get(refusedKey(id))) }

func refusedKey(id []byte) []byte { return append(bytes.Clone(id), '!') }

// usedOf returns how many items of a ticket are reserved.
func usedOf(tx *bbolt.Tx, id []byte) int { return decode(tx.Bucket(bucketUses).Get(id)) }

// removeUses removes all uses of a ticket.
func removeUses(tx *bbolt.Tx, id []byte) error {
	uses := tx.Bucket(bucketUses)
	var keys [][]byte // collected first: a cursor may skip keys when deleting under it
	c := uses.Cursor()
	for key, _ := c.Seek(id); bytes.HasPrefix(key, id); key, _ = c.Next() {
		keys = append(keys, bytes.Clone(key))
	}
	for _, key := range keys {
		if err := uses.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

func useKey(id []byte, use string) []byte {
	// The separator keeps an empty name apart from the key of the ticket.
	return append(append(bytes.Clone(id), ':'), use...)
}

func encode(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// decode is the inverse of encode; 0 for no value.
func decode(value []byte) int {
	if len(value) != 8 {
		return 0
	}
	return int(binary.BigEndian.Uint64(value))
}
