package drivertest

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// groupMember is an object of a group.
type groupMember struct {
	key    string
	c      content
	opts   storagedrivers.PutOptions
	staged storagedrivers.Staged
}

// members returns objects of several sizes: two are created, one replaces "f/old", one replaces
// nothing.
func members() []*groupMember {
	return []*groupMember{
		{key: "f/a", c: content{1, 100}, opts: create},
		{key: "f/deeper/b", c: content{2, 9 * mib}, opts: create},
		{key: "f/old", c: content{3, 0}, opts: overwrite},
		{key: "g/c", c: content{4, 300 * kib}, opts: overwrite},
	}
}

// groupOf stages and plans objects in s, with the removal of "f/removed", up to Prepare.
func groupOf(t *testing.T, s *storagedrivers.Storage, members []*groupMember) storagedrivers.Group {
	t.Helper()
	group := s.Group()
	for _, m := range members {
		staged, err := s.Stage(t.Context())
		if err != nil {
			t.Fatalf("staging: %v", err)
		}
		m.staged = staged
		_, err = io.Copy(staged, m.c.reader())
		succeeds(t, err, "writing")
		succeeds(t, group.Plan(t.Context(), staged, m.key, m.opts), "planning "+m.key)
	}
	succeeds(t, group.PlanRemove(t.Context(), "f/removed"), "planning a removal")
	succeeds(t, group.PlanRemove(t.Context(), "f/missing"), "planning the removal of nothing")
	succeeds(t, group.Prepare(t.Context()), "preparing")
	return group
}

func commitAll(t *testing.T, members []*groupMember) {
	t.Helper()
	for _, m := range members {
		info, err := m.staged.Commit(t.Context(), m.key, m.opts)
		succeeds(t, err, "committing "+m.key)
		if err == nil && (info.Key != m.key || info.Size != m.c.size) {
			t.Errorf("committed %+v, want %q of %d bytes", info, m.key, m.c.size)
		}
	}
}

func closeAll(t *testing.T, group storagedrivers.Group, members []*groupMember) {
	t.Helper()
	closed(t, group)
	for _, m := range members {
		closed(t, m.staged)
	}
}

func (e *env) putOld(t *testing.T) (old, removed content) {
	t.Helper()
	old, removed = content{5, 64 * kib}, content{6, 10}
	e.put(t, "f/old", old, create)
	e.put(t, "f/removed", removed, create)
	return old, removed
}

func testGroup(t *testing.T, e *env) {
	old, removed := e.putOld(t)
	all := members()
	group := groupOf(t, e.storage, all)
	e.has(t, "f/old", old)
	e.has(t, "f/removed", removed)
	e.hasNot(t, "f/a")
	commitAll(t, all)
	for _, key := range []string{"f/removed", "f/missing"} {
		succeeds(t, group.Remove(t.Context(), key), "removing "+key)
	}
	succeeds(t, group.Finish(t.Context()), "finishing")
	closeAll(t, group, all)
	for _, m := range all {
		e.has(t, m.key, m.c)
	}
	e.holds(t, "f/a", "f/deeper/b", "f/old", "g/c")
}

func testGroupOfOne(t *testing.T, e *env) {
	one := members()[:1]
	group := groupOf(t, e.storage, one)
	commitAll(t, one)
	succeeds(t, group.Finish(t.Context()), "finishing")
	closeAll(t, group, one)
	e.has(t, "f/a", one[0].c)
	e.holds(t, "f/a")
}

// testGroupOfTakenKeys: an existing key is refused when it is planned or when it is committed, and
// another one is accepted.
func testGroupOfTakenKeys(t *testing.T, e *env) {
	old, _ := e.putOld(t)
	late := content{7, 10}
	all := members()
	group := groupOf(t, e.storage, all)
	e.put(t, "f/a", late, create)
	_, err := all[0].staged.Commit(t.Context(), "f/a", create)
	fails(t, err, fs.ErrExist, "committing under an existing key")
	_, err = all[1].staged.Commit(t.Context(), "f/old", create)
	fails(t, err, fs.ErrExist, "committing under another existing key")
	all[0].key, all[1].key = "f/a other", "f/b"
	commitAll(t, all)
	succeeds(t, group.Finish(t.Context()), "finishing")
	closeAll(t, group, all)
	for _, m := range all {
		e.has(t, m.key, m.c)
	}
	e.has(t, "f/a", late)
	e.holds(t, "f/a", "f/a other", "f/b", "f/old", "f/removed", "g/c")

	if _, ok := e.driver.(storagedrivers.Grouper); !ok {
		return
	}
	group = e.storage.Group()
	first, second := e.stage(t, old), e.stage(t, old)
	fails(t, group.Plan(t.Context(), first, "f/a", create), fs.ErrExist, "planning an existing key")
	succeeds(t, group.Plan(t.Context(), first, "f/d", create), "planning another key")
	fails(t, group.Plan(t.Context(), second, "f/d", create), fs.ErrExist, "planning a key twice")
	closed(t, group)
	closed(t, first)
	closed(t, second)
}

