package bolt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"go.etcd.io/bbolt"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// The bucket of requests has them by ID. The bucket of the oldest has a key for each, without a value:
// the SHA-256 of its account, milliseconds since 1970, then the ID. The hash alone has their number.
// Leases are in memory: the file belongs to one process, and those of a dead one have ended.

// request is a repeatable request.
type request struct {
	Account     string              `json:"account"`
	Fingerprint string              `json:"fingerprint"`
	Began       time.Time           `json:"began"`
	State       tokens.RequestState `json:"state"`
}

// lease is the running attempt at a request.
type lease struct {
	holder string
	until  time.Time
}

// BeginRequest implements tokens.Store. It returns when a new request is synced to the disk.
func (s *Store) BeginRequest(ctx context.Context, r tokens.Request, term time.Duration, most int) (tokens.RequestState, error) {
	var (
		state   tokens.RequestState
		refused error
	)
	err := s.write(ctx, func(tx *bbolt.Tx) error {
		now := s.now().Truncate(time.Millisecond) // as in the keys
		known, err := requestOf(tx, r.ID)
		if err != nil {
			return err
		}
		if known != nil && !now.Before(known.Began.Add(tokens.RequestLifetime)) {
			if err := forget(tx, r.ID, known); err != nil {
				return err
			}
			known = nil
		}
		switch {
		case known == nil:
			state, refused = tokens.RequestState{}, nil
			s.grant(r, term)
			return addRequest(tx, r, now, most)
		case known.Fingerprint != r.Fingerprint:
			refused = tokens.ErrOtherRequest
		case known.State.Answer == nil && !s.grant(r, term):
			refused = tokens.ErrRunning
		default:
			state, refused = known.State, nil
		}
		return nil
	})
	if err != nil {
		s.release(r)
		return tokens.RequestState{}, err // the commit may still run, so state must not be read
	}
	return state, refused
}

// grant sets the lease of a request, and returns false if another holder has it. It removes
// leases that have ended.
func (s *Store) grant(r tokens.Request, term time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.leases, func(_ tokens.ID, l lease) bool { return !now.Before(l.until) })
	if l, taken := s.leases[r.ID]; taken && l.holder != r.Holder {
		return false
	}
	s.leases[r.ID] = lease{r.Holder, now.Add(term)}
	return true
}

// holds reports whether r.Holder has the lease.
func (s *Store) holds(r tokens.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[r.ID]
	return l.holder == r.Holder && s.now().Before(l.until)
}

// release ends the lease of r.Holder.
func (s *Store) release(r tokens.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[r.ID].holder == r.Holder {
		delete(s.leases, r.ID)
	}
}

// addRequest stores a new request, and forgets the oldest of its account if there are too many.
func addRequest(tx *bbolt.Tx, r tokens.Request, now time.Time, most int) error {
	known := &request{Account: r.Account, Fingerprint: r.Fingerprint, Began: now}
	oldest, account := tx.Bucket(bucketOldest), sha256.Sum256([]byte(r.Account))
	number := decode(oldest.Get(account[:])) + 1
	err := errors.Join(
		putRequest(tx, r.ID, known),
		tx.Bucket(bucketExpiries).Put(expiryKey(now.Add(tokens.RequestLifetime), r.ID), nil),
		oldest.Put(oldestKey(known, r.ID), nil),
		oldest.Put(account[:], encode(number)),
	)
	if err != nil || number <= most {
		return err
	}
	c := oldest.Cursor()
	c.Seek(account[:])
	key, _ := c.Next() // after the number
	id := tokens.ID(key[len(account)+8:])
	victim, err := requestOf(tx, id)
	if err != nil || victim == nil {
		return err
	}
	return forget(tx, id, victim)
}

func oldestKey(known *request, id tokens.ID) []byte {
	account := sha256.Sum256([]byte(known.Account))
	key := binary.BigEndian.AppendUint64(account[:], uint64(max(known.Began.UnixMilli(), 0)))
	return append(key, id[:]...)
}

// requestOf returns a request; nil if there is none.
func requestOf(tx *bbolt.Tx, id tokens.ID) (*request, error) {
	value := tx.Bucket(bucketRequests).Get(id[:])
	if value == nil {
		return nil, nil //nolint:nilnil // nil means none
	}
	known := new(request)
	if err := json.Unmarshal(value, known); err != nil {
		return nil, err
	}
	return known, nil
}

func putRequest(tx *bbolt.Tx, id tokens.ID, known *request) error {
	value, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return tx.Bucket(bucketRequests).Put(id[:], value)
}

