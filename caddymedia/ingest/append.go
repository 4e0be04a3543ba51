package ingest

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caddymedia/media/caddymedia/naming"
)

// Under Append Time an item whose name is taken gets the time in its name, by whole seconds.
// After secondTries of them it gets a random suffix too, and after allTries it is refused.
const (
	secondTries = 128
	allTries    = 132

	suffixLength = 6
	maxSeconds   = 10_000
)

// seconds remembers for each name the last second that an item got, so that the next one need
// not try all seconds before it. It is only a hint: the storage decides whether a name is free. The zero
// value is usable.
type seconds struct {
	mu   sync.Mutex
	last *simplelru.LRU[string, int64]
}

// next returns a second that no other item of the name has got here, not before now.
func (s *seconds) next(name string, now int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last, _ = simplelru.NewLRU[string, int64](maxSeconds, nil) // fails for a size of 0 only
	}
	if last, ok := s.last.Get(name); ok && last >= now {
		now = last + 1
	}
	s.last.Add(name, now)
	return now
}

// firstFree calls use until the name that the item has by then is not taken. The error is that
// of use, or a [*Failure] where no free name is found.
func (it *item) firstFree(
	ctx context.Context, alias *Alias, u *Uploader, now time.Time, use func() (taken bool, err error),
) error {
	for {
		taken, err := use()
		if !taken || alias.Overwrite {
			return err
		}
		if it.tries++; it.tries > allTries {
			failure := failf(Conflict, "no free name was found: send the file again or rename it")
			failure.Err = err
			return failure
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if it.tries == 1 {
			it.plain = it.filename
		}
		it.filename = naming.WithTime(it.plain, u.seconds.next(alias.lockName(it.plain), now.Unix()))
		if it.tries > secondTries {
			it.filename = naming.WithSuffix(it.filename, strings.ToLower(rand.Text()[:suffixLength]))
		}
	}
}
