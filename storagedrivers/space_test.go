package storagedrivers_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// roomy is a driver that reports its space.
type roomy struct {
	*memory.Driver
	err error
}

func (r roomy) Space(context.Context) (storagedrivers.Space, error) {
	return storagedrivers.Space{Free: 2, Total: 3}, r.err
}

// TestSpace: the space is that of the driver. One that does not report it is asked nothing.
func TestSpace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		driver storagedrivers.Driver
		want   error
	}{
		{memory.New(), errors.ErrUnsupported},
		{roomy{memory.New(), errors.ErrUnsupported}, errors.ErrUnsupported},
		{roomy{memory.New(), storagedrivers.ErrUnavailable}, storagedrivers.ErrUnavailable},
		{roomy{memory.New(), nil}, nil},
	} {
		space, err := open(t, tt.driver, storagedrivers.Options{}).Space(t.Context())
		test.Is(t, err, tt.want)
		if opErr, ok := errors.AsType[*storagedrivers.OpError](err); tt.want != nil && (!ok || opErr.Op != "space") {
			t.Errorf("error %#v, want an OpError", err)
		}
		if want := (storagedrivers.Space{Free: 2, Total: 3}); (space == want) != (err == nil) || err != nil && space != (storagedrivers.Space{}) {
			t.Errorf("space %+v, error %v", space, err)
		}
	}
}

// TestSpaceOf: impossible values of a host do no harm.
func TestSpaceOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		size, available, all uint64
		want                 storagedrivers.Space
	}{
		{512, 3, 10, storagedrivers.Space{Free: 1536, Total: 5120}},
		{512, 0, 10, storagedrivers.Space{Total: 5120}},
		{1, 11, 10, storagedrivers.Space{Free: 10, Total: 10}},
		{4096, math.MaxUint64, math.MaxUint64, storagedrivers.Space{Free: math.MaxInt64, Total: math.MaxInt64}},
		{1, 1, math.MaxUint64, storagedrivers.Space{Free: 1, Total: math.MaxInt64}},
		{0, 1, 1, storagedrivers.Space{}},
		{512, 0, 0, storagedrivers.Space{}},
	} {
		got, err := storagedrivers.SpaceOf(tt.size, tt.available, tt.all)
		if got != tt.want || (err == nil) != (tt.want.Total > 0) {
			t.Errorf("%+v: %+v, error %v", tt, got, err)
		}
	}
}
