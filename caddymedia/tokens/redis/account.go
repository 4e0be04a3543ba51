package redis

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"github.com/caddymedia/media/caddymedia/tokens"
)

// scanCount is about the number of keys that the server examines at a time.
const scanCount = 500

// DeleteAccount implements tokens.Store. It requests the keys in small pieces (SCAN), because
// listing many at once (KEYS) would block the server. While a cluster moves slots between its nodes
// a record may be missed.
func (s *store) DeleteAccount(ctx context.Context, account string) (int, error) {
	var deleted atomic.Int64
	err := s.eachServer(ctx, func(ctx context.Context, server *goredis.Client) error {
		// One connection for all calls: a cursor has another meaning on another server, such as a
		// promoted replica, and would silently skip keys there. A broken connection is an error.
		conn := server.Conn()
		n, err := s.deleteAt(ctx, conn, account)
		deleted.Add(int64(n))
		return errors.Join(err, conn.Close())
	})
	if err = errors.Join(err, s.forgetRequests(ctx, account)); err != nil {
		return 0, unavailable(err)
	}
	return int(deleted.Load()), nil
}

// eachServer calls f for every server that accepts writes, in a cluster concurrently.
func (s *store) eachServer(ctx context.Context, f func(context.Context, *goredis.Client) error) error {
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, f)
	}
	return f(ctx, s.client.(*goredis.Client)) // the other type of universal client
}

func (s *store) deleteAt(ctx context.Context, conn *goredis.Conn, account string) (int, error) {
	deleted, cursor := 0, uint64(0)
	for {
		keys, next, err := s.scan(ctx, conn, cursor)
		if err != nil {
			return 0, err
		}
		n, err := s.deleteOf(ctx, conn, keys, account)
		if err != nil {
			return 0, err
		}
		deleted += n
		if cursor = next; cursor == 0 {
			return deleted, nil
		}
	}
}

func (s *store) scan(ctx context.Context, conn *goredis.Conn, cursor uint64) (keys []string, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return conn.Scan(ctx, cursor, s.pattern(), scanCount).Result()
}

// pattern matches the keys of tokens, but not that of Check.
func (s *store) pattern() string {
	literal := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s.prefix)
	return literal + strings.Repeat("?", base64.RawURLEncoding.EncodedLen(len(tokens.ID{})))
}

// deleteOf deletes the keys that belong to the account, and counts those not expired. Their accounts
// cannot change between reading and deleting: no two tokens have the same key.
func (s *store) deleteOf(ctx context.Context, conn *goredis.Conn, keys []string, account string) (int, error) {
	values, err := s.valuesOf(ctx, conn, keys)
	if err != nil {
		return 0, err
	}
	var valid []*goredis.IntCmd
	err = s.pipeline(ctx, conn, func(ctx context.Context, p goredis.Pipeliner) {
		for i, key := range keys {
			var rec tokens.Record
			// An invalid record belongs to no account: no token matches it.
			if json.Unmarshal([]byte(values[i]), &rec) != nil || rec.Account != account {
				continue
			}
			if del := p.Del(ctx, key); s.now().Before(rec.Expires) {
				valid = append(valid, del)
			}
		}
	})
	if err != nil {
		return 0, err
	}
	deleted := 0
	for _, del := range valid {
		deleted += int(del.Val())
	}
	return deleted, nil
}

// valuesOf returns the records of keys, those of tickets in a second step. A missing one is empty.
func (s *store) valuesOf(ctx context.Context, conn *goredis.Conn, keys []string) ([]string, error) {
	gets := make([]*goredis.StringCmd, len(keys))
	err := s.pipeline(ctx, conn, func(ctx context.Context, p goredis.Pipeliner) {
		for i, key := range keys {
			gets[i] = p.Get(ctx, key)
		}
	})
	if err != nil {
		return nil, err
	}
	err = s.pipeline(ctx, conn, func(ctx context.Context, p goredis.Pipeliner) {
		for i, key := range keys {
			if isTicket(gets[i].Err()) {
				gets[i] = p.HGet(ctx, key, fieldRecord)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	values := make([]string, len(keys))
	for i, get := range gets {
		values[i] = get.Val()
	}
	return values, nil
}

// pipeline sends many commands at once. A missing key is no error, nor is one of another type: the
// command then has that error.
func (s *store) pipeline(ctx context.Context, conn *goredis.Conn, queue func(context.Context, goredis.Pipeliner)) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	pipe := conn.Pipeline()
	queue(ctx, pipe)
	cmds, err := pipe.Exec(ctx)
	if !acceptable(err) {
		return err
	}
	for _, cmd := range cmds { // the first error may hide another
		if err := cmd.Err(); !acceptable(err) {
			return err
		}
	}
	return nil
}

func acceptable(err error) bool { return err == nil || errors.Is(err, goredis.Nil) || isTicket(err) }
