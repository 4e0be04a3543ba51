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

// A request is a hash with the fields "fingerprint", "answer" and one for each claim, from its
// first claim on. Beside it are a string with the holder and the fingerprint of its lease, which
// expires with that, a sorted set with the members of its account by the time of their first claim,
// and a hash with their sizes and "total". A member is the ID and the owner of a request, which may
// have expired since. Braces put them into the same slot of a cluster.

// fieldClaim begins the fields of claims.
const fieldClaim = "claim:"

// Answers of the script beginRequest.
const (
	answerOther   = "other"
	answerRunning = "running"
)

// The keys of the scripts are the request, its lease, and the members of the account and their
// sizes. All but the first one begin by checking the lease, and return 0 without it.
var (
	beginRequest = goredis.NewScript(`
local fingerprint, lease, term = unpack(ARGV)
local known = redis.call('HGET', KEYS[1], 'fingerprint')
local other = redis.call('GET', KEYS[2])
if not known and other then known = string.match(other, '\n(.*)$') end
if known and known ~= fingerprint then return {'other'} end
if not redis.call('HGET', KEYS[1], 'answer') then
	if other and other ~= lease then return {'running'} end
	redis.call('SET', KEYS[2], lease, 'PX', term)
end
return {'known', redis.call('HGETALL', KEYS[1])}`)

	extendRequest = holding(`redis.call('PEXPIRE', KEYS[2], ARGV[2])`)
	endRequest    = holding(`redis.call('DEL', KEYS[2])`)

	forgetRequest = holding(drop + `
redis.call('DEL', KEYS[1], KEYS[2])
drop(ARGV[2])`)

	// keepRequest stores a claim, or an answer in place of the claims. It returns the IDs of other
	// requests to remove.
	keepRequest = holding(drop + `
local member, owner, now, lifetime, most, mostBytes, fingerprint, field, value = unpack(ARGV, 2)
local size = #field + #value
if field == 'answer' then
	for n, old in ipairs(redis.call('HGETALL', KEYS[1])) do
		if n % 2 == 1 and old ~= 'fingerprint' then redis.call('HDEL', KEYS[1], old) end;
	end
	redis.call('DEL', KEYS[2])
elseif redis.call('HGET', KEYS[1], 'fingerprint') then
	size = size + (tonumber(redis.call('HGET', KEYS[4], member)) or 0)
end
if not redis.call('HGET', KEYS[1], 'fingerprint') then
	drop(member)
	redis.call('HSET', KEYS[1], 'fingerprint', fingerprint)
	redis.call('PEXPIRE', KEYS[1], lifetime)
	redis.call('ZADD', KEYS[3], now, member)
end
redis.call('HSET', KEYS[1], field, value)
resize(member, size)
redis.call('PEXPIRE', KEYS[3], lifetime)
redis.call('PEXPIRE', KEYS[4], lifetime)
local victims = {}
local function forget(other)
	drop(other)
	victims[#victims + 1] = string.sub(other, 1, #member - #owner)
end
while true do
	local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
	if first[1] == member or tonumber(first[2]) > now - lifetime then break end
	forget(first[1])
end
local function oldest()
	local victim
	for from = 0, tonumber(most), 100 do
		for _, other in ipairs(redis.call('ZRANGE', KEYS[3], from, from + 99)) do
			if other ~= member then
				victim = victim or other
				if string.sub(other, #member - #owner + 1) == owner then return other end
			end;
		end
	end;
	return victim
end
while redis.call('ZCARD', KEYS[3]) > math.max(most, 1) or tonumber(redis.call('HGET', KEYS[4], 'total')) > tonumber(mostBytes) do
	local victim = oldest()
	if not victim then break end
	forget(victim)
end
return victims`)
)

// drop has functions of scripts, which set the size of a member, and remove it.
const drop = `
local function resize(member, size)
	local total, old = redis.call('HGET', KEYS[4], 'total'), redis.call('HGET', KEYS[4], member)
	redis.call('HSET', KEYS[4], member, size, 'total', (tonumber(total) or 0) - (tonumber(old) or 0) + size)
end
local function drop(member)
	if redis.call('ZREM', KEYS[3], member) == 0 then return end
	resize(member, 0)
	redis.call('HDEL', KEYS[4], member)
end
`

