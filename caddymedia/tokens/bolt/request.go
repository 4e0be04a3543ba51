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

// The bucket of requests has them by ID, from their first claim on. The bucket of the oldest has a
// key for each: the SHA-256 of its account, milliseconds since 1970, then the ID. Its value is the
// size, then the owner. The hash alone has their number and their size. Leases are in memory: the
// file belongs to one process, and those of a dead one have ended.

// request is a repeatable request.
type request struct {
	Account     string              `json:"account"`
	Fingerprint string              `json:"fingerprint"`
	Began       time.Time           `json:"began"`
	State       tokens.RequestState `json:"state"`
}

// lease is the running attempt at a request.
type lease struct {
	tokens.Request
	until time.Time
}

// BeginRequest implements tokens.Store. It writes nothing.
func (s *Store) BeginRequest(ctx context.Context, r tokens.Request, term time.Duration) (tokens.RequestState, error) {
	for leased := false; ; leased = true {
		known, err := s.look(ctx, r.ID)
		switch {
		case err != nil:
		case known != nil && known.Fingerprint != r.Fingerprint:
			err = tokens.ErrOtherRequest
		case leased && known == nil:
			return tokens.RequestState{}, nil
		case leased && known.State.Answer == nil: // with the lease, so nothing has changed since
			return known.State, nil
		case known == nil || known.State.Answer == nil:
			if err = s.grant(r, term); err == nil {
				continue
			}
		}
		s.release(r)
		if err != nil {
			return tokens.RequestState{}, err
		}
		return known.State, nil
	}
}

// look returns a request; nil if there is none.
func (s *Store) look(ctx context.Context, id tokens.ID) (known *request, err error) {
	f, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	err = guard(func() error {
		return f.db.View(func(tx *bbolt.Tx) (err error) {
			known, err = requestOf(tx, id)
			return err
		})
	})
	if err != nil {
		return nil, s.failed(f, err)
	}
	if known != nil && !s.now().Before(known.Began.Add(tokens.RequestLifetime)) {
		known = nil
	}
	return known, nil
}

// grant sets the lease of a request. The error is ErrRunning or ErrOtherRequest if another attempt
// has it. It removes leases that have ended.
func (s *Store) grant(r tokens.Request, term time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.leases, func(_ tokens.ID, l lease) bool { return !now.Before(l.until) })
	switch l, taken := s.leases[r.ID]; {
	case taken && l.Fingerprint != r.Fingerprint:
		return tokens.ErrOtherRequest
	case taken && l.Holder != r.Holder:
		return tokens.ErrRunning
	}
	s.leases[r.ID] = lease{r, now.Add(term)}
	return nil
}

// holds reports whether r.Holder has the lease.
func (s *Store) holds(r tokens.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[r.ID]
	return l.Holder == r.Holder && s.now().Before(l.until)
}

// release ends the lease of r.Holder.
func (s *Store) release(r tokens.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[r.ID].Holder == r.Holder {
		delete(s.leases, r.ID)
	}
}

// total is the number of the requests of an account, and their size.
type total struct{ number, bytes int }

func totalOf(tx *bbolt.Tx, account []byte) total {
	value := append(bytes.Clone(tx.Bucket(bucketOldest).Get(account)), make([]byte, 16)...)
	return total{decode(value[:8]), decode(value[8:16])}
}

// add adds a number of requests to the total of an account, and their size.
func add(tx *bbolt.Tx, account []byte, number, size int) (total, error) {
	all := totalOf(tx, account)
	all = total{all.number + number, all.bytes + size}
	if all.number <= 0 {
		return all, tx.Bucket(bucketOldest).Delete(account)
	}
	return all, tx.Bucket(bucketOldest).Put(account, append(encode(all.number), encode(all.bytes)...))
}

// putRequest stores a request, and forgets others of its account if they are too many or too large.
func (s *Store) putRequest(tx *bbolt.Tx, r tokens.Request, known *request) error {
	value, err := json.Marshal(known)
	if err != nil {
		return err
	}
	oldest, key, number := tx.Bucket(bucketOldest), oldestKey(known, r.ID), 0
	entry := oldest.Get(key)
	if entry == nil {
		number = 1
	}
	all, err := add(tx, key[:sha256.Size], number, len(value)-sizeOf(entry))
	err = errors.Join(err,
		tx.Bucket(bucketRequests).Put(r.ID[:], value),
		tx.Bucket(bucketExpiries).Put(expiryKey(known.Began.Add(tokens.RequestLifetime), r.ID), nil),
		oldest.Put(key, append(encode(len(value)), r.Owner...)),
	)
	for err == nil && (all.number > r.Most || all.bytes > r.MostBytes) {
		victim := victimOf(oldest, key, r.Owner)
		if victim == nil {
			break
		}
		err = forget(tx, victim)
		s.mu.Lock()
		delete(s.leases, tokens.ID(victim[sha256.Size+8:]))
		s.mu.Unlock()
		all = totalOf(tx, key[:sha256.Size])
	}
	return err
}

