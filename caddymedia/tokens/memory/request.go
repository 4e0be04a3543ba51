package memory

import (
	"bytes"
	"container/heap"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// request is a repeatable request.
type request struct {
	tokens.Request // of the attempt that has the lease
	state          tokens.RequestState
	size           int
	expiry         *expiry
	until          time.Time // the end of the lease
}

// account are the requests of an account.
type account struct {
	oldest []tokens.ID // in the order of their first attempts
	size   int
}

// BeginRequest implements tokens.Store.
func (s *Store) BeginRequest(ctx context.Context, r tokens.Request, lease time.Duration) (tokens.RequestState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return tokens.RequestState{}, err
	}
	now := s.now()
	known := s.requests[r.ID]
	if known != nil && (!now.Before(known.expiry.at) || known.size == 0 && !now.Before(known.until)) {
		s.forget(r.ID)
		known = nil
	}
	switch {
	case known == nil:
		s.sweep()
		known = &request{
			Request: r, expiry: &expiry{at: now.Add(tokens.RequestLifetime), id: r.ID}, state: tokens.RequestState{Claims: map[string][]byte{}},
		}
		s.requests[r.ID] = known
		heap.Push(&s.byExpiry, known.expiry)
		if s.accounts[r.Account] == nil {
			s.accounts[r.Account] = &account{}
		}
		of := s.accounts[r.Account]
		of.oldest = append(of.oldest, r.ID)
		s.bound(r)
	case known.Fingerprint != r.Fingerprint:
		return tokens.RequestState{}, tokens.ErrOtherRequest
	case known.state.Answer != nil:
		return known.state, nil
	case now.Before(known.until):
		return tokens.RequestState{}, tokens.ErrRunning
	}
	known.Request, known.until = r, now.Add(lease)
	return tokens.RequestState{Claims: maps.Clone(known.state.Claims)}, nil
}

// bound forgets other requests of the account of r while they are too many or too large: the oldest
// of its owner, then the oldest.
func (s *Store) bound(r tokens.Request) {
	of := s.accounts[r.Account]
	for len(of.oldest) > 1 && (len(of.oldest) > r.Most || of.size > r.MostBytes) {
		i := slices.IndexFunc(of.oldest, func(id tokens.ID) bool { return id != r.ID && s.requests[id].Owner == r.Owner })
		if i < 0 {
			i = slices.IndexFunc(of.oldest, func(id tokens.ID) bool { return id != r.ID })
		}
		s.forget(of.oldest[i])
	}
}

// forget removes a request.
func (s *Store) forget(id tokens.ID) {
	r := s.requests[id]
	delete(s.requests, id)
	if r.expiry.index >= 0 { // not swept
		heap.Remove(&s.byExpiry, r.expiry.index)
	}
	of := s.accounts[r.Account]
	of.size -= r.size
	i := slices.Index(of.oldest, id)
	if of.oldest = slices.Delete(of.oldest, i, i+1); len(of.oldest) == 0 {
		delete(s.accounts, r.Account)
	}
}

// resize sets the size of a request.
func (s *Store) resize(r *request, size int) {
	s.accounts[r.Account].size += size - r.size
	r.size = size
	s.bound(r.Request)
}

// change calls f for a request whose lease the holder has.
func (s *Store) change(ctx context.Context, r tokens.Request, f func(*request)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	known := s.requests[r.ID]
	if known == nil || known.Holder != r.Holder || !s.now().Before(known.until) || !s.now().Before(known.expiry.at) {
		return tokens.ErrUnknown
	}
	f(known)
	return nil
}

// ExtendRequest implements tokens.Store.
func (s *Store) ExtendRequest(ctx context.Context, r tokens.Request, lease time.Duration) error {
	return s.change(ctx, r, func(known *request) { known.until = s.now().Add(lease) })
}

// ClaimRequest implements tokens.Store.
func (s *Store) ClaimRequest(ctx context.Context, r tokens.Request, name string, value []byte) error {
	return s.change(ctx, r, func(known *request) {
		known.state.Claims[name] = bytes.Clone(value)
		s.resize(known, known.size+len(name)+len(value))
	})
}

// EndRequest implements tokens.Store.
func (s *Store) EndRequest(ctx context.Context, r tokens.Request, answer []byte) error {
	return s.change(ctx, r, func(known *request) {
		known.until = time.Time{}
		if answer != nil {
			known.state = tokens.RequestState{Answer: bytes.Clone(answer)}
			s.resize(known, len(answer))
		}
	})
}

// ForgetRequest implements tokens.Store.
func (s *Store) ForgetRequest(ctx context.Context, r tokens.Request) error {
	return s.change(ctx, r, func(*request) { s.forget(r.ID) })
}
