package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// Bounds of Append Time. An item whose name exists gets the time in its name, in whole seconds.
// After secondTries it also gets a random suffix, and after allTries it is refused.
const (
	secondTries = 128
	allTries    = 132

	suffixLength = 6
	maxSeconds   = 10_000
)

// seconds remembers the last second added to each name, so that the next item need not try all
// seconds before it. It is only a hint: the storage decides whether a name is free. The zero value
// is usable.
type seconds struct {
	mu   sync.Mutex
	last *simplelru.LRU[string, int64]
}

// next returns a second, not before now, that it has not returned for the name before.
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

// nextNames adds the time to the filenames of the uploads whose changes have taken keys. The error is
// errStored if an earlier attempt has stored the item.
func (b *batch) nextNames(ctx context.Context, exists *storagedrivers.ExistsError) error {
	change := 0
	for _, up := range b.uploads {
		if slices.Contains(exists.Taken, change) {
			if err := b.nextName(ctx, up, exists); err != nil {
				return err
			}
		}
		if change++; up.variant != nil {
			change++
		}
	}
	return nil
}

func (b *batch) nextName(ctx context.Context, up *upload, exists error) error {
	if err := b.ifStored(ctx, up); errors.Is(err, errStored) {
		return err
	} else if err != nil {
		return up.storageFailure(err)
	}
	if up.tries++; up.tries > allTries {
		failure := failf(Conflict, "no free name was found: send the file again or rename it")
		failure.Filename, failure.Err = up.submitted, exists
		return failure
	}
	if ctx.Err() != nil {
		return up.storageFailure(context.Cause(ctx))
	}
	if up.tries == 1 {
		up.plain = up.filename
	}
	second := b.uploader.seconds.next(b.alias.lockName(up.plain), b.now.Unix())
	up.filename = naming.WithTime(up.plain, second)
	if up.tries > secondTries {
		up.filename = naming.WithSuffix(up.filename, strings.ToLower(rand.Text()[:suffixLength]))
	}
	return nil
}
