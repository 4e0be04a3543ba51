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
	// Sweep looks for leftovers that are as old as opts say, and removes them unless it is a dry
	// run. It returns the leftovers found (or removed) even with an error; one failure does not
	// stop the others. Data of an upload under way, in this process or another, is no leftover,
	// whatever the age in opts. [errors.ErrUnsupported] is a backend that does not show leftovers.
	//
	// From the first call on until it is closed, the driver begins no sweep by itself, as at its
	// first use or when it lists: the caller decides what is removed.
	Sweep(ctx context.Context, opts SweepOptions) ([]Leftover, error)
}

// LeftoverAge is the default age of a leftover.
const LeftoverAge = 24 * time.Hour

// SweepOptions select leftovers and their fate.
type SweepOptions struct {
	// OlderThan is the time since the last write to a leftover. 0 is [LeftoverAge], which is also
	// the least where only the age distinguishes a leftover from an upload under way.
	OlderThan time.Duration
	// DryRun finds leftovers and removes nothing.
	DryRun bool
}

// Before returns the time before which the last write to a leftover was, for a backend where only
// the age distinguishes it from an upload under way: the clocks of hosts differ.
func (o SweepOptions) Before(now time.Time) time.Time {
	return now.Add(-max(o.OlderThan, LeftoverAge))
}

// Leftover is data of an aborted upload.
type Leftover struct {
	// Name identifies it, relative to the root: a path, or the key of the upload.
	Name string
	// Size in bytes; -1 where the backend does not report it.
	Size int64
	// ModTime is the time of the last write to it, as the backend has it.
	ModTime time.Time
}

// Sweep looks for leftovers of aborted uploads in the backend, and removes them unless it is a dry
// run; see [Sweeper]. The result is in the order of the names, and has the leftovers removed up to
// an error. ctx alone bounds its duration. A backend that keeps no leftovers, or removes them by
// itself, is [errors.ErrUnsupported].
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
