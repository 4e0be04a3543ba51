package drivertest

import (
	"errors"
	"io"
	"io/fs"
	"slices"
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
			_, err = commitOne(t.Context(), e.storage, staged, "f/taken", create)
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

// testAdoptAgain: an object that was adopted and not committed can be written and adopted again.
func testAdoptAgain(t *testing.T, e *env) {
	e.appends(t)
	c, taken := content{1, 300 * kib}, content{2, 100}
	e.put(t, "f/taken", taken, create)
	w := e.append(t, e.storage, "grown", 0)
	writes(t, w, c, 0, 100*kib)
	closed(t, w)
	closed(t, e.adopt(t, "grown", 100*kib))
	for size := int64(100 * kib); size < c.size; size += 100 * kib {
		staged, other := e.adopt(t, "grown", size), e.stage(t, taken)
		_, err := e.storage.Commit(t.Context(),
			storagedrivers.Change{Staged: staged, Key: "f/item"}, storagedrivers.Change{Staged: other, Key: "f/taken"})
		fails(t, err, fs.ErrExist, "committing")
		closed(t, staged)
		closed(t, other)
		e.holds(t, "f/taken", "grown")
		w := e.append(t, e.storage, "grown", size)
		writes(t, w, c, size, 100*kib)
		closed(t, w)
	}
	staged := e.adopt(t, "grown", c.size)
	e.commit(t, staged, "f/item", c, create)
	succeeds(t, e.storage.Delete(t.Context(), "grown"), "deleting")
	closed(t, staged)
	e.has(t, "f/item", c)
	e.holds(t, "f/item", "f/taken")
}

// adopted returns changes that create "f/item" and overwrite "f/old" from grown objects, and create
// "f/staged".
func adopted(t *testing.T, e *env) ([]member, []storagedrivers.Change) {
	t.Helper()
	all := []member{
		{"f/item", content{1, 9 * mib}, create},
		{"f/old", content{2, 300 * kib}, overwrite},
		{"f/staged", content{3, 100}, create},
	}
	changes := changesOf(t, e.storage, all[2:])
	for i, m := range all[:2] {
		e.grow(t, "grown/"+m.key, m.c)
		staged := e.adopt(t, "grown/"+m.key, m.c.size)
		changes = slices.Insert(changes, i, storagedrivers.Change{Staged: staged, Key: m.key, Options: m.opts})
	}
	return all, changes
}

func testAdoptTogether(t *testing.T, e *env) {
	e.appends(t)
	e.put(t, "f/old", content{4, 64 * kib}, create)
	all, changes := adopted(t, e)
	_, err := e.storage.Commit(t.Context(), changes...)
	succeeds(t, err, "committing")
	closeAll(t, changes)
	for _, m := range all {
		e.has(t, m.key, m.c)
	}
	e.holds(t, "f/item", "f/old", "f/staged", "grown/f/item", "grown/f/old")
	for _, m := range all[:2] {
		succeeds(t, e.storage.Delete(t.Context(), "grown/"+m.key), "deleting")
		e.has(t, m.key, m.c)
	}
}

// testAdoptCrash: a crash before a commit keeps the grown objects and nothing else.
func testAdoptCrash(t *testing.T, e *env) {
	e.appends(t)
	if e.harness.Kill == nil || e.harness.Another == nil {
		t.Skip("the harness cannot end a process")
	}
	old := content{4, 64 * kib}
	e.put(t, "f/old", old, create)
	running, dying := e.storage, e.harness.Another(e.t)
	e.storage = storagedrivers.New("dying", behind(dying, e.prefix), storagedrivers.Options{})
	all, changes := adopted(t, e)
	e.harness.Kill(e.t, dying)
	e.storage = running
	e.another(t)
	e.has(t, "f/old", old)
	for _, m := range all[:2] {
		e.has(t, "grown/"+m.key, m.c)
	}
	e.listed(t, "f/old", "grown/f/item", "grown/f/old")
	for _, c := range changes {
		_ = c.Staged.Close() // it returns an error of the killed driver
	}
	staged := e.adopt(t, "grown/f/item", all[0].c.size)
	e.commit(t, staged, "f/item", all[0].c, create)
	closed(t, staged)
	e.holds(t, "f/item", "f/old", "grown/f/item", "grown/f/old")
}
