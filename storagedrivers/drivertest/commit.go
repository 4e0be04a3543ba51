package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// member is an object of a commit. With overwrite it follows the one before it, if that has
// overwrite too.
type member struct {
	key  string
	c    content
	opts storagedrivers.PutOptions
}

// members are objects of several sizes: two are created, one replaces "f/old", one replaces
// nothing.
var members = []member{
	{"f/a", content{1, 100}, create},
	{"f/deeper/b", content{2, 9 * mib}, create},
	{"f/old", content{3, 0}, overwrite},
	{"g/c", content{4, 300 * kib}, overwrite},
}

// changesOf stages objects in s. The test must close them.
func changesOf(t *testing.T, s *storagedrivers.Storage, members []member) []storagedrivers.Change {
	t.Helper()
	changes := make([]storagedrivers.Change, len(members))
	var before member
	for i, m := range members {
		staged, err := s.Stage(t.Context())
		test.Must(t, err, "staging")
		_, err = io.Copy(staged, m.c.reader())
		succeeds(t, err, "writing")
		changes[i] = storagedrivers.Change{Staged: staged, Key: m.key, Options: m.opts}
		changes[i].Follows = m.opts == overwrite && before.opts == overwrite
		before = m
	}
	return changes
}

func closeAll(t *testing.T, changes []storagedrivers.Change) {
	t.Helper()
	for _, c := range changes {
		if c.Staged != nil {
			closed(t, c.Staged)
		}
	}
}

func removals(keys ...string) []storagedrivers.Change {
	changes := make([]storagedrivers.Change, len(keys))
	for i, key := range keys {
		changes[i].Key = key
	}
	return changes
}

// commitAll commits members and removals, which must succeed, and checks the result.
func (e *env) commitAll(t *testing.T, members []member, removed ...string) {
	t.Helper()
	changes := append(changesOf(t, e.storage, members), removals(removed...)...)
	infos, err := e.storage.Commit(t.Context(), changes...)
	if err != nil || len(infos) != len(changes) {
		t.Fatalf("committing: %d infos for %d changes, error %v", len(infos), len(changes), err)
	}
	closeAll(t, changes)
	for i, m := range members {
		e.has(t, m.key, m.c)
		now, err := e.storage.Stat(t.Context(), m.key)
		succeeds(t, err, "stat")
		sameInfo(t, "commit", infos[i], now)
		if changes[i].Follows && infos[i].ModTime.Before(infos[i-1].ModTime) {
			t.Errorf("%s of %v is older than %s of %v", m.key, infos[i].ModTime, infos[i-1].Key, infos[i-1].ModTime)
		}
	}
	for i := range removed {
		if infos[len(members)+i] != (storagedrivers.Info{}) {
			t.Errorf("a removal returned %+v", infos[len(members)+i])
		}
	}
}

func (e *env) putOld(t *testing.T) (old, removed content) {
	t.Helper()
	old, removed = content{5, 64 * kib}, content{6, 10}
	e.put(t, "f/old", old, create)
	e.put(t, "f/removed", removed, create)
	return old, removed
}

func testCommit(t *testing.T, e *env) {
	e.commitAll(t, nil)
	e.putOld(t)
	e.commitAll(t, members, "f/removed", "f/missing", "missing/missing")
	e.holds(t, "f/a", "f/deeper/b", "f/old", "g/c")
	for _, one := range members[2:] {
		e.commitAll(t, []member{one})
	}
	e.commitAll(t, nil, "f/a", "f/missing", "f/deeper/b")
	e.commitAll(t, nil, "f/old")
	e.commitAll(t, nil, "f/old")
	e.holds(t, "g/c")
}

