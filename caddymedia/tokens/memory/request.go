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
	expiry         *expiry
	until          time.Time // the end of the lease
}

// BeginRequest implements tokens.Store.
func (s *Store) BeginRequest(ctx context.Context, r tokens.Request, lease time.Duration, most int) (tokens.RequestState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return tokens.RequestState{}, err
	}
	now := s.now()
	known := s.requests[r.ID]
	if known != nil && !now.Before(known.expiry.at) {
		s.forget(r.ID)
		known = nil
	}
	switch {
	case known == nil:
		s.sweep()
		known = &request{
			expiry: &expiry{at: now.Add(tokens.RequestLifetime), id: r.ID}, state: tokens.RequestState{Claims: map[string][]byte{}},
		}
		s.requests[r.ID] = known
		heap.Push(&s.byExpiry, known.expiry)
		s.oldest[r.Account] = append(s.oldest[r.Account], r.ID)
		known.Request = r
		if of := s.oldest[r.Account]; len(of) > most {
			s.forget(of[0])
		}
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

// forget removes a request.
func (s *Store) forget(id tokens.ID) {
	r := s.requests[id]
	delete(s.requests, id)
	if r.expiry.index >= 0 { // not swept
		heap.Remove(&s.byExpiry, r.expiry.index)
	}
	of := s.oldest[r.Account]
	if i := slices.Index(of, id); i >= 0 {
		of = slices.Delete(of, i, i+1)
	}
	if s.oldest[r.Account] = of; len(of) == 0 {
		delete(s.oldest, r.Account)
	}
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
	return s.change(ctx, r, func(known *request) { known.state.Claims[name] = bytes.Clone(value) })
}

// EndRequest implements tokens.Store.
func (s *Store) EndRequest(ctx context.Context, r tokens.Request, answer []byte) error {
	return s.change(ctx, r, func(known *request) {
		known.until = time.Time{}
		if answer != nil {
			known.state = tokens.RequestState{Answer: bytes.Clone(answer)}
		}
	})
}

// ForgetRequest implements tokens.Store.
func (s *Store) ForgetRequest(ctx context.Context, r tokens.Request) error {
	return s.change(ctx, r, func(*request) { s.forget(r.ID) })
}
