package drivertest

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// commitKeeping makes a change of an object, which is kept under a key.
func (e *env) commitKeeping(t *testing.T, source storagedrivers.Info, key string, change storagedrivers.Change) []storagedrivers.Info {
	t.Helper()
	staged, err := e.storage.StageKept(t.Context(), source)
	test.Must(t, err, "staging", source.Key)
	infos, err := e.storage.Commit(t.Context(), storagedrivers.Change{Staged: staged, Key: key, Options: create, Keeps: true}, change)
	test.Must(t, errors.Join(err, staged.Close()), "changing", change.Key)
	return infos
}

// stat returns the Info of an object.
func (e *env) stat(t *testing.T, key string) storagedrivers.Info {
	t.Helper()
	info, err := e.storage.Stat(t.Context(), key)
	test.Must(t, err, "stat", key)
	return info
}

// testKeep: an object that is removed or replaced stays under another key, with all its bytes.
func testKeep(t *testing.T, e *env) {
	sizes := e.sizesOfCopies()
	want := make([]string, 0, 2*len(sizes))
	for name, size := range sizes {
		c, newer := content{1, size}, content{2, 300}
		key, kept := name+".txt", "kept/"+name+" +ä%2F/"
		e.put(t, key, c, create)
		source := e.stat(t, key)
		staged := e.stage(t, newer)
		replacing := overwrite
		replacing.IfMatch = source.ETag
		infos := e.commitKeeping(t, source, kept+"1", storagedrivers.Change{Staged: staged, Key: key, Options: replacing})
		closed(t, staged)
		if infos[0].Key != kept+"1" || infos[0].Size != size || infos[1].Size != newer.size {
			t.Errorf("infos %+v", infos)
		}
		e.has(t, kept+"1", c)
		e.has(t, key, newer)
		source = e.stat(t, key)
		e.commitKeeping(t, source, kept+"2", storagedrivers.Change{Key: key, Options: storagedrivers.PutOptions{IfMatch: source.ETag}})
		e.hasNot(t, key)
		e.has(t, kept+"2", newer)
		want = append(want, kept+"1", kept+"2")
	}
	e.holds(t, want...)
}

// testKeepApart: what is kept does not change with the object, and the other way round.
func testKeepApart(t *testing.T, e *env) {
	old, newer := content{1, 5000}, content{2, 5000}
	source := e.stat(t, e.put(t, "a", old, create).Key)
	staged := e.stage(t, newer)
	e.commitKeeping(t, source, "kept", storagedrivers.Change{Staged: staged, Key: "a", Options: overwrite})
	closed(t, staged)
	succeeds(t, e.storeAgain(t, "kept", "a"), "bringing back")
	e.has(t, "a", old)
	e.put(t, "a", newer, overwrite)
	e.has(t, "kept", old)
	succeeds(t, e.storage.Delete(t.Context(), "kept"), "deleting what is kept")
	e.has(t, "a", newer)
	e.holds(t, "a")
}

// storeAgain stores what is kept under a key again.
func (e *env) storeAgain(t *testing.T, kept, key string) error {
	t.Helper()
	staged, err := e.storage.StageKept(t.Context(), e.stat(t, kept))
	test.Must(t, err, "staging")
	_, err = commitOne(t.Context(), e.storage, staged, key, overwrite)
	return errors.Join(err, staged.Close())
}

// testKeepChanged: only the generation that was asked for is kept, and then nothing has changed.
func testKeepChanged(t *testing.T, e *env) {
	source := e.stat(t, e.put(t, "a", content{1, 100}, create).Key)
	e.put(t, "a", content{2, 200}, overwrite)
	for _, gone := range []bool{false, true} {
		if gone {
			succeeds(t, e.storage.Delete(t.Context(), "a"), "deleting")
		}
		staged, err := e.storage.StageKept(t.Context(), source)
		if err == nil {
			_, err = e.storage.Commit(
				t.Context(), storagedrivers.Change{Staged: staged, Key: "kept", Options: create, Keeps: true}, storagedrivers.Change{Key: "a"},
			)
			closed(t, staged)
		}
		fails(t, err, storagedrivers.ErrChanged, "keeping another generation")
		e.hasNot(t, "kept")
		if !gone {
			e.has(t, "a", content{2, 200})
		}
	}
	e.holds(t)
}

