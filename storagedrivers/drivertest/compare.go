package drivertest

import (
	"errors"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// commitIf replaces or removes an object on condition of an ETag. Without content it is removed.
func (e *env) commitIf(t *testing.T, s *storagedrivers.Storage, etag string, c *content) error {
	t.Helper()
	changes := removals("f/key")
	if c != nil {
		changes = changesOf(t, s, []member{{"f/key", *c, overwrite}})
	}
	defer closeAll(t, changes)
	changes[0].Options.IfMatch = etag
	_, err := s.Commit(t.Context(), changes...)
	return err
}

// testCompare: only the object with the ETag of IfMatch is replaced or removed.
func testCompare(t *testing.T, e *env) {
	if e.harness.IgnoresConditions {
		t.Skip("the server ignores conditions")
	}
	for _, size := range []int64{100, 9 * mib} {
		old, now := content{1, size}, content{2, size}
		first := e.put(t, "f/key", old, create)
		e.deletesOnly(t, old)
		if first.ETag == "" {
			t.Skip("the backend has no entity tags")
		}
		succeeds(t, e.commitIf(t, e.storage, first.ETag, &now), "replacing the object of an ETag")
		e.has(t, "f/key", now)
		for _, c := range []*content{&old, nil} {
			err := e.commitIf(t, e.storage, first.ETag, c)
			fails(t, err, storagedrivers.ErrChanged, "changing another object")
			if failed, ok := errors.AsType[*storagedrivers.CommitError](err); !ok || len(failed.Replaced)+len(failed.Stored) > 0 {
				t.Errorf("error %#v", err)
			}
			e.has(t, "f/key", now)
		}
		second, err := e.storage.Stat(t.Context(), "f/key")
		succeeds(t, err, "stat")
		succeeds(t, e.commitIf(t, e.storage, second.ETag, nil), "removing the object of an ETag")
		fails(t, e.commitIf(t, e.storage, second.ETag, &old), storagedrivers.ErrChanged, "replacing a missing object")
		if err := e.commitIf(t, e.storage, second.ETag, nil); err != nil { // some backends do not report it
			fails(t, err, storagedrivers.ErrChanged, "removing a missing object")
		}
		e.holds(t)
	}
}

// deletesOnly asserts that the driver itself does not delete the object, whose content is c, on
// condition of another ETag.
func (e *env) deletesOnly(t *testing.T, c content) {
	t.Helper()
	err := e.driver.Delete(t.Context(), "f/key", storagedrivers.DeleteOptions{IfMatch: `"other"`})
	want := errors.ErrUnsupported
	if e.driver.Features().Compare == storagedrivers.Atomic {
		want = storagedrivers.ErrChanged
	}
	fails(t, err, want, "the driver deleting another object")
	e.has(t, "f/key", c)
}

// testCompareRace: of several changes with one ETag by several drivers, one succeeds. If it is a
// removal, others may succeed too, where the backend does not report a missing object.
func testCompareRace(t *testing.T, e *env) {
	if e.harness.IgnoresConditions || e.harness.InexactConditions || e.storage.Features().Compare != storagedrivers.Atomic {
		t.Skip("the backend does not compare by itself")
	}
	over := []*storagedrivers.Storage{e.storage}
	if other := e.another(t); other != nil {
		over = append(over, other)
	}
	const n, rounds = 6, 20
	for round := range rounds {
		old := e.put(t, "f/key", content{uint64(n + round), 100}, overwrite)
		errs := make([]error, n)
		atOnce(n, func(i int) {
			c := &content{uint64(i), 200}
			if i%3 == 2 {
				c = nil
			}
			errs[i] = e.commitIf(t, over[i%len(over)], old.ETag, c)
		})
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0 && (i%3 != 2 || winner%3 != 2):
				t.Errorf("round %d: %d and %d have both changed the object", round, winner, i)
			case err == nil:
				winner = i
			default:
				fails(t, err, storagedrivers.ErrChanged, "changing an object in a race")
			}
		}
		switch {
		case winner < 0:
			t.Errorf("round %d: nobody has changed the object", round)
		case winner%3 == 2:
			e.hasNot(t, "f/key")
		default:
			e.has(t, "f/key", content{uint64(winner), 200})
		}
	}
}
