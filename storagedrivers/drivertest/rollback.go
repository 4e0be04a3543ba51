package drivertest

import (
	"errors"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func testRollbackCreate(t *testing.T, e *env) {
	for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
		for _, size := range []int64{100, 9 * mib} {
			c := content{1, size}
			staged := e.stage(t, c)
			e.commit(t, staged, "f/object", c, opts)
			succeeds(t, staged.Rollback(t.Context()), "rolling back a creation")
			e.hasNot(t, "f/object")
			closed(t, staged)
			e.hasNot(t, "f/object")
			e.holds(t)
		}
	}

	staged := e.stage(t, content{1, 100})
	e.commit(t, staged, "gone", content{1, 100}, create)
	succeeds(t, e.storage.Delete(t.Context(), "gone"), "deleting")
	succeeds(t, staged.Rollback(t.Context()), "rolling back a deleted object")
	closed(t, staged)
	e.holds(t)
}

func testRollbackOverwrite(t *testing.T, e *env) {
	restore := e.storage.Features().Restore
	for i, size := range []int64{100, 9 * mib} {
		old, now := content{1, 64*kib + int64(i)}, content{2, size}
		e.put(t, "f/object", old, overwrite)
		staged := e.stage(t, now)
		e.commit(t, staged, "f/object", now, overwrite)
		err := staged.Rollback(t.Context())
		want := now
		if restore {
			succeeds(t, err, "rolling back an overwrite")
			want = old
		} else {
			fails(t, err, errors.ErrUnsupported, "rolling back an overwrite")
		}
		e.has(t, "f/object", want)
		closed(t, staged)
		e.has(t, "f/object", want)
		e.holds(t, "f/object")
	}
}

// testRollbackLeavesOthers: an object stored by others after the commit stays, whatever Rollback
// returns.
func testRollbackLeavesOthers(t *testing.T, e *env) {
	for name, opts := range map[string]storagedrivers.PutOptions{"created": create, "replaced": overwrite} {
		key := "f/" + name
		if opts == overwrite {
			e.put(t, key, content{1, 100}, create)
		}
		staged := e.stage(t, content{2, 200})
		e.commit(t, staged, key, content{2, 200}, opts)
		others := content{3, 300}
		e.put(t, key, others, overwrite)
		_ = staged.Rollback(t.Context()) // it may return an error
		e.has(t, key, others)
		closed(t, staged)
		e.has(t, key, others)
	}
	e.holds(t, "f/created", "f/replaced")
}
