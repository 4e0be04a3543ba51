package drivertest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// member is an object of a commit. With overwrite it follows the one before it, if that has overwrite too.
type member struct {
	key  string
	c    content
	opts storagedrivers.PutOptions
}

// members are objects of several sizes: two are created, one replaces "f/old", one replaces nothing.
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
		if err != nil {
			t.Fatalf("staging: %v", err)
		}
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

// testCommitRace: of several commits that create the same keys, at most one succeeds, and the others
// leave nothing.
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