// testCommitTaken: nothing has changed if a key is taken, and other keys are accepted.
func testCommitTaken(t *testing.T, e *env) {
	old, removed := e.putOld(t)
	late := content{7, 10}
	e.put(t, "f/deeper/b", late, create)
	wanted := []member{
		{"f/a", content{1, 100}, create},
		members[1],
		{"f/removed", content{8, 50}, create},
		{"f/a", content{9, 20}, create},
		members[2], members[3],
	}
	changes := append(changesOf(t, e.storage, wanted), removals("f/other")...)
	for _, want := range [][]int{{1, 2, 3}, {1, 2}} {
		for range 2 {
			_, err := e.storage.Commit(t.Context(), changes...)
			fails(t, err, fs.ErrExist, "committing under existing keys")
			exists, ok := errors.AsType[*storagedrivers.ExistsError](err)
			if !ok || !slices.Equal(exists.Taken, want) {
				t.Errorf("error %v, want an ExistsError of %v", err, want)
			}
			e.has(t, "f/old", old)
			e.has(t, "f/removed", removed)
			e.has(t, "f/deeper/b", late)
			e.listed(t, "f/deeper/b", "f/old", "f/removed")
		}
		changes[3].Key = "f/free"
	}
	changes[1].Key, changes[2].Key = "f/deeper/other", "f/other free"
	_, err := e.storage.Commit(t.Context(), changes...)
	succeeds(t, err, "committing under free keys")
	closeAll(t, changes)
	e.has(t, "f/free", wanted[3].c)
	e.has(t, "f/deeper/other", wanted[1].c)
	e.has(t, "f/deeper/b", late)
	e.has(t, "f/old", members[2].c)
	e.holds(t, "f/a", "f/deeper/b", "f/deeper/other", "f/free", "f/old", "f/other free", "f/removed", "g/c")
}

// testCommitFollowersTaken: objects of one key are taken with those that follow them, whatever the
// keys of these are.
func testCommitFollowersTaken(t *testing.T, e *env) {
	objects := []member{
		{"f/a", content{1, 100}, create},
		{"f/a.v", content{2, 10}, overwrite},
		{"f/a", content{3, 200}, create},
		{"f/a.v", content{4, 20}, overwrite},
	}
	changes := changesOf(t, e.storage, objects)
	changes[1].Follows, changes[3].Follows = true, true
	_, err := e.storage.Commit(t.Context(), changes...)
	exists, ok := errors.AsType[*storagedrivers.ExistsError](err)
	if !ok || !slices.Equal(exists.Taken, []int{2}) {
		t.Errorf("error %v, want an ExistsError of the second object", err)
	}
	e.listed(t)
	changes[2].Key, changes[3].Key = "f/b", "f/b.v"
	_, err = e.storage.Commit(t.Context(), changes...)
	succeeds(t, err, "committing under free keys")
	closeAll(t, changes)
	for i, o := range objects {
		e.has(t, changes[i].Key, o.c)
	}
	e.holds(t, "f/a", "f/a.v", "f/b", "f/b.v")
}

// testCommitRefused: nothing has changed if a change is not valid.
func testCommitRefused(t *testing.T, e *env) {
	old, removed := e.putOld(t)
	other := storagedrivers.New("other", e.driver, storagedrivers.Options{Close: func() error { return nil }})
	defer closed(t, other)
	foreign := changesOf(t, other, members[:1])
	for what, wrong := range map[string]storagedrivers.Change{
		"a removal of a replaced object": {Key: "f/old"}, "an invalid key": {Key: "../a"}, "an object of another storage": foreign[0],
	} {
		changes := append(changesOf(t, e.storage, members[1:]), removals("f/removed")...)
		_, err := e.storage.Commit(t.Context(), append(changes, wrong)...)
		if err == nil {
			t.Errorf("committed with %s", what)
		}
		closeAll(t, changes)
		e.has(t, "f/old", old)
		e.has(t, "f/removed", removed)
		e.listed(t, "f/old", "f/removed")
	}
	closeAll(t, foreign)
	e.holds(t, "f/old", "f/removed")
}

func testCommitCancelled(t *testing.T, e *env) {
	old, removed := e.putOld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, some := range [][]member{members, members[:1], members[2:3], nil} {
		changes := append(changesOf(t, e.storage, some), removals("f/removed")...)
		_, err := e.storage.Commit(ctx, changes...)
		fails(t, err, context.Canceled, "committing")
		closeAll(t, changes)
		e.has(t, "f/old", old)
		e.has(t, "f/removed", removed)
		e.holds(t, "f/old", "f/removed")
	}
}

