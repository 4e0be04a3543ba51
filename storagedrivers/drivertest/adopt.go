package drivertest

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// adopt adopts the object under key, which must succeed.
func (e *env) adopt(t *testing.T, key string, size int64) storagedrivers.Staged {
	t.Helper()
	staged, err := e.append(t, e.storage, key, size).Adopt(t.Context())
	if err != nil {
		t.Fatalf("adopting %q: %v", key, err)
	}
	return staged
}

func testAdopt(t *testing.T, e *env) {
	e.appends(t)
	for i, opts := range []storagedrivers.PutOptions{create, overwrite, overwrite} {
		c := content{uint64(i), 9 * mib}
		e.grow(t, "grown", c)
		late := e.append(t, e.storage, "grown", c.size)
		if i == 1 { // the first overwrite has nothing to replace
			succeeds(t, e.storage.Delete(t.Context(), "f/item"), "deleting")
		}
		staged := e.adopt(t, "grown", c.size)
		succeeds(t, equal(staged, c.reader()), "reading")
		_, err := staged.Seek(kib, io.SeekStart)
		succeeds(t, err, "seeking")
		succeeds(t, equal(staged, c.part(kib, c.size-kib)), "reading from there")
		_, err = staged.Write([]byte("late"))
		fails(t, err, errors.ErrUnsupported, "writing to an adopted object")
		if i == 0 {
			e.put(t, "f/taken", content{9, 10}, create)
			_, err = staged.Commit(t.Context(), "f/taken", create)
			fails(t, err, fs.ErrExist, "committing under an existing key")
			e.inUse(t, "grown", c.size)
		}
		e.commit(t, staged, "f/item", c, opts)
		e.has(t, "grown", c)
		closed(t, staged)
		e.has(t, "f/item", c)
		_, err = e.storage.Append(t.Context(), "grown", c.size)
		fails(t, err, fs.ErrExist, "appending to a committed object")
		if i == 0 {
			e.fruitless(t, late, fs.ErrExist)
		}
		e.holds(t, "f/item", "f/taken", "grown")
		succeeds(t, e.storage.Delete(t.Context(), "grown"), "deleting")
		if i > 0 {
			e.fruitless(t, late, fs.ErrNotExist)
		}
		e.has(t, "f/item", c)
		e.holds(t, "f/item", "f/taken")
	}
}

// inUse asserts that nothing can be appended to an adopted object.
func (e *env) inUse(t *testing.T, key string, size int64) {
	t.Helper()
	storages := []*storagedrivers.Storage{e.storage}
	if other := e.another(t); other != nil {
		storages = append(storages, other)
	}
	for _, s := range storages {
		_, err := s.Append(t.Context(), key, size)
		fails(t, err, storagedrivers.ErrInUse, "appending to an adopted object")
	}
}

// testAdoptRolledBack: the grown object can be written and adopted again.
func testAdoptRolledBack(t *testing.T, e *env) {
	e.appends(t)
	c, old := content{1, 300 * kib}, content{2, 100}
	e.put(t, "f/old", old, create)
	w := e.append(t, e.storage, "grown", 0)
	writes(t, w, c, 0, 100*kib)
	closed(t, w)
	closed(t, e.adopt(t, "grown", 100*kib))
	for i, opts := range []storagedrivers.PutOptions{create, overwrite, overwrite} {
		size := int64(i+1) * 100 * kib
		key := []string{"f/item", "f/item", "f/old"}[i]
		staged := e.adopt(t, "grown", size)
		_, err := staged.Commit(t.Context(), key, opts)
		succeeds(t, err, "committing")
		e.hasPart(t, key, c, size)
		succeeds(t, staged.Rollback(t.Context()), "rolling back")
		e.hasNot(t, "f/item")
		e.has(t, "f/old", old)
		closed(t, staged)
		e.holds(t, "f/old", "grown")
		w := e.append(t, e.storage, "grown", size)
		writes(t, w, c, size, min(100*kib, c.size-size))
		closed(t, w)
	}
	staged := e.adopt(t, "grown", c.size)
	e.commit(t, staged, "f/item", c, create)
	succeeds(t, e.storage.Delete(t.Context(), "grown"), "deleting")
	closed(t, staged)
	e.has(t, "f/item", c)
	e.holds(t, "f/item", "f/old")
}

// adoptedGroup is a group that creates "f/item" and overwrites "f/old" from grown objects, and
// creates "f/staged".
func adoptedGroup(t *testing.T, e *env) (storagedrivers.Group, []*groupMember) {
	t.Helper()
	all := []*groupMember{
		{key: "f/item", c: content{1, 9 * mib}, opts: create},
		{key: "f/old", c: content{2, 300 * kib}, opts: overwrite},
		{key: "f/staged", c: content{3, 100}, opts: create},
	}
	group := e.storage.Group()
	for _, m := range all {
		if m.key == "f/staged" {
			m.staged = e.stage(t, m.c)
		} else {
			e.grow(t, "grown/"+m.key, m.c)
			m.staged = e.adopt(t, "grown/"+m.key, m.c.size)
		}
		succeeds(t, group.Plan(t.Context(), m.staged, m.key, m.opts), "planning "+m.key)
	}
	succeeds(t, group.Prepare(t.Context()), "preparing")
	return group, all
}

func testAdoptGroup(t *testing.T, e *env) {
	e.appends(t)
	old := content{4, 64 * kib}
	for _, rolledBack := range []bool{true, false} {
		e.put(t, "f/old", old, overwrite)
		group, all := adoptedGroup(t, e)
		commitAll(t, all)
		want := []string{"f/old", "grown/f/item", "grown/f/old"}
		if rolledBack {
			for _, m := range all {
				succeeds(t, m.staged.Rollback(t.Context()), "rolling back")
			}
		} else {
			succeeds(t, group.Finish(t.Context()), "finishing")
			want = append(want, "f/item", "f/staged")
		}
		closeAll(t, group, all)
		for _, m := range all[:2] {
			e.has(t, "grown/"+m.key, m.c)
			if !rolledBack {
				e.has(t, m.key, m.c)
			}
		}
		if rolledBack {
			e.has(t, "f/old", old)
		}
		e.holds(t, want...)
		for _, m := range all[:2] {
			succeeds(t, e.storage.Delete(t.Context(), "grown/"+m.key), "deleting")
		}
	}
}

// testAdoptCrash: a crash before the end of a group keeps the grown objects and nothing else.
func testAdoptCrash(t *testing.T, e *env) {
	e.appends(t)
	if _, ok := e.bare.(storagedrivers.Grouper); !ok || e.harness.Kill == nil {
		t.Skip("the driver commits each object by itself, or cannot be killed")
	}
	old := content{4, 64 * kib}
	e.put(t, "f/old", old, create)
	running, dying := e.storage, e.harness.Another(e.t)
	e.storage = storagedrivers.New("dying", behind(dying, e.prefix), storagedrivers.Options{})
	_, all := adoptedGroup(t, e)
	commitAll(t, all)
	e.harness.Kill(e.t, dying)
	e.storage = running
	e.another(t)
	e.has(t, "f/old", old)
	for _, m := range all[:2] {
		e.has(t, "grown/"+m.key, m.c)
	}
	if keys := e.keys(t); len(keys) != 3 {
		t.Errorf("listed %q", keys)
	}
	for _, m := range all {
		_ = m.staged.Close() // it returns an error of the killed driver
	}
	staged := e.adopt(t, "grown/f/item", all[0].c.size)
	e.commit(t, staged, "f/item", all[0].c, create)
	closed(t, staged)
	e.holds(t, "f/item", "f/old", "grown/f/item", "grown/f/old")
}
