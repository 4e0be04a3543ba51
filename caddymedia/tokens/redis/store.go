// Package redis keeps tokens in Redis (a server, Sentinel or a cluster), where several Caddys share
// them.
package redis

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// Every other command but SCAN names a single key, so that a cluster can serve it. GET, SET and DEL are
// enough for tokens. Those of tickets are in ticket.go, and of requests, whose keys of one account have
// the same slot, in request.go.

// store is a tokens.Store in Redis, which removes expired records by itself.
type store struct {
	client  goredis.UniversalClient
	prefix  string
	timeout time.Duration // for all attempts at a command together
	now     func() time.Time
}

// Save implements tokens.Store.
func (s *store) Save(ctx context.Context, id tokens.ID, rec tokens.Record) error {
	ttl := rec.Expires.Sub(s.now())
	if ttl <= 0 {
		return s.Delete(ctx, id) // Redis takes a lifetime of zero for an endless one
	}
	ttl = max(ttl, time.Millisecond)
	value, err := json.Marshal(rec)
	if err != nil {
		return unavailable(err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if rec.Ticket != nil {
		return s.saveTicket(ctx, s.key(id), value, ttl)
	}
	return mapError(s.client.Set(ctx, s.key(id), value, ttl).Err())
}

// Load implements tokens.Store.
func (s *store) Load(ctx context.Context, id tokens.ID) (tokens.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var rec tokens.Record
	value, err := s.client.Get(ctx, s.key(id)).Result()
	if isTicket(err) {
		value, err = s.loadTicket(ctx, s.key(id), &rec)
	}
	if err != nil {
		return tokens.Record{}, mapError(err)
	}
	if err := json.Unmarshal([]byte(value), &rec); err != nil {
		return tokens.Record{}, unavailable(err)
	}
	if !s.now().Before(rec.Expires) {
		return tokens.Record{}, tokens.ErrUnknown
	}
	return rec, nil
}

// Delete implements tokens.Store.
func (s *store) Delete(ctx context.Context, id tokens.ID) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return mapError(s.client.Del(ctx, s.key(id)).Err())
}

// Secret implements tokens.Store. It reads first, because a replica or a full server still reads.
func (s *store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	key := s.prefix + "secret:" + name
	secret, err := s.client.Get(ctx, key).Bytes()
	if errors.Is(err, goredis.Nil) {
		if err = s.client.SetArgs(ctx, key, fresh, goredis.SetArgs{Mode: "NX"}).Err(); err == nil {
			return fresh, nil
		}
		if errors.Is(err, goredis.Nil) { // another node was faster
			secret, err = s.client.Get(ctx, key).Bytes()
		}
	}
	if err != nil {
		return nil, unavailable(err) // also if it was removed meanwhile
	}
	return secret, nil
}

// Check implements tokens.Store. It writes, because a replica or a full server still reads.
func (s *store) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return mapError(s.client.Set(ctx, s.prefix+"check", "", time.Second).Err())
}

// Close implements tokens.Store.
func (s *store) Close() error {
	if err := s.client.Close(); err != nil && !errors.Is(err, goredis.ErrClosed) {
		return fmt.Errorf("closing the connections to redis: %w", err)
	}
	return nil
}

func (s *store) key(id tokens.ID) string {
	return s.prefix + base64.RawURLEncoding.EncodeToString(id[:])
}

// mapError converts an error of the client to one of tokens.Store.
func mapError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, goredis.Nil):
		return tokens.ErrUnknown
	default:
		return unavailable(err)
	}
}

func unavailable(err error) error { return fmt.Errorf("%w: redis: %w", tokens.ErrUnavailable, err) }

// Interface guards
var _ tokens.Store = (*store)(nil)
