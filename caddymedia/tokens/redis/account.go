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

// scanCount is about how many keys the server looks at before it lets others have their turn.
const scanCount = 500

// DeleteAccount implements tokens.Store. It asks for the keys in small pieces (SCAN), because with many of them the
// server would answer nobody else meanwhile (KEYS). While a cluster moves slots between its nodes a record may be
// missed.
func (s *store) DeleteAccount(ctx context.Context, account string) (int, error) {
	var deleted atomic.Int64
	err := s.eachServer(ctx, func(ctx context.Context, server *goredis.Client) error {
		// One connection for all: a cursor means something else to another server, such as a replica that has
		// taken over meanwhile, and would skip keys there without a word. A connection that breaks is an error.
		conn := server.Conn()
		n, err := s.deleteAt(ctx, conn, account)
		deleted.Add(int64(n))
		return errors.Join(err, conn.Close())
	})
	if err != nil {
		return 0, unavailable(err)
	}
	return int(deleted.Load()), nil
}

// eachServer calls f for every server that takes writes, in a cluster for all of them at once.
func (s *store) eachServer(ctx context.Context, f func(context.Context, *goredis.Client) error) error {
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, f)
	}
	return f(ctx, s.client.(*goredis.Client)) // what a universal client is otherwise
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

// pattern matches the keys of tokens, and not that of Check.
func (s *store) pattern() string {
	literal := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s.prefix)
	return literal + strings.Repeat("?", base64.RawURLEncoding.EncodedLen(len(tokens.ID{})))
}

// deleteOf deletes those of the keys that belong to the account, and counts those that had not expired. Nothing can
// change between reading and deleting them: no two tokens have one key.
func (s *store) deleteOf(ctx context.Context, conn *goredis.Conn, keys []string, account string) (int, error) {
	gets := make([]*goredis.StringCmd, len(keys))
	err := s.together(ctx, conn, func(ctx context.Context, p goredis.Pipeliner) {
		for i, key := range keys {
			gets[i] = p.Get(ctx, key)
		}
	})
	if err != nil {
		return 0, err
	}
	var valid []*goredis.IntCmd
	err = s.together(ctx, conn, func(ctx context.Context, p goredis.Pipeliner) {
		for i, key := range keys {
			var rec tokens.Record
			// A record that cannot be read belongs to nobody: no token opens it.
			if json.Unmarshal([]byte(gets[i].Val()), &rec) != nil || rec.Account != account {
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

// together sends many commands at once. What a key does not have is no error.
func (s *store) together(ctx context.Context, conn *goredis.Conn, queue func(context.Context, goredis.Pipeliner)) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	pipe := conn.Pipeline()
	queue(ctx, pipe)
	cmds, err := pipe.Exec(ctx)
	if err != nil && !errors.Is(err, goredis.Nil) {
		return err
	}
	for _, cmd := range cmds { // the first error may hide another
		if err := cmd.Err(); err != nil && !errors.Is(err, goredis.Nil) {
			return err
		}
	}
	return nil
}