// testCommitRace: of several commits that create the same keys, at most one succeeds, and the
// others leave nothing.
func testCommitRace(t *testing.T, e *env) {
	const n = 4
	if e.storage.Features().Create != storagedrivers.Atomic {
		t.Skip("the driver is not atomic")
	}
	var all [n][]storagedrivers.Change
	var errs [n]error
	for i := range n {
		objects := []member{{"r/a", content{uint64(i), 100}, create}, {"r/b", content{uint64(i), 200}, create}}
		if all[i] = changesOf(t, e.storage, objects); i%2 == 1 {
			slices.Reverse(all[i])
		}
	}
	atOnce(n, func(i int) { _, errs[i] = e.storage.Commit(t.Context(), all[i]...) })
	var want []string
	for i, err := range errs {
		closeAll(t, all[i])
		if err != nil {
			fails(t, err, fs.ErrExist, "committing beside others")
			continue
		}
		if want != nil {
			t.Error("two commits have created the same keys")
		}
		want = []string{"r/a", "r/b"}
		e.has(t, "r/a", content{uint64(i), 100})
		e.has(t, "r/b", content{uint64(i), 200})
	}
	e.holds(t, want...)
}

// testCommitCrash: after the end of a process, a commit that has succeeded is there, and staged
// objects are not.
func testCommitCrash(t *testing.T, e *env) {
	if e.storage.Features().Together != storagedrivers.Atomic {
		t.Skip("the driver commits each object by itself")
	}
	if e.harness.Kill == nil || e.harness.Another == nil {
		t.Skip("the harness cannot end a process")
	}
	e.putOld(t)
	dying := e.harness.Another(e.t)
	s := storagedrivers.New("dying", behind(dying, e.prefix), storagedrivers.Options{})
	changesOf(t, s, members)
	changes := append(changesOf(t, s, members), removals("f/removed")...)
	_, err := s.Commit(t.Context(), changes...)
	succeeds(t, err, "committing")
	e.harness.Kill(t, dying)
	e.another(t)
	for _, m := range members {
		e.has(t, m.key, m.c)
	}
	e.holds(t, "f/a", "f/deeper/b", "f/old", "g/c")
}

// stage stages an object and writes c to it.
func (e *env) stage(t *testing.T, c content) storagedrivers.Staged {
	t.Helper()
	staged, err := e.storage.Stage(t.Context())
	test.Must(t, err, "staging")
	if n, err := io.Copy(staged, c.reader()); err != nil || n != c.size {
		t.Fatalf("writing %d of %d bytes: %v", n, c.size, err)
	}
	return staged
}

// commit commits staged under key, which must succeed.
func (e *env) commit(t *testing.T, staged storagedrivers.Staged, key string, c content, opts storagedrivers.PutOptions) {
	t.Helper()
	info, err := commitOne(t.Context(), e.storage, staged, key, opts)
	test.Must(t, err, "committing", key)
	if info.Key != key || info.Size != c.size || info.ContentType != storagedrivers.ContentType(key) {
		t.Errorf("committed %+v, want %q of %d bytes", info, key, c.size)
	}
	stat, err := e.storage.Stat(t.Context(), key)
	test.Must(t, err, "stat")
	sameInfo(t, "commit", info, stat)
}

// commitOne commits staged data of s under key. It reads a copy if the backend does not copy it.
func commitOne(
	ctx context.Context, s *storagedrivers.Storage, staged storagedrivers.Staged, key string, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	change := storagedrivers.Change{Staged: staged, Key: key, Options: opts}
	infos, err := s.Commit(ctx, change)
	if errors.Is(err, errors.ErrUnsupported) {
		if _, err = staged.Seek(0, io.SeekStart); err == nil {
			_, err = io.Copy(io.Discard, staged)
		}
		if err == nil {
			infos, err = s.Commit(ctx, change)
		}
	}
	if err != nil {
		return storagedrivers.Info{}, err
	}
	return infos[0], nil
}

