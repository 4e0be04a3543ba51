package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

const (
	// sweepInterval is the time between two sweeps of the resumable uploads of a storage.
	sweepInterval = 30 * time.Second
	// idleInterval is the time between two looks at a storage without unfinished uploads. Only another
	// process can create one unnoticed. It is shorter than the life of every upload, so that it is
	// known before it expires.
	idleInterval = 5 * time.Minute
	// outcomeInterval is the time between two sweeps of the outcomes of finished uploads, and of data
	// without a record in a storage without unfinished uploads.
	outcomeInterval = time.Hour
	// quietTime is how long no byte was added to an upload that the service finishes by itself.
	quietTime = time.Minute
)

// sweepUploads removes expired uploads of a storage, and finishes those whose last request was cut
// after the last byte, by a crash for instance, until ctx ends. If resumable uploads are off, it
// ends when those of an earlier configuration have.
func (s *Service) sweepUploads(ctx context.Context, storage *storagedrivers.Storage) {
	var outcomes time.Time
	f := finisher{service: s, tried: map[string]retry{}, quiet: quietTime}
	if s.isFirst {
		f.quiet = 0 // no other service of this process finishes uploads
	}
	for s.health.awaitReachable(ctx, storage.Name()) {
		hourly := s.now().Sub(outcomes) >= outcomeInterval
		err := guard.Call(func() error {
			err := f.sweepIfOpen(ctx, storage, hourly)
			if err == nil && hourly {
				outcomes = s.now()
				err = s.uploads.SweepOutcomes(ctx, storage, resumable.SweepOptions{})
			}
			return err
		})
		if errors.Is(err, storagedrivers.ErrClosed) {
			return
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, storagedrivers.ErrUnavailable) {
			s.log.Warn("sweeping resumable uploads", "storage", storage.Name(), "error", err)
		}
		if f.empty && s.resumable.Off {
			return
		}
		f.pause(ctx, s.opened[storage.Name()])
	}
}

// SweepUploads removes, or only finds, expired uploads, their outcomes and data without a record,
// also if resumable uploads are off.
func (s *Service) SweepUploads(ctx context.Context, storage *storagedrivers.Storage, opts resumable.SweepOptions) error {
	if _, err := s.uploads.Sweep(ctx, storage, opts); err != nil {
		return err
	}
	return s.uploads.SweepOutcomes(ctx, storage, opts)
}

// finisher finishes uploads of a storage without their clients.
type finisher struct {
	service *Service
	quiet   time.Duration
	tried   map[string]retry // by the IDs of the idle uploads
	empty   bool             // the storage has no unfinished uploads, as far as is known
}

// sweepIfOpen is sweep. Unless always is true, it does not sweep a storage that is still empty.
func (f *finisher) sweepIfOpen(ctx context.Context, storage *storagedrivers.Storage, always bool) error {
	if f.empty && !always {
		open, err := f.service.uploads.HasOpen(ctx, storage)
		if err != nil || !open {
			return err
		}
	}
	err := f.sweep(ctx, storage)
	f.quiet = quietTime
	return err
}

// pause waits until the next sweep is due. opened receives when this process has created an upload.
func (f *finisher) pause(ctx context.Context, opened <-chan struct{}) {
	if f.empty {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(sweepInterval, min(idleInterval, f.service.resumable.Expires))):
			return
		case <-opened:
			f.empty = false
		}
	}
	select {
	case <-ctx.Done():
	case <-time.After(sweepInterval):
	}
}

// retry is when an idle upload is tried again, unless it changes before.
type retry struct{ changed, next time.Time }

// retryTime is the time between two attempts to finish an upload without its client.
const retryTime = 10 * time.Minute

