package drivertest

import (
	"errors"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func testRevertCreate(t *testing.T, p *place) {
	for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
		for _, size := range []int64{100, 9 * mib} {
			c := content{1, size}
			staged := p.stage(t, c)
			p.commit(t, staged, "f/object", c, opts)
			succeeds(t, staged.Revert(t.Context()), "reverting a creation")
			p.hasNot(t, "f/object")
			closed(t, staged)
			p.hasNot(t, "f/object")
			p.holds(t)
		}
	}

	staged := p.stage(t, content{1, 100})
	p.commit(t, staged, "gone", content{1, 100}, create)
	succeeds(t, p.storage.Delete(t.Context(), "gone"), "deleting")
	succeeds(t, staged.Revert(t.Context()), "reverting what was deleted")
	closed(t, staged)
	p.holds(t)
}

func testRevertOverwrite(t *testing.T, p *place) {
	restore := p.storage.Features().Restore
	for i, size := range []int64{100, 9 * mib} {
		old, now := content{1, 64*kib + int64(i)}, content{2, size}
		p.put(t, "f/object", old, overwrite)
		staged := p.stage(t, now)
		p.commit(t, staged, "f/object", now, overwrite)
		err := staged.Revert(t.Context())
		want := now
		if restore {
			succeeds(t, err, "reverting an overwrite")
			want = old
		} else {
			fails(t, err, errors.ErrUnsupported, "reverting an overwrite")
		}
		p.has(t, "f/object", want)
		closed(t, staged)
		p.has(t, "f/object", want)
		p.holds(t, "f/object")
	}
}

// testRevertLeavesOthers: what somebody else stored after the commit stays, whatever
// Revert says to it.
func testRevertLeavesOthers(t *testing.T, p *place) {
	for name, opts := range map[string]storagedrivers.PutOptions{"created": create, "replaced": overwrite} {
		key := "f/" + name
		if opts == overwrite {
			p.put(t, key, content{1, 100}, create)
		}
		staged := p.stage(t, content{2, 200})
		p.commit(t, staged, key, content{2, 200}, opts)
		others := content{3, 300}
		p.put(t, key, others, overwrite)
		_ = staged.Revert(t.Context()) // it may say that it could not
		p.has(t, key, others)
		closed(t, staged)
		p.has(t, key, others)
	}
	p.holds(t, "f/created", "f/replaced")
}