// testGroupRolledBack: the rollbacks restore the old state, if the driver can.
func testGroupRolledBack(t *testing.T, e *env) {
	old, removed := e.putOld(t)
	all := members()
	group := groupOf(t, e.storage, all)
	commitAll(t, all)
	restore := e.storage.Features().Restore
	if _, ok := e.driver.(storagedrivers.Grouper); ok {
		succeeds(t, group.Remove(t.Context(), "f/removed"), "removing")
	}
	for _, m := range slices.Backward(all) {
		err := m.staged.Rollback(t.Context())
		if m.key == "f/old" && !restore {
			fails(t, err, errors.ErrUnsupported, "rolling back an overwrite")
			old = m.c
			continue
		}
		succeeds(t, err, "rolling back "+m.key)
	}
	closeAll(t, group, all)
	e.has(t, "f/old", old)
	e.has(t, "f/removed", removed)
	e.holds(t, "f/old", "f/removed")
}

// testGroupOfRemovals: a group needs no committed objects.
func testGroupOfRemovals(t *testing.T, e *env) {
	old, removed := e.putOld(t)
	for _, finished := range []bool{false, true} {
		group := e.storage.Group()
		for _, key := range []string{"f/old", "f/removed", "f/missing"} {
			succeeds(t, group.PlanRemove(t.Context(), key), "planning a removal")
		}
		succeeds(t, group.Prepare(t.Context()), "preparing")
		e.has(t, "f/old", old)
		if finished {
			for _, key := range []string{"f/old", "f/removed", "f/missing"} {
				succeeds(t, group.Remove(t.Context(), key), "removing "+key)
			}
			succeeds(t, group.Finish(t.Context()), "finishing")
		} else if _, ok := e.driver.(storagedrivers.Grouper); ok {
			succeeds(t, group.Remove(t.Context(), "f/old"), "removing one")
			e.hasNot(t, "f/old")
		}
		closed(t, group)
		if !finished {
			e.has(t, "f/old", old)
			e.has(t, "f/removed", removed)
		}
	}
	e.holds(t)
}

func testGroupNotPrepared(t *testing.T, e *env) {
	group := e.storage.Group()
	staged := e.stage(t, content{1, 100})
	succeeds(t, group.Plan(t.Context(), staged, "f/a", create), "planning")
	closed(t, group)
	closed(t, staged)
	e.holds(t)
}

// testGroupCrash: after a crash, an unfinished group has changed nothing and a finished one
// everything.
func testGroupCrash(t *testing.T, e *env) {
	if _, ok := e.bare.(storagedrivers.Grouper); !ok {
		t.Skip("the driver commits each object by itself")
	}
	if e.harness.Kill == nil || e.harness.Another == nil {
		t.Skip("the harness cannot end a process")
	}
	old, removed := e.putOld(t)
	for _, finished := range []bool{false, true} {
		dying := e.harness.Another(e.t)
		s := storagedrivers.New("dying", behind(dying, e.prefix), storagedrivers.Options{})
		all := members()
		group := groupOf(t, s, all)
		commitAll(t, all)
		succeeds(t, group.Remove(t.Context(), "f/removed"), "removing")
		if finished {
			succeeds(t, group.Finish(t.Context()), "finishing")
		}
		e.harness.Kill(t, dying)
		e.another(t)
		if !finished {
			e.has(t, "f/old", old)
			e.has(t, "f/removed", removed)
			e.holds(t, "f/old", "f/removed")
			continue
		}
		for _, m := range all {
			e.has(t, m.key, m.c)
		}
		e.holds(t, "f/a", "f/deeper/b", "f/old", "g/c")
	}
}
