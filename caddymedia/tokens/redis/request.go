package redis

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// A request is a hash with the fields "fingerprint", "answer" and one for each claim. Beside it are a
// string with the holder of its lease, which expires with that, and a sorted set with the requests of
// its account by the time of their first attempt, which may have expired since. Braces put them into the same slot of a cluster.

// fieldClaim begins the fields of claims.
const fieldClaim = "claim:"

// Answers of the script beginRequest.
const (
	answerOther   = "other"
	answerRunning = "running"
)

// The keys of the scripts are the request, its lease and the requests of the account. All but the first
// one begin by checking the lease, and return 0 without it.
var (
	beginRequest = goredis.NewScript(`
local fingerprint, holder, lease, now, id, most, lifetime = unpack(ARGV)
local known = redis.call('HGET', KEYS[1], 'fingerprint')
if known and known ~= fingerprint then return {'other'} end
if not known or not redis.call('HGET', KEYS[1], 'answer') then
	local other = redis.call('GET', KEYS[2])
	if other and other ~= holder then return {'running'} end
	redis.call('SET', KEYS[2], holder, 'PX', lease)
end
if known then return {'known', redis.call('HGETALL', KEYS[1]), {}} end
redis.call('HSET', KEYS[1], 'fingerprint', fingerprint)
redis.call('PEXPIRE', KEYS[1], lifetime)
redis.call('ZADD', KEYS[3], now, id)
redis.call('PEXPIRE', KEYS[3], lifetime)
local over = redis.call('ZCARD', KEYS[3]) - most
if over <= 0 then return {'known', {}, {}} end
local oldest = redis.call('ZRANGE', KEYS[3], 0, over - 1)
for _, id in ipairs(oldest) do redis.call('ZREM', KEYS[3], id) end
return {'known', {}, oldest}`)

	extendRequest = holding(`redis.call('PEXPIRE', KEYS[2], ARGV[2])`)
	claimRequest  = holding(`redis.call('HSET', KEYS[1], 'claim:' .. ARGV[2], ARGV[3])`)
	endRequest    = holding(`redis.call('DEL', KEYS[2])`)
	forgetRequest = holding(`
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[2])`)

	answerRequest = holding(`
for n, field in ipairs(redis.call('HGETALL', KEYS[1])) do
	if n % 2 == 1 and field ~= 'fingerprint' then redis.call('HDEL', KEYS[1], field) end;
end
redis.call('HSET', KEYS[1], 'answer', ARGV[2])
redis.call('DEL', KEYS[2])`)
)

// holding returns a script for the holder of a lease.
func holding(change string) *goredis.Script {
	return goredis.NewScript(`
if redis.call('GET', KEYS[2]) ~= ARGV[1] or not redis.call('HGET', KEYS[1], 'fingerprint') then return 0 end
` + change + `
return 1`)
}

// requestKey returns the key of a request.
func (s *store) requestKey(account, id string) string {
	return s.prefix + "request:" + slot(account) + ":" + id
}

// requestKeys returns the keys of the scripts.
func (s *store) requestKeys(account, id string) []string {
	return []string{s.requestKey(account, id), s.prefix + "lease:" + slot(account) + ":" + id, s.prefix + "requests:" + slot(account)}
}

func slot(account string) string {
	sum := sha256.Sum256([]byte(account))
	return "{" + base64.RawURLEncoding.EncodeToString(sum[:16]) + "}"
}

func requestID(r tokens.Request) string { return base64.RawURLEncoding.EncodeToString(r.ID[:]) }

// BeginRequest implements tokens.Store.
func (s *store) BeginRequest(ctx context.Context, r tokens.Request, lease time.Duration, most int) (state tokens.RequestState, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	keys := s.requestKeys(r.Account, requestID(r))
	answer, err := beginRequest.Run(ctx, s.client, keys, r.Fingerprint, r.Holder, lease.Milliseconds(),
		s.now().UnixMilli(), requestID(r), most, tokens.RequestLifetime.Milliseconds()).Slice()
	switch {
	case err != nil:
		return state, unavailable(err)
	case answer[0] == answerOther:
		return state, tokens.ErrOtherRequest
	case answer[0] == answerRunning:
		return state, tokens.ErrRunning
	}
	fields, _ := answer[1].([]any) // pairs
	for pair := range slices.Chunk(fields, 2) {
		name, value := pair[0].(string), []byte(pair[1].(string)) //nolint:forcetypeassert // of HGETALL
		if claim, ok := strings.CutPrefix(name, fieldClaim); ok {
			if state.Claims == nil {
				state.Claims = map[string][]byte{}
			}
			state.Claims[claim] = value
		} else if name == "answer" {
			state.Answer = value
		}
	}
	oldest, _ := answer[2].([]any)
	for _, id := range oldest { // more than one only after a larger limit
		if err := s.client.Del(ctx, s.requestKey(r.Account, id.(string))).Err(); err != nil { //nolint:forcetypeassert // of ZRANGE
			return state, unavailable(err)
		}
	}
	return state, nil
}

// ExtendRequest implements tokens.Store.
func (s *store) ExtendRequest(ctx context.Context, r tokens.Request, lease time.Duration) error {
	return s.changeRequest(ctx, extendRequest, r, lease.Milliseconds())
}

// ClaimRequest implements tokens.Store.
func (s *store) ClaimRequest(ctx context.Context, r tokens.Request, name string, value []byte) error {
	return s.changeRequest(ctx, claimRequest, r, name, value)
}

// EndRequest implements tokens.Store.
func (s *store) EndRequest(ctx context.Context, r tokens.Request, answer []byte) error {
	if answer == nil {
		return s.changeRequest(ctx, endRequest, r)
	}
	return s.changeRequest(ctx, answerRequest, r, answer)
}

// ForgetRequest implements tokens.Store.
func (s *store) ForgetRequest(ctx context.Context, r tokens.Request) error {
	return s.changeRequest(ctx, forgetRequest, r, requestID(r))
}

func (s *store) changeRequest(ctx context.Context, script *goredis.Script, r tokens.Request, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	held, err := script.Run(ctx, s.client, s.requestKeys(r.Account, requestID(r)), append([]any{r.Holder}, args...)...).Int()
	switch {
	case err != nil:
		return unavailable(err)
	case held == 0:
		return tokens.ErrUnknown
	}
	return nil
}

// forgetRequests removes the requests of an account.
func (s *store) forgetRequests(ctx context.Context, account string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	all := s.requestKeys(account, "")[2]
	ids, err := s.client.ZRange(ctx, all, 0, -1).Result()
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, scanCount) {
		keys := make([]string, 0, 2*len(some))
		for _, id := range some {
			keys = append(keys, s.requestKeys(account, id)[:2]...)
		}
		err = errors.Join(err, s.client.Del(ctx, keys...).Err())
	}
	return errors.Join(err, s.client.Del(ctx, all).Err())
}