// testRename: a renamed object has another key and its ModTime, and nothing is replaced by it.
func testRename(t *testing.T, e *env) {
	renamer, ok := e.driver.(storagedrivers.Renamer)
	if !ok {
		t.Skip("the driver does not rename")
	}
	source := e.stat(t, e.put(t, "a", content{1, 9000}, create).Key)
	taken := e.stat(t, e.put(t, "taken", content{2, 100}, create).Key)
	err := renamer.Rename(t.Context(), source, "taken")
	if errors.Is(err, errors.ErrUnsupported) { // that of a cache before a driver that has none
		e.has(t, "a", content{1, 9000})
		t.Skip("the driver does not rename")
	}
	fails(t, err, fs.ErrExist, "renaming to a key that exists")
	e.has(t, "a", content{1, 9000})
	succeeds(t, renamer.Rename(t.Context(), source, "f/g +ä%/b"), "renaming")
	e.hasNot(t, "a")
	e.has(t, "f/g +ä%/b", content{1, 9000})
	renamed := e.stat(t, "f/g +ä%/b")
	if !renamed.ModTime.Equal(source.ModTime) || renamed.ETag != source.ETag {
		t.Errorf("%+v, want the time and tag of %+v", renamed, source)
	}
	fails(t, renamer.Rename(t.Context(), source, "f/c"), storagedrivers.ErrChanged, "renaming a missing object")
	e.put(t, "a", content{3, 50}, create)
	fails(t, renamer.Rename(t.Context(), source, "f/c"), storagedrivers.ErrChanged, "renaming another generation")
	e.has(t, "taken", content{2, 100})
	if again := e.stat(t, "taken"); !again.Same(taken) {
		t.Errorf("%+v, want %+v", again, taken)
	}
	e.holds(t, "a", "f/g +ä%/b", "taken")
}

// testLink: a link is one object under two keys.
func testLink(t *testing.T, e *env) {
	linker, ok := e.driver.(storagedrivers.Linker)
	if !ok {
		t.Skip("the driver does not link")
	}
	source := e.stat(t, e.put(t, "a", content{1, 9000}, create).Key)
	staged, err := linker.StageLink(t.Context(), source)
	test.Must(t, err, "staging a link")
	if _, err := staged.Write([]byte("x")); err == nil {
		t.Error("a link can be written to")
	}
	e.readsCopy(t, staged, content{1, 9000})
	change := storagedrivers.Change{Staged: staged, Key: "f/b", Options: create}
	_, err = e.driver.(storagedrivers.Stager).Commit(t.Context(), []storagedrivers.Change{change}) //nolint:forcetypeassert // a Linker is one
	succeeds(t, err, "committing a link")
	closed(t, staged)
	linked := e.stat(t, "f/b")
	if linked.ETag != source.ETag || !linked.ModTime.Equal(source.ModTime) || e.stat(t, "a").ETag != source.ETag {
		t.Errorf("%+v, want the ETag and ModTime of %+v", linked, source)
	}
	e.put(t, "a", content{2, 9000}, overwrite)
	e.has(t, "f/b", content{1, 9000})
	_, err = linker.StageLink(t.Context(), source)
	fails(t, err, storagedrivers.ErrChanged, "linking a replaced object")
	succeeds(t, e.storage.Delete(t.Context(), "a"), "deleting")
	_, err = linker.StageLink(t.Context(), source)
	fails(t, err, storagedrivers.ErrChanged, "linking a missing object")
	e.has(t, "f/b", content{1, 9000})
	e.holds(t, "f/b")
}
