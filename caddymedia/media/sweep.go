package media

import (
	"context"
	"errors"
	"time"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/resumable"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// sweepInterval is the time between two sweeps of the resumable uploads of a storage.
	sweepInterval = 30 * time.Second
	// outcomeInterval is the time between two sweeps of the outcomes of finished uploads.
	outcomeInterval = time.Hour
	// checkedPoll is the time between two looks whether a storage is reachable.
	checkedPoll = 100 * time.Millisecond
	// quietTime is how long no byte was added to an upload that the service finishes by itself.
	quietTime = time.Minute
)

// sweepUploads removes expired uploads of a storage, and finishes those whose last request was cut
// after the last byte, by a crash for instance, until ctx ends.
func (s *Service) sweepUploads(ctx context.Context, storage *storagedrivers.Storage) {
	var outcomes time.Time
	a := alone{service: s, tried: map[string]attempt{}, quiet: quietTime}
	if s.isFirst {
		a.quiet = 0 // no other service of this process finishes uploads
	}
	for ctx.Err() == nil {
		if !s.health.reachable(storage.Name()) {
			select { // soon after the first check
			case <-ctx.Done():
			case <-time.After(checkedPoll):
			}
			continue
		}
		err := a.sweep(ctx, storage)
		a.quiet = quietTime
		if now := s.now(); err == nil && now.Sub(outcomes) >= outcomeInterval {
			err = s.uploads.SweepOutcomes(ctx, storage, resumable.SweepOptions{})
			outcomes = now
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, storagedrivers.ErrUnavailable) {
			s.log.Warn("sweeping resumable uploads", "storage", storage.Name(), "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(sweepInterval):
		}
	}
}

// SweepUploads removes, or only finds, expired uploads, their outcomes and data without a record, also
// if resumable uploads are off.
func (s *Service) SweepUploads(ctx context.Context, storage *storagedrivers.Storage, opts resumable.SweepOptions) error {
	if _, err := s.uploads.Sweep(ctx, storage, opts); err != nil {
		return err
	}
	return s.uploads.SweepOutcomes(ctx, storage, opts)
}

// alone finishes uploads of a storage without their clients.
type alone struct {
	service *Service
	quiet   time.Duration
	tried   map[string]attempt // by the IDs of the idle uploads
}

// attempt is the last look at an idle upload.
type attempt struct{ changed, at time.Time }

// retryTime is the time between two attempts to finish an upload without its client.
const retryTime = 10 * time.Minute

func (a *alone) sweep(ctx context.Context, storage *storagedrivers.Storage) error {
	now, idle := a.service.now(), map[string]attempt{}
	var due []*resumable.Upload
	open, err := a.service.uploads.Sweep(ctx, storage, resumable.SweepOptions{
		Quiet: a.quiet,
		Wanted: func(id string, changed time.Time) bool {
			last, known := a.tried[id]
			if known && last.changed.Equal(changed) && now.Sub(last.at) < retryTime {
				idle[id] = last
				return false
			}
			idle[id] = attempt{changed, now}
			return true
		},
		Idle: func(u *resumable.Upload) { due = append(due, u) },
	})
	if err == nil {
		a.service.observer.ResumableOpen(storage.Name(), open)
	}
	a.tried = idle
	for _, u := range due {
		if ctx.Err() == nil {
			a.service.finishAlone(ctx, u)
		}
	}
	return err
}

// finishAlone finishes an upload without its client. It refuses no item: only a request of the client
// does.
func (s *Service) finishAlone(ctx context.Context, u *resumable.Upload) {
	if s.resumable.Off || u.Partial || !u.Complete() {
		return
	}
	if _, err := s.rightsAlone(ctx, u); err != nil {
		return // before its bytes are read again
	}
	_, release, err := s.Acquire()
	if err != nil {
		return
	}
	defer release()
	if failures := s.finishUpload(ctx, u, s.confirmAlone(u), "", func(ingest.Failures) bool { return false }); failures != nil {
		s.log.Warn("finishing a resumable upload", "alias", u.Alias, "error", failures)
	}
}

// confirmAlone returns the confirmation of an upload without its client.
func (s *Service) confirmAlone(u *resumable.Upload) ConfirmFunc {
	return func(ctx context.Context, _ string, _ int) (settle func(bool), _ *ingest.Failure) {
		ticket, err := s.rightsAlone(ctx, u)
		if err == nil {
			settle, err = s.ChargeUpload(ctx, u, ticket)
		}
		if err != nil {
			return nil, &ingest.Failure{Reason: ingest.Unauthorized, Message: "the account may not store the item any more", Err: err}
		}
		return settle, nil
	}
}

// rightsAlone returns the ticket of an upload without its client; nil if it needs none. The error
// means that the account or the ticket does not have the rights to store the item any more. A claimed
// item was confirmed with the ticket before.
func (s *Service) rightsAlone(ctx context.Context, u *resumable.Upload) (*tokens.Ticket, error) {
	if ingest.Origin(u.Origin) != ingest.OriginHTTP {
		return nil, nil //nolint:nilnil // it needs none
	}
	if account, ok := s.issuer.Account(u.Account); !ok || !account.Allows(u.Alias) {
		return nil, tokens.ErrCredentials
	}
	if u.Ticket == "" || u.Claimed() {
		return nil, nil //nolint:nilnil // it needs none
	}
	_, ticket, err := s.issuer.VerifyTicket(ctx, ticketID(u))
	return ticket, err
}
