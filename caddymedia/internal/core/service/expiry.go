package service

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// maxExpiryWait is the longest time between two searches for items that have expired. Items that
// another program has stored may be older than those that were found.
const maxExpiryWait = 24 * time.Hour

// expiring returns a sweep of an alias that does nothing until the next item expires.
func (s *Service) expiring() func(context.Context, *item.Alias) error {
	var next time.Time
	return func(ctx context.Context, alias *item.Alias) (err error) {
		if s.now().Before(next) {
			return nil
		}
		next, err = s.SweepExpired(ctx, alias)
		return err
	}
}

// SweepExpired removes the items of an alias that have expired, and keeps them in the trash where
// there is one. It returns when to do so again at the earliest. What cannot be removed does not
// stop the rest.
func (s *Service) SweepExpired(ctx context.Context, alias *item.Alias) (next time.Time, err error) {
	next = s.now().Add(min(maxExpiryWait, alias.Expires)) // a new item may be the next
	work := guard.NewGroup(trashWorkers)
	for info, err := range alias.Storage.All(ctx, alias.Key("")) {
		if err != nil {
			return time.Time{}, errors.Join(err, work.Wait())
		}
		filename := alias.Filename(info.Key)
		rest, ends := alias.Rest(info, s.now())
		switch {
		case !ends, alias.IsVariant(filename), naming.IsReserved(filename):
		case rest > 0:
			next = earlier(next, s.now().Add(rest))
		default:
			work.Go(func() error { return s.expire(ctx, alias, filename) })
		}
	}
	if err := work.Wait(); err != nil {
		return time.Time{}, err
	}
	return next, nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// expire removes an item if it has expired. The times of a list may be less exact than its own.
func (s *Service) expire(ctx context.Context, alias *item.Alias, filename string) error {
	_, err := s.Uploader().DeleteItem(ctx, upload.Deletion{
		Alias: alias, Filename: filename, Actor: item.Actor{Origin: item.OriginEnd},
		Matches: func(info storagedrivers.Info) bool { return alias.HasExpired(info, s.now()) },
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, item.ErrOther) {
		return nil
	}
	return err
}
