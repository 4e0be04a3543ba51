package storagedrivers_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// sweeper is a driver whose Sweep is set by the test.
type sweeper struct {
	*memory.Driver
	sweep func(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error)
}

func (s *sweeper) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	return s.sweep(ctx, opts)
}

func TestSweepOfAPlaceWithoutLeftovers(t *testing.T) {
	t.Parallel()
	s := open(t, memory.New(), storagedrivers.Options{})
	left, err := s.Sweep(t.Context(), storagedrivers.SweepOptions{})
	test.Is(t, err, errors.ErrUnsupported)
	if opErr, ok := errors.AsType[*storagedrivers.OpError](err); !ok || opErr.Op != "sweep" || left != nil {
		t.Errorf("left %v, error %#v, want an OpError", left, err)
	}
}

func TestSweepAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 3, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		given, want time.Duration // of OlderThan
		before      time.Time
	}{
		{0, 24 * time.Hour, now.Add(-24 * time.Hour)},
		{-time.Hour, 24 * time.Hour, now.Add(-24 * time.Hour)},
		{time.Minute, time.Minute, now.Add(-24 * time.Hour)},
		{48 * time.Hour, 48 * time.Hour, now.Add(-48 * time.Hour)},
	} {
		d := &sweeper{Driver: memory.New()}
		d.sweep = func(_ context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
			if opts.OlderThan != tt.want || !opts.Before(now).Equal(tt.before) {
				t.Errorf("%v became %v, before %v, want %v, before %v",
					tt.given, opts.OlderThan, opts.Before(now), tt.want, tt.before)
			}
			return nil, nil
		}
		_, err := open(t, d, storagedrivers.Options{}).Sweep(t.Context(), storagedrivers.SweepOptions{OlderThan: tt.given})
		test.Is(t, err, nil)
	}
}

// TestSweepAgain: leftovers removed before the backend became unavailable are returned once, and so
// are those of a dry run.
func TestSweepAgain(t *testing.T) {
	t.Parallel()
	for _, dry := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			all := []storagedrivers.Leftover{{Name: "b"}, {Name: "a"}, {Name: "c"}}
			there := slices.Clone(all)
			d := &sweeper{Driver: memory.New()}
			calls := 0
			d.sweep = func(_ context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
				if calls++; calls > 1 {
					return there, nil
				}
				found := there[:1]
				if !opts.DryRun {
					there = there[1:]
				}
				return found, storagedrivers.ErrUnavailable
			}
			var seen []string
			s := open(t, d, storagedrivers.Options{Observe: func(op string, _ time.Duration, _ error) { seen = append(seen, op) }})
			got, err := s.Sweep(t.Context(), storagedrivers.SweepOptions{DryRun: dry})
			test.Is(t, err, nil)
			test.Same(t, got, []storagedrivers.Leftover{{Name: "a"}, {Name: "b"}, {Name: "c"}}, "dry run", dry, "swept")
			test.Same(t, seen, []string{"sweep"}, "observed")
		})
	}
}

// TestSweepFails: the removed leftovers are returned with the error. The storage stays open
// meanwhile.
func TestSweepFails(t *testing.T) {
	t.Parallel()
	d := &sweeper{Driver: memory.New()}
	closed := false
	s := storagedrivers.New("test", d, storagedrivers.Options{Close: func() error {
		closed = true
		return d.Close()
	}})
	d.sweep = func(context.Context, storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
		test.Is(t, s.Close(), nil)
		if closed {
			t.Error("closed under the sweep")
		}
		return []storagedrivers.Leftover{{Name: "a"}}, fs.ErrPermission
	}
	got, err := s.Sweep(t.Context(), storagedrivers.SweepOptions{})
	test.Is(t, err, fs.ErrPermission)
	if len(got) != 1 || !closed {
		t.Errorf("swept %+v, closed %t", got, closed)
	}
	_, err = s.Sweep(t.Context(), storagedrivers.SweepOptions{})
	test.Is(t, err, storagedrivers.ErrClosed)
}