func (e *env) tryStage(ctx context.Context, key string, c content, opts storagedrivers.PutOptions) error {
	staged, err := e.storage.Stage(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(staged, c.reader())
	if err == nil {
		_, err = commitOne(ctx, e.storage, staged, key, opts)
	}
	return errors.Join(err, staged.Close())
}

func testStage(t *testing.T, e *env) {
	sizes := []int64{0, 1, 100 * kib, mib, mib + 1, 9 * mib}
	keys := make([]string, len(sizes))
	for i, size := range sizes {
		key, c := fmt.Sprintf("folder/%d.png", size), content{uint64(size), size}
		staged := e.stage(t, c)
		if got := e.keys(t); len(got) != i {
			t.Errorf("a staged object is listed: %q", got)
		}
		at, err := staged.Seek(0, io.SeekEnd)
		if err != nil || at != size {
			t.Errorf("seeking to the end of %d bytes: at %d, error %v", size, at, err)
		}
		for _, from := range []int64{0, size / 2} {
			_, err = staged.Seek(from, io.SeekStart)
			succeeds(t, err, "seeking")
			succeeds(t, equal(staged, c.part(from, size-from)), "reading back")
		}
		e.commit(t, staged, key, c, create)
		closed(t, staged)
		e.has(t, key, c)
		keys[i] = key
	}
	e.holds(t, keys...)
}

func testStageOtherKey(t *testing.T, e *env) {
	for _, size := range []int64{100, 9 * mib} {
		taken, free := fmt.Sprintf("f/%d", size), fmt.Sprintf("f/%d other", size)
		old, now := content{1, 200}, content{2, size}
		e.put(t, taken, old, create)
		staged := e.stage(t, now)
		for range 2 {
			_, err := commitOne(t.Context(), e.storage, staged, taken, create)
			fails(t, err, fs.ErrExist, "committing under an existing key")
		}
		e.commit(t, staged, free, now, create)
		closed(t, staged)
		e.has(t, taken, old)
		e.has(t, free, now)
	}
	e.holds(t, "f/100", "f/100 other", "f/9437184", "f/9437184 other")
}

func testStageOverwrite(t *testing.T, e *env) {
	for i, size := range []int64{100, 9 * mib, 0} {
		c := content{uint64(i), size}
		staged := e.stage(t, c)
		e.commit(t, staged, "f/object", c, overwrite)
		e.has(t, "f/object", c)
		closed(t, staged)
		e.has(t, "f/object", c)
		e.holds(t, "f/object")
	}
}

func testStageWithoutCommit(t *testing.T, e *env) {
	for _, size := range []int64{0, 100, 9 * mib} {
		closed(t, e.stage(t, content{1, size}))
		e.holds(t)
	}
	e.put(t, "taken", content{1, 100}, create)
	staged := e.stage(t, content{2, 100})
	_, err := commitOne(t.Context(), e.storage, staged, "taken", create)
	fails(t, err, fs.ErrExist, "committing under an existing key")
	closed(t, staged)
	e.has(t, "taken", content{1, 100})
	e.holds(t, "taken")
}

func testStageMany(t *testing.T, e *env) {
	const n = 20
	contents := make([]content, n)
	staged := make([]storagedrivers.Staged, n)
	keys := make([]string, n)
	for i := range n {
		contents[i] = content{uint64(i), int64(i) * 100 * kib}
		staged[i] = e.stage(t, contents[i])
		keys[i] = fmt.Sprintf("f/%02d", i)
	}
	e.holdsStaged(t)
	atOnce(n, func(i int) {
		_, err := commitOne(t.Context(), e.storage, staged[i], keys[i], create)
		succeeds(t, err, "committing in parallel")
		closed(t, staged[i])
	})
	for i, key := range keys {
		e.has(t, key, contents[i])
	}
	e.holds(t, keys...)
}

// holdsStaged asserts that staged objects have no name yet.
func (e *env) holdsStaged(t *testing.T) {
	t.Helper()
	if keys := e.keys(t); len(keys) > 0 {
		t.Errorf("staged objects are listed: %q", keys)
	}
}

func testStageCommitRace(t *testing.T, e *env) {
	const n = 8
	staged := make([]storagedrivers.Staged, n)
	for i := range n {
		staged[i] = e.stage(t, content{uint64(i), 100 * kib})
	}
	errs := make([]error, n)
	atOnce(n, func(i int) {
		_, errs[i] = commitOne(t.Context(), e.storage, staged[i], "new/folder/object", create)
	})
	for _, s := range staged {
		closed(t, s)
	}
	e.oneWon(t, "new/folder/object", errs, true)
	e.holds(t, "new/folder/object")
}

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
