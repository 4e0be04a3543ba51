// Package redis keeps tokens in Redis (a server, Sentinel or a cluster), where several Caddys share
// them. It is no cache: a Redis that evicts keys ends tokens. Begin with [Config].
package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// An entry is a string that expires: the milliseconds of its expiry (0 for never), a space, and its
// value. An index is a sorted set, by expiry, with a member for each Update that named it: a random
// text, a space, and the key of the entry. Every command names a single key, so that a cluster can
// serve it.

const (
	// piece is how many entries are deleted at once.
	piece = 500
	// slack is how much the clocks of nodes may differ. Members of an index stay that much longer, so
	// that no node removes those of valid entries.
	slack = time.Hour
	// forever is how long a member of an index stays whose entry never expires.
	forever = 100 * 365 * 24 * time.Hour
)

var (
	// swap replaces the entry ARGV[1] by ARGV[2], with the other arguments as options of SET. Empty
	// is a missing entry. It returns nil, or the entry if it is another one.
	swap = goredis.NewScript(`
local found = redis.call('GET', KEYS[1]) or ''
if found ~= ARGV[1] then return found end
if ARGV[2] == '' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], unpack(ARGV, 2)) end
return false`)

	// addMember adds a member to an index, which lives as long as the last of them.
	addMember = goredis.NewScript(`
local member, expires, expired, lifetime = unpack(ARGV)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', expired)
redis.call('ZADD', KEYS[1], expires, member)
if redis.call('PTTL', KEYS[1]) < tonumber(lifetime) then redis.call('PEXPIRE', KEYS[1], lifetime) end
return 1`)
)

// store is a tokens.Store in Redis, which removes expired entries by itself.
type store struct {
	client  goredis.UniversalClient
	prefix  string
	timeout time.Duration // for all attempts at a command together
	now     func() time.Time
	locks   locks.Names // by key, as few Updates should have to be repeated
}

func (s *store) entryKey(key string) string   { return s.prefix + "entry:" + key }
func (s *store) indexKey(index string) string { return s.prefix + "index:" + index }

// Get implements tokens.Store.
func (s *store) Get(ctx context.Context, key string) (tokens.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	stored, err := s.load(ctx, key)
	if err != nil {
		return tokens.Entry{}, unavailable(err)
	}
	return s.decode(stored)
}

// Update implements tokens.Store. The client repeats a script whose answer was lost: change then
// sees the entry that it has returned.
//
// The member of the index comes after the entry, and is never that of an earlier Update.
// DeleteIndex removes the entries of the members that it has read, and then these. So a member that
// it removes is one of a removed entry, not of one that was stored meanwhile.
func (s *store) Update(ctx context.Context, key, index string, change func(tokens.Entry) (tokens.Entry, error)) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	unlock, err := s.locks.Lock(ctx, key)
	if err != nil {
		return unavailable(ctx.Err())
	}
	defer unlock()
	stored, err := s.load(ctx, key)
	if err != nil {
		return unavailable(err)
	}
	for {
		old, err := s.decode(stored)
		if err != nil {
			return err
		}
		entry, err := change(old)
		if err != nil {
			return err
		}
		encoded, options := s.encode(entry)
		arguments := append([]any{stored, encoded}, options...)
		stored, err = swap.Run(ctx, s.client, []string{s.entryKey(key)}, arguments...).Text()
		switch {
		case errors.Is(err, goredis.Nil) && index != "" && encoded != "":
			return s.addTo(ctx, index, key, entry.Expires)
		case errors.Is(err, goredis.Nil):
			return nil
		case err != nil:
			return unavailable(err)
		}
	}
}

// load returns the stored text of an entry; empty for a missing one.
func (s *store) load(ctx context.Context, key string) (string, error) {
	stored, err := s.client.Get(ctx, s.entryKey(key)).Result()
	return stored, unlessMissing(err)
}