// victimOf returns the key of the oldest request of an owner, or of the account, other than own.
func victimOf(oldest *bbolt.Bucket, own []byte, owner string) (victim []byte) {
	account, c := own[:sha256.Size], oldest.Cursor()
	c.Seek(account)
	for key, value := c.Next(); bytes.HasPrefix(key, account); key, value = c.Next() {
		switch {
		case bytes.Equal(key, own):
		case len(value) >= 8 && string(value[8:]) == owner:
			return bytes.Clone(key)
		case victim == nil:
			victim = bytes.Clone(key)
		}
	}
	return victim
}

// sizeOf returns the size in an entry of the oldest; 0 for none.
func sizeOf(entry []byte) int {
	if len(entry) < 8 {
		return 0
	}
	return decode(entry[:8])
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

// forget removes the request of a key of the oldest.
func forget(tx *bbolt.Tx, key []byte) error {
	oldest, account, began, id := tx.Bucket(bucketOldest), key[:sha256.Size], key[sha256.Size:sha256.Size+8], key[sha256.Size+8:]
	_, err := add(tx, account, -1, -sizeOf(oldest.Get(key)))
	expires := time.UnixMilli(int64(binary.BigEndian.Uint64(began))).Add(tokens.RequestLifetime)
	return errors.Join(err,
		tx.Bucket(bucketRequests).Delete(id),
		tx.Bucket(bucketExpiries).Delete(expiryKey(expires, tokens.ID(id))),
		oldest.Delete(key),
	)
}

// forgetRequests removes the requests of an account, and all its leases.
func (s *Store) forgetRequests(tx *bbolt.Tx, account string) error {
	s.mu.Lock()
	maps.DeleteFunc(s.leases, func(_ tokens.ID, l lease) bool { return l.Account == account })
	s.mu.Unlock()
	prefix := sha256.Sum256([]byte(account))
	var keys [][]byte // collected first: a cursor may skip keys when deleting under it
	c := tx.Bucket(bucketOldest).Cursor()
	c.Seek(prefix[:]) // the number
	for key, _ := c.Next(); bytes.HasPrefix(key, prefix[:]); key, _ = c.Next() {
		keys = append(keys, bytes.Clone(key))
	}
	for _, key := range keys {
		if err := forget(tx, key); err != nil {
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
	return forget(tx, oldestKey(known, id))
}

// ExtendRequest implements tokens.Store. It writes nothing, because leases are in memory.
func (s *Store) ExtendRequest(ctx context.Context, r tokens.Request, term time.Duration) error {
	if _, err := s.open(ctx); err != nil {
		return err
	}
	if !s.holds(r) || s.grant(r, term) != nil {
		return tokens.ErrUnknown
	}
	return nil
}

// ClaimRequest implements tokens.Store. It returns when the claim is synced to the disk.
func (s *Store) ClaimRequest(ctx context.Context, r tokens.Request, name string, value []byte) error {
	return s.change(ctx, r, func(tx *bbolt.Tx, known *request) error {
		if known.State.Claims == nil {
			known.State.Claims = map[string][]byte{}
		}
		known.State.Claims[name] = value
		return s.putRequest(tx, r, known)
	})
}

// EndRequest implements tokens.Store. It returns when the answer is synced to the disk.
func (s *Store) EndRequest(ctx context.Context, r tokens.Request, answer []byte) error {
	defer s.release(r)
	if answer == nil {
		return s.ExtendRequest(ctx, r, time.Minute) // until it is released
	}
	return s.change(ctx, r, func(tx *bbolt.Tx, known *request) error {
		known.State = tokens.RequestState{Answer: answer}
		return s.putRequest(tx, r, known)
	})
}

// ForgetRequest implements tokens.Store. Without a claim it writes nothing.
func (s *Store) ForgetRequest(ctx context.Context, r tokens.Request) error {
	if known, err := s.look(ctx, r.ID); err != nil || known == nil {
		return errors.Join(err, s.EndRequest(ctx, r, nil))
	}
	defer s.release(r)
	return s.change(ctx, r, func(tx *bbolt.Tx, known *request) error { return forget(tx, oldestKey(known, r.ID)) })
}

// change calls f for a request whose lease the holder has; a new one has no claims.
func (s *Store) change(ctx context.Context, r tokens.Request, f func(*bbolt.Tx, *request) error) error {
	var refused error
	err := s.write(ctx, func(tx *bbolt.Tx) error {
		known, err := requestOf(tx, r.ID)
		now := s.now()
		switch {
		case err != nil:
			return err
		case !s.holds(r):
			refused = tokens.ErrUnknown
			return nil
		case known != nil && !now.Before(known.Began.Add(tokens.RequestLifetime)):
			if err := forget(tx, oldestKey(known, r.ID)); err != nil {
				return err
			}
			known = nil
		}
		if known == nil {
			known = &request{Account: r.Account, Fingerprint: r.Fingerprint, Began: now.Truncate(time.Millisecond)} // as in the keys
		}
		refused = nil
		return f(tx, known)
	})
	if err != nil {
		return err // the commit may still run, so refused must not be read
	}
	return refused
}
