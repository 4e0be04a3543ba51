package redis

import (
	"context"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// A ticket is a hash under the key that a token would have, so it expires and is deleted as a whole.
// The field "record" holds the record, "used" the number of reserved items, "use:<name>" the items of
// a use, and "refused" the number of refused items. Scripts change it, because the server runs them one at a time.

const (
	fieldRecord  = "record"
	fieldUsed    = "used"
	fieldRefused = "refused"
)

// Answers of the script take that are errors.
const (
	answerUsedUp  = "used up"
	answerUnknown = "unknown"
)

var (
	save = goredis.NewScript(`
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'record', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`)

	take = goredis.NewScript(`
if not redis.call('HGET', KEYS[1], 'record') then return 'unknown' end
local field = 'use:' .. ARGV[1]
if redis.call('HGET', KEYS[1], field) then return 'taken' end
local used = tonumber(redis.call('HGET', KEYS[1], 'used') or 0) + tonumber(ARGV[2])
if used > tonumber(ARGV[3]) then return 'used up' end
redis.call('HSET', KEYS[1], field, ARGV[2], 'used', used)
return 'taken'`)

	refuse = goredis.NewScript(`
if redis.call('HGET', KEYS[1], 'record') then
	redis.call('HSET', KEYS[1], 'refused', tonumber(redis.call('HGET', KEYS[1], 'refused') or 0) + tonumber(ARGV[1]))
end
return 1`)

	giveBack = goredis.NewScript(`
local field = 'use:' .. ARGV[1]
local n = redis.call('HGET', KEYS[1], field)
if not n then return 0 end
redis.call('HDEL', KEYS[1], field)
redis.call('HSET', KEYS[1], 'used', tonumber(redis.call('HGET', KEYS[1], 'used')) - tonumber(n))
return 1`)
)

// isTicket reports whether err is that of a command for a string under the key of a ticket, or the
// opposite.
func isTicket(err error) bool { return err != nil && strings.Contains(err.Error(), "WRONGTYPE") }

func (s *store) saveTicket(ctx context.Context, key string, value []byte, ttl time.Duration) error {
	return mapError(save.Run(ctx, s.client, []string{key}, value, ttl.Milliseconds()).Err())
}

// loadTicket returns the record of a ticket, and sets its counts in rec.
func (s *store) loadTicket(ctx context.Context, key string, rec *tokens.Record) (value string, err error) {
	fields, err := s.client.HMGet(ctx, key, fieldRecord, fieldUsed, fieldRefused).Result()
	if err != nil {
		return "", err
	}
	value, found := fields[0].(string)
	if !found { // it expired meanwhile
		return "", goredis.Nil
	}
	for i, count := range []*int{&rec.Used, &rec.Refused} {
		if text, ok := fields[i+1].(string); ok && err == nil {
			*count, err = strconv.Atoi(text)
		}
	}
	return value, err
}

// Take implements tokens.Store.
func (s *store) Take(ctx context.Context, id tokens.ID, use string, n, limit int) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answer, err := take.Run(ctx, s.client, []string{s.key(id)}, use, n, limit).Text()
	switch {
	case isTicket(err), err == nil && answer == answerUnknown:
		return tokens.ErrUnknown
	case err == nil && answer == answerUsedUp:
		return tokens.ErrUsedUp
	}
	return mapError(err)
}

// GiveBack implements tokens.Store.
func (s *store) GiveBack(ctx context.Context, id tokens.ID, use string) error {
	return s.change(ctx, giveBack, id, use)
}

// Refuse implements tokens.Store.
func (s *store) Refuse(ctx context.Context, id tokens.ID, n int) error {
	return s.change(ctx, refuse, id, n)
}

// change runs a script on a ticket, if id is that of one.
func (s *store) change(ctx context.Context, script *goredis.Script, id tokens.ID, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := script.Run(ctx, s.client, []string{s.key(id)}, args...).Err()
	if isTicket(err) {
		return nil
	}
	return mapError(err)
}