func (s *store) addTo(ctx context.Context, index, key string, expires time.Time) error {
	now := s.now()
	if expires.IsZero() {
		expires = now.Add(forever)
	}
	return unavailable(addMember.Run(ctx, s.client, []string{s.indexKey(index)}, rand.Text()+" "+key, expires.UnixMilli(),
		now.Add(-slack).UnixMilli(), expires.Add(slack).Sub(now).Milliseconds()).Err())
}

// encode returns the text of an entry, and the options of SET. It is empty for one to remove.
func (s *store) encode(e tokens.Entry) (text string, options []any) {
	left := e.Expires.Sub(s.now())
	switch {
	case e.Value == nil:
		return "", nil
	case e.Expires.IsZero():
		return "0 " + string(e.Value), nil
	case left <= 0: // Redis refuses it
		return "", nil
	}
	expires := e.Expires.Add(time.Millisecond - 1).UnixMilli()
	return fmt.Sprintf("%d %s", expires, e.Value), []any{"PX", left.Milliseconds() + 1}
}

// decode returns the entry of a text, which may have expired: Redis counts from when it was stored.
func (s *store) decode(text string) (tokens.Entry, error) {
	if text == "" {
		return tokens.Entry{}, nil
	}
	number, value, _ := strings.Cut(text, " ")
	milliseconds, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return tokens.Entry{}, unavailable(errors.New("an entry of another form"))
	}
	e := tokens.Entry{Value: []byte(value)}
	if milliseconds == 0 {
		return e, nil
	}
	if e.Expires = time.UnixMilli(milliseconds); !s.now().Before(e.Expires) {
		return tokens.Entry{}, nil
	}
	return e, nil
}

// DeleteIndex implements tokens.Store, in pieces, because long commands would block the server.
func (s *store) DeleteIndex(ctx context.Context, index string) (int, error) {
	var client goredis.Cmdable = s.client
	if server, ok := client.(*goredis.Client); ok {
		// One connection, so that it fails if a replica is promoted meanwhile. The replica may have
		// entries whose removal was lost, and would lose their members.
		conn := server.Conn()
		defer conn.Close()
		client = conn
	}
	deleted := 0
	for {
		n, more, err := s.deletePiece(ctx, client, index)
		if err != nil {
			return 0, unavailable(err)
		}
		if deleted += n; !more {
			return deleted, nil
		}
	}
}

// deletePiece deletes some entries of an index, and counts those not expired. more is false after
// the last ones.
func (s *store) deletePiece(ctx context.Context, client goredis.Cmdable, index string) (deleted int, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	members, err := client.ZRange(ctx, s.indexKey(index), 0, piece-1).Result()
	if err != nil || len(members) == 0 {
		return 0, false, err
	}
	var gets []*goredis.StringCmd
	cmds, err := client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for _, member := range members {
			_, key, _ := strings.Cut(member, " ")
			gets = append(gets, p.Get(ctx, s.entryKey(key)))
			p.Del(ctx, s.entryKey(key))
		}
		return nil
	})
	err = unlessMissing(err)
	for _, cmd := range cmds { // the first error may hide another
		err = cmp.Or(err, unlessMissing(cmd.Err()))
	}
	if err != nil {
		return 0, false, err
	}
	for _, get := range gets {
		if e, err := s.decode(get.Val()); err == nil && e.Value != nil {
			deleted++
		}
	}
	return deleted, len(members) == piece, client.ZRem(ctx, s.indexKey(index), members).Err()
}

// Check implements tokens.Store. It writes, because a replica or a full server still reads.
func (s *store) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return unavailable(s.client.Set(ctx, s.prefix+"check", "", time.Second).Err())
}

// Close implements tokens.Store.
func (s *store) Close() error {
	if err := s.client.Close(); err != nil && !errors.Is(err, goredis.ErrClosed) {
		return fmt.Errorf("closing the connections to redis: %w", err)
	}
	return nil
}

// unlessMissing returns err, or nil for that of a missing key.
func unlessMissing(err error) error {
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	return err
}

// unavailable converts an error of the client.
func unavailable(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded): // a connection has the deadline of its context
		err = fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("%w: redis: %w", tokens.ErrUnavailable, err)
}

// Interface guards
var _ tokens.Store = (*store)(nil)
