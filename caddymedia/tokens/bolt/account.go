package bolt

import (
	"bytes"
	"context"
	"encoding/json"

	"go.etcd.io/bbolt"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// DeleteAccount implements tokens.Store. It collects the records while others are read and written,
// and then removes them in one commit.
func (s *Store) DeleteAccount(ctx context.Context, account string) (int, error) {
	ids, err := s.idsOf(ctx, account)
	if err != nil {
		return 0, err
	}
	deleted := 0
	err = s.write(ctx, func(tx *bbolt.Tx) error {
		if err := s.forgetRequests(tx, account); err != nil {
			return err
		}
		records, now := tx.Bucket(bucketRecords), s.now()
		for _, id := range ids {
			rec, ok := recordOf(records.Get(id), account)
			if !ok {
				continue // gone meanwhile, or replaced
			}
			if err := remove(tx, id); err != nil {
				return err
			}
			if now.Before(rec.Expires) {
				deleted++
			}
		}
		return nil
	})
	if err != nil {
		return 0, err // the commit may still run, so deleted must not be read
	}
	return deleted, nil
}

// idsOf returns the IDs of all records of an account.
func (s *Store) idsOf(ctx context.Context, account string) ([][]byte, error) {
	f, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	var ids [][]byte
	err = guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketRecords).ForEach(func(id, value []byte) error {
				if _, ok := recordOf(value, account); ok {
					ids = append(ids, bytes.Clone(id))
				}
				return ctx.Err()
			})
		})
	})
	if err != nil {
		return nil, s.failed(f, err)
	}
	return ids, nil
}

// recordOf decodes a record and reports whether it belongs to the account. An invalid record
// belongs to none: no token matches it.
func recordOf(value []byte, account string) (tokens.Record, bool) {
	var rec tokens.Record
	if value == nil || json.Unmarshal(value, &rec) != nil {
		return rec, false
	}
	return rec, rec.Account == account
}