// forget removes a request.
func forget(tx *bbolt.Tx, id tokens.ID, known *request) error {
	oldest, account := tx.Bucket(bucketOldest), sha256.Sum256([]byte(known.Account))
	err := errors.Join(
		tx.Bucket(bucketRequests).Delete(id[:]),
		tx.Bucket(bucketExpiries).Delete(expiryKey(known.Began.Add(tokens.RequestLifetime), id)),
		oldest.Delete(oldestKey(known, id)),
	)
	if left := decode(oldest.Get(account[:])) - 1; left > 0 {
		return errors.Join(err, oldest.Put(account[:], encode(left)))
	}
	return errors.Join(err, oldest.Delete(account[:]))
}

// forgetRequests removes the requests of an account.
func forgetRequests(tx *bbolt.Tx, account string) error {
	oldest, prefix := tx.Bucket(bucketOldest), sha256.Sum256([]byte(account))
	var keys [][]byte // collected first: a cursor may skip keys when deleting under it
	c := oldest.Cursor()
	for key, _ := c.Seek(prefix[:]); bytes.HasPrefix(key, prefix[:]); key, _ = c.Next() {
		keys = append(keys, bytes.Clone(key))
	}
	for _, key := range keys {
		err := oldest.Delete(key)
		if len(key) > len(prefix) {
			id, began := tokens.ID(key[len(prefix)+8:]), time.UnixMilli(int64(binary.BigEndian.Uint64(key[len(prefix):])))
			err = errors.Join(err,
				tx.Bucket(bucketRequests).Delete(id[:]),
				tx.Bucket(bucketExpiries).Delete(expiryKey(began.Add(tokens.RequestLifetime), id)),
			)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepRequest removes a request that has expired.
func sweepRequest(tx *bbolt.Tx, now time.Time, id tokens.ID) error {
	known, err := requestOf(tx, id)
	if err != nil || known == nil || now.Before(known.Began.Add(tokens.RequestLifetime)) {
		return err
	}
	return forget(tx, id, known)
}

// ExtendRequest implements tokens.Store. It writes nothing, because leases are in memory.
func (s *Store) ExtendRequest(ctx context.Context, r tokens.Request, term time.Duration) error {
	f, err := s.open(ctx)
	if err != nil {
		return err
	}
	err = guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			known, err := requestOf(tx, r.ID)
			if err == nil && (!s.runs(r, known) || !s.grant(r, term)) {
				err = tokens.ErrUnknown
			}
			return err
		})
	})
	if err != nil {
		return s.failed(f, err)
	}
	return nil
}

// runs reports whether r is the running attempt at a request; nil for none.
func (s *Store) runs(r tokens.Request, known *request) bool {
	return known != nil && s.holds(r) && s.now().Before(known.Began.Add(tokens.RequestLifetime))
}

// ClaimRequest implements tokens.Store. It returns when the claim is synced to the disk.
func (s *Store) ClaimRequest(ctx context.Context, r tokens.Request, name string, value []byte) error {
	return s.change(ctx, r, func(tx *bbolt.Tx, known *request) error {
		if known.State.Claims == nil {
			known.State.Claims = map[string][]byte{}
		}
		known.State.Claims[name] = value
		return putRequest(tx, r.ID, known)
	})
}

// EndRequest implements tokens.Store. It returns when the answer is synced to the disk.
func (s *Store) EndRequest(ctx context.Context, r tokens.Request, answer []byte) error {
	defer s.release(r)
	if answer == nil {
		return s.change(ctx, r, func(*bbolt.Tx, *request) error { return nil })
	}
	return s.change(ctx, r, func(tx *bbolt.Tx, known *request) error {
		known.State = tokens.RequestState{Answer: answer}
		return putRequest(tx, r.ID, known)
	})
}

// ForgetRequest implements tokens.Store.
func (s *Store) ForgetRequest(ctx context.Context, r tokens.Request) error {
	defer s.release(r)
	return s.change(ctx, r, func(tx *bbolt.Tx, known *request) error { return forget(tx, r.ID, known) })
}

// change calls f for a request whose lease the holder has.
func (s *Store) change(ctx context.Context, r tokens.Request, f func(*bbolt.Tx, *request) error) error {
	var refused error
	err := s.write(ctx, func(tx *bbolt.Tx) error {
		known, err := requestOf(tx, r.ID)
		if err != nil {
			return err
		}
		if !s.runs(r, known) {
			refused = tokens.ErrUnknown
			return nil
		}
		refused = nil
		return f(tx, known)
	})
	if err != nil {
		return err // the commit may still run, so refused must not be read
	}
	return refused
}
