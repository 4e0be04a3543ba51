package drivertest

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// testAppendOvertaken: a writer that waits for its client blocks no other writer, of this driver or
// another one, and appends nothing behind the bytes of others.
func testAppendOvertaken(t *testing.T, e *env) {
	e.appends(t)
	storages := []*storagedrivers.Storage{e.storage, e.storage}
	if other := e.another(t); other != nil {
		storages = append(storages, other, e.storage)
	}
	c, size := content{1, 4 * mib}, int64(0)
	var before storagedrivers.Appended
	for _, s := range storages {
		w := e.append(t, s, "f/object", size)
		writes(t, w, c, size, mib)
		size += mib
		if before != nil {
			e.fruitless(t, before, storagedrivers.ErrChanged)
		}
		before = w
	}
	adopted := e.adopt(t, "f/object", size)
	_, err := before.Write([]byte("late"))
	fails(t, err, storagedrivers.ErrInUse, "appending to an adopted object")
	closed(t, adopted)
	succeeds(t, before.Flush(t.Context()), "flushing")
	closed(t, before)
	e.hasPart(t, "f/object", c, size)
	e.holds(t, "f/object")
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
			info, err := s.Stat(t.Context(), "f/object")
			if err != nil {
				t.Errorf("stat: %v", err)
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
	if errors.Is(err, storagedrivers.ErrChanged) || errors.Is(err, storagedrivers.ErrInUse) {
		return nil
	}
	return err
}
