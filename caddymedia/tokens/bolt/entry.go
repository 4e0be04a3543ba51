package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// entry is an entry with the index that it is in. In the file it is the time at which it expires,
// the length of the index, the index, and the value.
type entry struct {
	tokens.Entry
	index string
}

const (
	// timeSize is the size of a time: milliseconds since 1970, or 0 for never.
	timeSize = 8
	// headerSize is the size of an entry before its index.
	headerSize = timeSize + 2
)

var errMalformed = errors.New("an entry is malformed")

// load returns an entry, whose value ends with the transaction; the zero entry if it is missing.
func load(tx *bbolt.Tx, key []byte) (entry, error) {
	b := tx.Bucket(bucketEntries).Get(key)
	if b == nil {
		return entry{}, nil
	}
	if len(b) < headerSize {
		return entry{}, errMalformed
	}
	expires, length, b := binary.BigEndian.Uint64(b), int(binary.BigEndian.Uint16(b[timeSize:])), b[headerSize:]
	if len(b) < length {
		return entry{}, errMalformed
	}
	e := entry{index: string(b[:length])}
	e.Value = b[length:]
	if expires > 0 {
		e.Expires = time.UnixMilli(int64(expires))
	}
	return e, nil
}

// put stores an entry in place of another one, the zero entry if there is none.
func put(tx *bbolt.Tx, key []byte, old, e entry) error {
	expires := timeOf(e.Expires)
	b := binary.BigEndian.AppendUint16(slices.Clone(expires), uint16(len(e.index)))
	b = append(append(b, e.index...), e.Value...)
	err := tx.Bucket(bucketEntries).Put(key, b)
	if !bytes.Equal(expires, timeOf(old.Expires)) { // the other buckets have their keys already
		err = errors.Join(err, tx.Bucket(bucketExpiries).Delete(expiryKey(old.Expires, key)))
		if !e.Expires.IsZero() {
			err = errors.Join(err, tx.Bucket(bucketExpiries).Put(expiryKey(e.Expires, key), nil))
		}
	}
	if e.index != old.index {
		err = errors.Join(err, tx.Bucket(bucketIndexes).Delete(indexKey(old.index, key)), tx.Bucket(bucketIndexes).Put(indexKey(e.index, key), nil))
	}
	return err
}

// remove removes an entry with its keys in the other buckets, which it need not have.
func remove(tx *bbolt.Tx, key []byte, e entry) error {
	return errors.Join(
		tx.Bucket(bucketEntries).Delete(key),
		tx.Bucket(bucketExpiries).Delete(expiryKey(e.Expires, key)),
		tx.Bucket(bucketIndexes).Delete(indexKey(e.index, key)),
	)
}

// removeRange removes the entries that a bucket names from start up to end, which is excluded, at
// most n. The key of an entry follows a text as long as start. The values of the entries end with
// the transaction.
func removeRange(tx *bbolt.Tx, bucket, start, end []byte, n int) (removed []entry, err error) {
	b := tx.Bucket(bucket)
	c := b.Cursor()
	var found [][]byte // collected first: a cursor may skip keys when deleting under it
	for key, _ := c.Seek(start); key != nil && len(found) < n && bytes.Compare(key, end) < 0; key, _ = c.Next() {
		found = append(found, key)
	}
	for _, whole := range found {
		key := whole[len(start):]
		e, _ := load(tx, key) // a malformed one stays in the other buckets until its turn there
		if err := errors.Join(remove(tx, key, e), b.Delete(whole)); err != nil {
			return nil, err
		}
		removed = append(removed, e)
	}
	return removed, nil
}

// timeOf returns a time as in the file, rounded up to a millisecond.
func timeOf(t time.Time) []byte {
	b := make([]byte, timeSize)
	if !t.IsZero() {
		binary.BigEndian.PutUint64(b, uint64(t.Add(time.Millisecond-1).UnixMilli()))
	}
	return b
}

func expiryKey(t time.Time, key []byte) []byte { return append(timeOf(t), key...) }

func indexKey(index string, key []byte) []byte { return append([]byte(index+"\x00"), key...) }

// sweep removes at most n entries that have expired.
func sweep(tx *bbolt.Tx, now time.Time, n int) error {
	_, err := removeRange(tx, bucketExpiries, timeOf(time.Time{}), timeOf(now.Add(1)), n)
	return err
}