func (f *finisher) sweep(ctx context.Context, storage *storagedrivers.Storage) error {
	now, idle := f.service.now(), map[string]retry{}
	var due []*resumable.Upload
	open, err := f.service.uploads.Sweep(ctx, storage, resumable.SweepOptions{
		Quiet: f.quiet,
		Wanted: func(id string, changed time.Time) bool {
			last, known := f.tried[id]
			if known && last.changed.Equal(changed) && now.Before(last.next) {
				idle[id] = last
				return false
			}
			idle[id] = retry{changed, now.Add(retryTime)}
			return true
		},
		Idle: func(u *resumable.Upload) {
			due = append(due, u)
			if last := idle[u.ID]; u.Expires().Before(last.next) {
				last.next = u.Expires()
				idle[u.ID] = last
			}
		},
	})
	if err == nil {
		f.service.observer.ResumableOpen(storage.Name(), open)
		f.service.process.usages.setUnfinished(storage, open)
	}
	f.empty = err == nil && open.Uploads == 0
	f.tried = idle
	for _, u := range due {
		if ctx.Err() != nil || errors.Is(err, storagedrivers.ErrClosed) {
			break
		}
		switch failed := f.service.finishAlone(ctx, u); {
		case errors.Is(failed, access.ErrRunning):
			delete(f.tried, u.ID) // the lease may be that of a dead process, and end soon
		default:
			err = errors.Join(err, failed)
		}
	}
	return err
}

// finishAlone finishes an upload without its client, unless its request may have a condition. It
// refuses no item: only a request of the client does. It logs failures, and returns an error if the
// storage is closed, or ErrRunning if another process finishes the upload.
func (s *Service) finishAlone(ctx context.Context, u *resumable.Upload) error {
	if s.resumable.Off || u.Form != resumable.Single && u.Form != resumable.Final && u.Form != resumable.Keep || u.Held != nil || !u.Complete() {
		return nil
	}
	if _, err := s.rightsAlone(ctx, u, true); err != nil { // only Finish knows whether it needs its ticket
		return nil // before its bytes are read again
	}
	_, release, err := s.Acquire()
	if err != nil {
		return storagedrivers.ErrClosed
	}
	defer release()
	failures := u.Finish(ctx, resumable.Finishing{
		Refusals: resumable.RecordNone,
		Authorize: func(ctx context.Context, _ *resumable.Upload, isRepeated bool) (resumable.Rights, *item.Failure) {
			ticket, err := s.rightsAlone(ctx, u, isRepeated)
			if err != nil {
				return resumable.Rights{}, &item.Failure{Reason: item.Unauthorized, Message: "the account may not store the item any more", Err: err}
			}
			return resumable.Rights{Issuer: s.issuer, Ticket: ticket}, nil
		},
	})
	for _, failure := range failures {
		if errors.Is(failure.Err, storagedrivers.ErrClosed) || errors.Is(failure.Err, access.ErrRunning) {
			return failure.Err
		}
	}
	if failures != nil {
		s.log.Warn("finishing a resumable upload", "alias", u.Alias, "error", failures)
	}
	return nil
}

// rightsAlone returns the ticket of an upload without its client; nil if it needs none. The error
// means that the account or the ticket does not have the rights to store the item any more. That
// of a repeated attempt was counted on the ticket before.
func (s *Service) rightsAlone(ctx context.Context, u *resumable.Upload, isRepeated bool) (*access.Ticket, error) {
	if item.Origin(u.Origin) != item.OriginHTTP {
		return nil, nil //nolint:nilnil // it needs none
	}
	account, ok := s.accountOf(u.Account, u.User)
	isOutside := func(folder string) bool { return !account.Covers(folder) }
	if !ok || !account.Allows(u.Alias) || !account.May(access.Upload) || slices.ContainsFunc(u.SubFolders(), isOutside) {
		return nil, access.ErrCredentials
	}
	if u.Ticket == "" || isRepeated {
		return nil, nil //nolint:nilnil // it needs none
	}
	_, ticket, err := s.issuer.VerifyTicket(ctx, u.TicketID())
	return ticket, err
}
