package storagedrivers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// A Sweeper is a [Driver] whose place keeps leftovers of uploads that were cut off.
type Sweeper interface {
	// Sweep looks for leftovers that are as old as opts say, and removes them unless it is
	// to leave them. It gives those that it has found, or has removed, also with an error:
	// one that cannot be removed keeps none of the others. What an upload under way uses,
	// this process's or another's, is no leftover, however old opts want them.
	// [errors.ErrUnsupported] is a place that does not tell.
	//
	// From the first call on the driver begins no sweep by itself any more, as at its first use
	// or when it lists, until it is closed: whoever asks decides what goes.
	Sweep(ctx context.Context, opts SweepOptions) ([]Leftover, error)
}

// LeftoverAge is how old a leftover is that nobody looks at any more.
const LeftoverAge = 24 * time.Hour

// SweepOptions say what is to become of which leftovers.
type SweepOptions struct {
	// OlderThan is how long nothing was written to what counts as left behind. 0 is
	// [LeftoverAge]. Where nothing but the age tells a leftover from an upload under way, less
	// than that counts as that.
	OlderThan time.Duration
	// DryRun finds leftovers and removes nothing.
	DryRun bool
}

// Before gives the time before which the last write to a leftover was, for a place where
// nothing but the age tells it from an upload under way: the clocks of hosts differ.
func (o SweepOptions) Before(now time.Time) time.Time {
	return now.Add(-max(o.OlderThan, LeftoverAge))
}

// Leftover is what an upload that was cut off has left in a place.
type Leftover struct {
	// Name tells it from others, relative to the root: a path, or the key that the object
	// was to have.
	Name string
	// Size in bytes; -1 where the place does not tell.
	Size int64
	// ModTime is when something was last written to it, as the place has it.
	ModTime time.Time
}

// Sweep looks for what uploads that were cut off have left in the place, and removes it unless
// it is to leave it; see [Sweeper]. What it gives is in the order of the names, and has what was
// removed up to an error. It takes as long as ctx lets it. A place that keeps no leftovers, or
// removes them by itself, is [errors.ErrUnsupported].
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
