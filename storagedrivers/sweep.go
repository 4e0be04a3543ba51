package storagedrivers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// A Sweeper is a [Driver] whose backend keeps leftovers of aborted uploads.
type Sweeper interface {
	// Sweep looks for leftovers of the age in opts, and removes them unless opts select a dry run.
	// It returns the leftovers found (or removed) even with an error; one failure does not stop the
	// others. Data of a running upload, in this process or another, is not a leftover, whatever the
	// age in opts. The error is [errors.ErrUnsupported] if the backend does not show leftovers.
	//
	// After the first call the driver starts no sweep by itself, for instance at its first use or
	// during a listing: the caller decides what is removed.
	Sweep(ctx context.Context, opts SweepOptions) ([]Leftover, error)
}

// LeftoverAge is the default age of a leftover.
const LeftoverAge = 24 * time.Hour

// SweepOptions select leftovers, and whether they are removed.
type SweepOptions struct {
	// OlderThan is the time since the last write to a leftover. 0 is [LeftoverAge], which is also
	// the least if only the age distinguishes a leftover from a running upload.
	OlderThan time.Duration
	// DryRun finds leftovers without removing them.
	DryRun bool
}

// Before returns the time before which leftovers were last written, for a backend where only the
// age distinguishes a leftover from a running upload. The age is at least [LeftoverAge], because
// the clocks of hosts differ.
func (o SweepOptions) Before(now time.Time) time.Time {
	return now.Add(-max(o.OlderThan, LeftoverAge))
}

// Leftover is data of an aborted upload.
type Leftover struct {
	// Name identifies the leftover, relative to the root: a path, or the key of the upload.
	Name string
	// Size in bytes; -1 if the backend does not report it.
	Size int64
	// ModTime is the time of the last write, by the backend's clock.
	ModTime time.Time
}

// Sweep looks for leftovers of aborted uploads in the backend, and removes them unless opts select
// a dry run; see [Sweeper]. The result is sorted by name, and contains the leftovers removed before
// an error. Only ctx bounds its duration. If the backend keeps no leftovers, or removes them
// itself, the error is [errors.ErrUnsupported].
func (s *Storage) Sweep(ctx context.Context, opts SweepOptions) ([]Leftover, error) {
	const op = "sweep"
	sweeper, ok := s.driver.(Sweeper)
	if !ok {
		return nil, s.wrap(op, "", errors.ErrUnsupported)
	}
	if opts.OlderThan <= 0 {
		opts.OlderThan = LeftoverAge
	}
	var swept []Leftover
	err := s.do(ctx, op, "", func(ctx context.Context) error {
		found, err := sweeper.Sweep(ctx, opts)
		if opts.DryRun {
			swept = nil // it is all found again
		}
		swept = append(swept, found...)
		return err
	})
	slices.SortFunc(swept, func(a, b Leftover) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.ModTime.Compare(b.ModTime))
	})
	return swept, err
}
