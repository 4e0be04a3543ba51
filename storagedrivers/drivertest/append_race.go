package drivertest

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// testAppendTakenOver: a later writer ends an earlier one, of this driver and of another one.
func testAppendTakenOver(t *testing.T, e *env) {
	e.appends(t)
	storages := []*storagedrivers.Storage{e.storage, e.storage}
	if other := e.another(t); other != nil {
		storages = append(storages, other, e.storage)
	}
	c, size := content{1, 4 * mib}, int64(0)
	var before storagedrivers.Appended
	for _, s := range storages {
		w := e.append(t, s, "f/object", size)
		if before != nil {
			e.superseded(t, before)
		}
		writes(t, w, c, size, mib)
		size += mib
		before = w
	}
	adopted, err := e.storage.Adopt(t.Context(), "f/object", size)
	if err != nil {
		t.Fatalf("adopting: %v", err)
	}
	e.superseded(t, before)
	closed(t, adopted)
	e.hasPart(t, "f/object", c, size)
	closed(t, e.append(t, e.storage, "f/object", size))
	e.holds(t, "f/object")
}

// superseded asserts that another writer has taken over, and closes w.
func (e *env) superseded(t *testing.T, w storagedrivers.Appended) {
	t.Helper()
	n, err := w.Write([]byte("late"))
	fails(t, err, storagedrivers.ErrSuperseded, "appending")
	if n != 0 {
		t.Errorf("a superseded writer appended %d bytes", n)
	}
	_, err = w.Flush(t.Context())
	fails(t, err, storagedrivers.ErrSuperseded, "flushing")
	closed(t, w)
}

// testAppendRace: each byte of concurrent writers is behind those that it was expected behind.
func testAppendRace(t *testing.T, e *env) {
	e.appends(t)
	c := content{1, 2 * mib}
	storages := []*storagedrivers.Storage{e.storage}
	if other := e.another(t); other != nil {
		storages = append(storages, other)
	}
	closed(t, e.append(t, e.storage, "f/object", 0))
	var full atomic.Bool
	atOnce(6, func(i int) {
		for s := storages[i%len(storages)]; !full.Load(); {
			info, err := s.FlushAppended(t.Context(), "f/object")
			if err != nil {
				t.Errorf("flushing: %v", err)
				return
			}
			if info.Size == c.size {
				full.Store(true)
				return
			}
			if err := appendPart(t.Context(), s, c, info.Size); err != nil {
				t.Errorf("racing: %v", err)
				return
			}
		}
	})
	e.has(t, "f/object", c)
	e.holds(t, "f/object")
}

// appendPart appends some blocks of c. It returns no error that another writer explains.
func appendPart(ctx context.Context, s *storagedrivers.Storage, c content, size int64) error {
	w, err := s.Append(ctx, "f/object", size)
	if err == nil {
		for range 16 {
			var n int64
			n, err = io.Copy(w, c.part(size, min(16*kib, c.size-size)))
			if size += n; err != nil {
				break
			}
		}
		err = errors.Join(err, w.Close())
	}
	for _, lost := range []error{storagedrivers.ErrChanged, storagedrivers.ErrSuperseded, storagedrivers.ErrInUse} {
		if errors.Is(err, lost) {
			return nil
		}
	}
	return err
}