// holding returns a script for the holder of a lease.
func holding(change string) *goredis.Script {
	return goredis.NewScript(`
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
` + change)
}

// requestKeys returns the keys of the scripts.
func (s *store) requestKeys(account, id string) []string {
	of := slot(account)
	return []string{s.prefix + "request:" + of + ":" + id, s.prefix + "lease:" + of + ":" + id, s.prefix + "requests:" + of, s.prefix + "sizes:" + of}
}

func slot(account string) string {
	sum := sha256.Sum256([]byte(account))
	return "{" + base64.RawURLEncoding.EncodeToString(sum[:16]) + "}"
}

func requestID(r tokens.Request) string { return base64.RawURLEncoding.EncodeToString(r.ID[:]) }

// member is the member of a request in the sets of its account.
func member(r tokens.Request) string { return requestID(r) + r.Owner }

func leaseOf(r tokens.Request) string { return r.Holder + "\n" + r.Fingerprint }

// BeginRequest implements tokens.Store.
func (s *store) BeginRequest(ctx context.Context, r tokens.Request, lease time.Duration) (state tokens.RequestState, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	keys := s.requestKeys(r.Account, requestID(r))
	answer, err := beginRequest.Run(ctx, s.client, keys, r.Fingerprint, leaseOf(r), lease.Milliseconds()).Slice()
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
	return state, nil
}

// ExtendRequest implements tokens.Store.
func (s *store) ExtendRequest(ctx context.Context, r tokens.Request, lease time.Duration) error {
	return s.changeRequest(ctx, extendRequest, r, lease.Milliseconds())
}

// ClaimRequest implements tokens.Store.
func (s *store) ClaimRequest(ctx context.Context, r tokens.Request, name string, value []byte) error {
	return s.keepRequest(ctx, r, fieldClaim+name, value)
}

// EndRequest implements tokens.Store.
func (s *store) EndRequest(ctx context.Context, r tokens.Request, answer []byte) error {
	if answer != nil {
		return s.keepRequest(ctx, r, "answer", answer)
	}
	return s.changeRequest(ctx, endRequest, r)
}

// ForgetRequest implements tokens.Store.
func (s *store) ForgetRequest(ctx context.Context, r tokens.Request) error {
	return s.changeRequest(ctx, forgetRequest, r, member(r))
}

func (s *store) keepRequest(ctx context.Context, r tokens.Request, field string, value []byte) error {
	return s.changeRequest(ctx, keepRequest, r, member(r), r.Owner, s.now().UnixMilli(), tokens.RequestLifetime.Milliseconds(),
		r.Most, r.MostBytes, r.Fingerprint, field, value)
}

// changeRequest runs a script. It removes the requests that the script returns.
func (s *store) changeRequest(ctx context.Context, script *goredis.Script, r tokens.Request, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answer, err := script.Run(ctx, s.client, s.requestKeys(r.Account, requestID(r)), append([]any{leaseOf(r)}, args...)...).Result()
	victims, _ := answer.([]any)
	switch {
	case errors.Is(err, goredis.Nil): // the script returns nothing
		return nil
	case err != nil:
		return unavailable(err)
	case victims == nil:
		return tokens.ErrUnknown
	case len(victims) == 0:
		return nil
	}
	var keys []string
	for _, id := range victims {
		keys = append(keys, s.requestKeys(r.Account, id.(string))[:2]...) //nolint:forcetypeassert // of the script
	}
	if err := s.client.Del(ctx, keys...).Err(); err != nil {
		return unavailable(err)
	}
	return nil
}

// forgetRequests removes the requests of an account.
func (s *store) forgetRequests(ctx context.Context, account string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	all := s.requestKeys(account, "")[2:]
	members, err := s.client.ZRange(ctx, all[0], 0, -1).Result()
	if err != nil {
		return err
	}
	for some := range slices.Chunk(members, scanCount) {
		keys := make([]string, 0, 2*len(some))
		for _, one := range some {
			keys = append(keys, s.requestKeys(account, one[:len(requestID(tokens.Request{}))])[:2]...)
		}
		err = errors.Join(err, s.client.Del(ctx, keys...).Err())
	}
	return errors.Join(err, s.client.Del(ctx, all...).Err())
}
