package drivertest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// growing finds a growing object, which must have size bytes.
func (e *env) growing(t *testing.T, s *storagedrivers.Storage, key string, size int64) *storagedrivers.Growing {
	t.Helper()
	g, err := s.Growing(t.Context(), key)
	test.Must(t, err, "finding", key)
	if g.Size() != size {
		t.Fatalf("%q has %d bytes, want %d", key, g.Size(), size)
	}
	return g
}

// appending opens a growing object for appending, which must succeed.
func appending(t *testing.T, g *storagedrivers.Growing, whole bool) *storagedrivers.GrowthWriter {
	t.Helper()
	w, err := g.Append(t.Context(), storagedrivers.GrowthOptions{Whole: whole})
	test.Must(t, err, "appending")
	return w
}

// writes appends n bytes of c from offset on.
func writes(t *testing.T, w io.Writer, c content, offset, n int64) {
	t.Helper()
	if got, err := io.Copy(w, c.part(offset, n)); err != nil || got != n {
		t.Fatalf("appended %d of %d bytes: %v", got, n, err)
	}
}

// grow adds n bytes of c to a growing object.
func grow(t *testing.T, g *storagedrivers.Growing, c content, n int64) {
	t.Helper()
	w, size := appending(t, g, false), g.Size()
	writes(t, w, c, size, n)
	succeeds(t, w.Flush(t.Context()), "flushing")
	closed(t, w)
	if g.Size() != size+n {
		t.Errorf("it has %d bytes, want %d", g.Size(), size+n)
	}
}

// grown returns a growing object with c.
func (e *env) grown(t *testing.T, key string, c content) *storagedrivers.Growing {
	t.Helper()
	g := e.growing(t, e.storage, key, 0)
	grow(t, g, c, c.size)
	return g
}

// stageGrown stages growing objects, which must succeed.
func (e *env) stageGrown(t *testing.T, objects ...*storagedrivers.Growing) storagedrivers.Staged {
	t.Helper()
	staged, err := e.storage.StageGrown(t.Context(), nil, objects...)
	test.Must(t, err, "staging")
	return staged
}

// storages returns the storage, and that of another process if there is one.
func (e *env) storages(t *testing.T) []*storagedrivers.Storage {
	t.Helper()
	if other := e.another(t); other != nil {
		return []*storagedrivers.Storage{e.storage, other}
	}
	return []*storagedrivers.Storage{e.storage, e.storage}
}

// testGrow: bytes come in parts of all sizes, by several processes, and are there after each of
// them.
func testGrow(t *testing.T, e *env) {
	storages := e.storages(t)
	c, size := content{1, 18 * mib}, int64(0)
	for i, part := range []int64{0, 1, 10, 100 * kib, 17 * mib, c.size - 17*mib - 100*kib - 11} {
		grow(t, e.growing(t, storages[i%2], "new/f/object", size), c, part)
		size += part
	}
	g := e.growing(t, e.storage, "new/f/object", c.size)
	if g.ModTime().IsZero() || g.Pieces() < 1 || g.Pieces() > 7 {
		t.Errorf("%d pieces, the last stored at %v", g.Pieces(), g.ModTime())
	}
	staged := e.stageGrown(t, g)
	succeeds(t, equal(staged, c.reader()), "reading")
	closed(t, staged)
	e.growing(t, storages[1], "new/f/object", c.size)
	succeeds(t, g.Remove(t.Context()), "removing")
	e.growing(t, e.storage, "new/f/object", 0)
	e.holds(t)
}

// testGrowMany: a process finds any number of parts of another one.
func testGrowMany(t *testing.T, e *env) {
	storages := e.storages(t)
	c, size := content{1, 12 * kib}, int64(0)
	e.growing(t, storages[1], "object", 0)
	for range 12 {
		grow(t, e.growing(t, e.storage, "object", size), c, kib)
		size += kib
	}
	g := e.growing(t, storages[1], "object", size)
	staged := e.stageGrown(t, g, g)
	succeeds(t, equal(staged, io.MultiReader(c.reader(), c.reader())), "reading it twice")
	closed(t, staged)
	succeeds(t, g.Remove(t.Context()), "removing")
	e.holds(t)
}

// testGrowWhole: nothing of a whole part is stored before it is flushed.
func testGrowWhole(t *testing.T, e *env) {
	c := content{1, 300 * kib}
	g := e.growing(t, e.storage, "f/object", 0)
	for _, from := range []int64{0, 100 * kib} {
		w := appending(t, g, true)
		writes(t, w, c, from, 50*kib)
		closed(t, w)
		e.growing(t, e.storage, "f/object", from)
		w = appending(t, g, true)
		writes(t, w, c, from, 100*kib)
		e.growing(t, e.storage, "f/object", from)
		succeeds(t, w.Flush(t.Context()), "flushing")
		closed(t, w)
		g = e.growing(t, e.storage, "f/object", from+100*kib)
	}
	staged := e.stageGrown(t, g)
	succeeds(t, equal(staged, c.part(0, 200*kib)), "reading")
	closed(t, staged)
	succeeds(t, g.Remove(t.Context()), "removing")
	e.holds(t)
}

// testGrowRefused: what cannot grow is not changed.
func testGrowRefused(t *testing.T, e *env) {
	_, err := e.storage.Growing(t.Context(), "../f")
	fails(t, err, storagedrivers.ErrInvalidKey, "finding")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = e.storage.Growing(cancelled, "f/object")
	fails(t, err, context.Canceled, "finding")
	w := appending(t, e.growing(t, e.storage, "f/object", 0), false)
	writes(t, w, content{1, 100}, 0, 100)
	succeeds(t, w.Flush(cancelled), "flushing after the end of a request")
	closed(t, w)
	late := e.growing(t, e.storage, "f/object", 100)
	succeeds(t, e.growing(t, e.storage, "f/object", 100).Remove(t.Context()), "removing")
	_, err = e.storage.StageGrown(t.Context(), nil, late)
	fails(t, err, storagedrivers.ErrChanged, "staging removed bytes")
	e.holds(t)
}

// testGrowOvertaken: a writer that waits for its client blocks no other writer, of this driver or
// another one, and adds nothing behind the bytes of others.
func testGrowOvertaken(t *testing.T, e *env) {
	storages := append(e.storages(t), e.storage)
	c, size := content{1, 3 * mib}, int64(0)
	var before *storagedrivers.GrowthWriter
	for _, s := range storages {
		w := appending(t, e.growing(t, s, "f/object", size), false)
		writes(t, w, c, size, mib)
		succeeds(t, w.Flush(t.Context()), "flushing")
		size += mib
		if before != nil {
			_, err := before.Write([]byte("late"))
			fails(t, cmp.Or(err, before.Flush(t.Context())), storagedrivers.ErrChanged, "appending behind others")
			closed(t, before)
		}
		before = w
	}
	closed(t, before)
	staged := e.stageGrown(t, e.growing(t, e.storage, "f/object", size))
	succeeds(t, equal(staged, c.reader()), "reading")
	closed(t, staged)
}

// testGrowRace: each byte of concurrent writers is behind those that it was expected behind.
func testGrowRace(t *testing.T, e *env) {
	c, storages := content{1, 640 * kib}, e.storages(t)
	var full atomic.Bool
	atOnce(6, func(i int) {
		for !full.Load() {
			size, err := growPart(t.Context(), storages[i%2], c)
			if err != nil {
				t.Errorf("racing: %v", err)
				return
			}
			if size == c.size {
				full.Store(true)
			}
		}
	})
	g := e.growing(t, e.storage, "f/object", c.size)
	staged := e.stageGrown(t, g)
	succeeds(t, equal(staged, c.reader()), "reading")
	closed(t, staged)
	succeeds(t, g.Remove(t.Context()), "removing")
	e.holds(t)
}

// growPart adds a part of c, and returns the size before. It returns no error that another writer
// explains.
func growPart(ctx context.Context, s *storagedrivers.Storage, c content) (int64, error) {
	g, err := s.Growing(ctx, "f/object")
	if err != nil || g.Size() == c.size {
		return c.size, err
	}
	size := g.Size()
	w, err := g.Append(ctx, storagedrivers.GrowthOptions{})
	if err == nil {
		_, err = io.Copy(w, c.part(size, min(32*kib, c.size-size)))
		err = errors.Join(err, w.Flush(ctx), w.Close())
	}
	if errors.Is(err, storagedrivers.ErrChanged) {
		err = nil
	}
	return size, err
}

// testGrowClose: a writer keeps its storage open, and so do staged bytes.
func testGrowClose(t *testing.T, e *env) {
	closes := 0
	s := storagedrivers.New("closed", e.driver, storagedrivers.Options{Close: func() error {
		closes++
		return nil
	}})
	c := content{1, 100}
	g := e.growing(t, s, "object", 0)
	grow(t, g, c, c.size)
	staged, err := s.StageGrown(t.Context(), nil, g)
	test.Must(t, err, "staging")
	closed(t, s)
	_, err = s.Growing(t.Context(), "object")
	fails(t, err, storagedrivers.ErrClosed, "finding after closing")
	_, err = s.StageGrown(t.Context(), nil, g)
	fails(t, err, storagedrivers.ErrClosed, "staging after closing")
	if closes != 0 {
		t.Error("the driver was closed while bytes were staged")
	}
	closed(t, staged)
	if closes != 1 {
		t.Errorf("the driver was closed %d times, want once", closes)
	}
	e.growing(t, e.storage, "object", c.size)
}

// testStageGrown: grown bytes are committed like others, and stay until they are removed.
func testStageGrown(t *testing.T, e *env) {
	for i, opts := range []storagedrivers.PutOptions{create, overwrite} {
		c := content{uint64(i), 9 * mib}
		g := e.grown(t, "grown", c)
		staged := e.stageGrown(t, g)
		succeeds(t, equal(staged, c.reader()), "reading")
		_, err := staged.Seek(kib, io.SeekStart)
		succeeds(t, err, "seeking")
		succeeds(t, equal(staged, c.part(kib, c.size-kib)), "reading from there")
		if i == 0 {
			e.put(t, "f/taken", content{9, 10}, create)
			_, err = commitOne(t.Context(), e.storage, staged, "f/taken", create)
			fails(t, err, fs.ErrExist, "committing under an existing key")
		}
		e.commit(t, staged, "f/item", c, opts)
		closed(t, staged)
		e.has(t, "f/item", c)
		again := e.stageGrown(t, e.growing(t, e.storage, "grown", c.size))
		succeeds(t, equal(again, c.reader()), "reading committed bytes")
		closed(t, again)
		succeeds(t, g.Remove(t.Context()), "removing")
		e.has(t, "f/item", c)
		e.holds(t, "f/item", "f/taken")
	}
}

// testStageGrownAgain: bytes that were staged and not committed can grow and be staged again.
func testStageGrownAgain(t *testing.T, e *env) {
	c, taken := content{1, 300 * kib}, content{2, 100}
	e.put(t, "f/taken", taken, create)
	g := e.growing(t, e.storage, "grown", 0)
	grow(t, g, c, 100*kib)
	closed(t, e.stageGrown(t, g))
	for g.Size() < c.size {
		staged, other := e.stageGrown(t, g), e.stage(t, taken)
		_, err := e.storage.Commit(t.Context(),
			storagedrivers.Change{Staged: staged, Key: "f/item"}, storagedrivers.Change{Staged: other, Key: "f/taken"})
		fails(t, err, fs.ErrExist, "committing")
		closed(t, staged)
		closed(t, other)
		grow(t, g, c, 100*kib)
	}
	staged := e.stageGrown(t, g)
	e.commit(t, staged, "f/item", c, create)
	succeeds(t, g.Remove(t.Context()), "removing")
	closed(t, staged)
	e.has(t, "f/item", c)
	e.holds(t, "f/item", "f/taken")
}

// testStageGrownElsewhere: grown bytes are staged on another storage.
func testStageGrownElsewhere(t *testing.T, e *env) {
	c, other := content{1, 100 * kib}, e.storages(t)[1]
	staged, err := other.StageGrown(t.Context(), nil, e.grown(t, "grown", c))
	test.Must(t, err, "staging")
	_, err = commitOne(t.Context(), other, staged, "f/item", create)
	succeeds(t, err, "committing")
	closed(t, staged)
	e.has(t, "f/item", c)
}

// grownChanges returns changes that create "f/item" and overwrite "f/old" from grown objects, and
// create "f/staged".
func grownChanges(t *testing.T, e *env) ([]member, []storagedrivers.Change) {
	t.Helper()
	all := []member{
		{"f/item", content{1, 9 * mib}, create},
		{"f/old", content{2, 300 * kib}, overwrite},
		{"f/staged", content{3, 100}, create},
	}
	changes := changesOf(t, e.storage, all[2:])
	for i, m := range all[:2] {
		staged := e.stageGrown(t, e.grown(t, "grown/"+m.key, m.c))
		changes = slices.Insert(changes, i, storagedrivers.Change{Staged: staged, Key: m.key, Options: m.opts})
	}
	return all, changes
}

func testStageGrownTogether(t *testing.T, e *env) {
	e.put(t, "f/old", content{4, 64 * kib}, create)
	all, changes := grownChanges(t, e)
	_, err := e.storage.Commit(t.Context(), changes...)
	succeeds(t, err, "committing")
	closeAll(t, changes)
	for _, m := range all {
		e.has(t, m.key, m.c)
	}
	for _, m := range all[:2] {
		succeeds(t, e.growing(t, e.storage, "grown/"+m.key, m.c.size).Remove(t.Context()), "removing")
		e.has(t, m.key, m.c)
	}
	e.holds(t, "f/item", "f/old", "f/staged")
}

// testStageGrownCrash: a crash before a commit keeps the grown objects and nothing else.
func testStageGrownCrash(t *testing.T, e *env) {
	if e.harness.Kill == nil || e.harness.Another == nil {
		t.Skip("the harness cannot end a process")
	}
	old := content{4, 64 * kib}
	e.put(t, "f/old", old, create)
	running, dying := e.storage, e.harness.Another(e.t)
	e.storage = storagedrivers.New("dying", behind(dying, e.prefix), storagedrivers.Options{})
	all, changes := grownChanges(t, e)
	e.harness.Kill(e.t, dying)
	e.storage = running
	e.another(t)
	e.has(t, "f/old", old)
	for _, m := range all[:2] {
		e.growing(t, e.storage, "grown/"+m.key, m.c.size)
	}
	e.listed(t, "f/old", "grown/f/item", "grown/f/old")
	for _, c := range changes {
		_ = c.Staged.Close() // it returns an error of the killed driver
	}
	staged := e.stageGrown(t, e.growing(t, e.storage, "grown/f/item", all[0].c.size))
	e.commit(t, staged, "f/item", all[0].c, create)
	closed(t, staged)
	e.holds(t, "f/item", "f/old", "grown/f/item", "grown/f/old")
}

// appender returns the driver as an Appender, and skips the test if it is none on this system.
func (e *env) appender(t *testing.T) storagedrivers.Appender {
	t.Helper()
	appender, ok := e.driver.(storagedrivers.Appender)
	if !ok {
		t.Skip("the driver is no Appender")
	}
	w, err := appender.Append(t.Context(), "probe", 0)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the system cannot append")
	}
	test.Must(t, err, "appending")
	closed(t, w)
	succeeds(t, e.storage.Delete(t.Context(), "probe"), "deleting")
	e.holds(t)
	return appender
}

// fruitless asserts that no call of w succeeds, and closes it.
func fruitless(t *testing.T, w storagedrivers.Appended, want error) {
	t.Helper()
	n, err := w.Write([]byte("late"))
	fails(t, err, want, "appending")
	if n != 0 {
		t.Errorf("appended %d bytes", n)
	}
	fails(t, w.Flush(t.Context()), want, "flushing")
	_, err = w.Adopt(t.Context())
	fails(t, err, want, "adopting")
	closed(t, w)
}

// testAppend: an object that grows is visible, and each size has a tag of its own.
func testAppend(t *testing.T, e *env) {
	appender := e.appender(t)
	c, size := content{1, 10 * mib}, int64(0)
	tags := map[string]bool{}
	for _, parts := range [][]int64{{0, 1, 10}, {}, {9 * mib, 1}} {
		w, err := appender.Append(t.Context(), "new/f/object", size)
		test.Must(t, err, "appending")
		for _, n := range parts {
			writes(t, w, c, size, n)
			size += n
			if info := e.hasPart(t, "new/f/object", c, size); info.ETag != "" && n > 0 {
				if tags[info.ETag] {
					t.Errorf("the tag of %d bytes is that of others", size)
				}
				tags[info.ETag] = true
			}
		}
		for range 2 {
			succeeds(t, w.Flush(t.Context()), "flushing")
		}
		closed(t, w)
		e.holds(t, "new/f/object")
	}
}

// hasPart asserts that key holds the first size bytes of c, and returns the Info.
func (e *env) hasPart(t *testing.T, key string, c content, size int64) storagedrivers.Info {
	t.Helper()
	body, info, err := e.storage.Open(t.Context(), key, all)
	test.Must(t, err, "opening", key)
	defer closed(t, body)
	if info.Size != size {
		t.Errorf("%q has %d bytes, want %d", key, info.Size, size)
	}
	succeeds(t, equal(body, c.part(0, size)), "reading a part")
	stat, err := e.storage.Stat(t.Context(), key)
	succeeds(t, err, "stat")
	sameInfo(t, "growing", info, stat)
	return info
}

// testAppendRefused: a call that fails neither ends the writer nor changes the object.
func testAppendRefused(t *testing.T, e *env) {
	appender := e.appender(t)
	ctx, c := t.Context(), content{1, 200 * kib}
	w, err := appender.Append(ctx, "f/object", 0)
	test.Must(t, err, "appending")
	writes(t, w, c, 0, 100*kib)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for _, tt := range []struct {
		ctx  context.Context //nolint:containedctx // the argument of a call
		key  string
		size int64
		want error
	}{
		{ctx, "f/object", 0, storagedrivers.ErrChanged},
		{ctx, "f/object", 100*kib - 1, storagedrivers.ErrChanged},
		{ctx, "f/object", 100*kib + 1, storagedrivers.ErrChanged},
		{ctx, "f/missing", 1, fs.ErrNotExist},
		{cancelled, "f/object", 100 * kib, context.Canceled},
		{cancelled, "f/missing", 0, context.Canceled},
	} {
		_, err := appender.Append(tt.ctx, tt.key, tt.size)
		fails(t, err, tt.want, "appending to "+tt.key)
	}
	fails(t, w.Flush(cancelled), context.Canceled, "flushing")
	writes(t, w, c, 100*kib, 100*kib)
	succeeds(t, w.Flush(ctx), "flushing")
	succeeds(t, e.storage.Delete(ctx, "f/object"), "deleting")
	fruitless(t, w, fs.ErrNotExist)
	e.holds(t)

	e.put(t, "f/object", c, create)
	for _, key := range []string{"f", "f/object/below"} {
		w, err := appender.Append(ctx, key, 0)
		if err == nil { // keys are no paths
			closed(t, w)
			succeeds(t, e.storage.Delete(ctx, key), "deleting")
			continue
		}
		fails(t, err, storagedrivers.ErrInvalidKey, "appending to "+key)
	}
	e.holds(t, "f/object")
}

// testAdopt: an adopted object keeps writers out until it is closed, and a committed one for good.
func testAdopt(t *testing.T, e *env) {
	appender := e.appender(t)
	ctx, c := t.Context(), content{1, mib}
	g := e.grown(t, "grown", c)
	late, err := appender.Append(ctx, "grown", c.size)
	test.Must(t, err, "appending")
	staged := e.stageGrown(t, g)
	_, err = staged.Write([]byte("late"))
	fails(t, err, errors.ErrUnsupported, "writing to an adopted object")
	appenders := []storagedrivers.Appender{appender}
	if e.harness.Another != nil {
		other := behind(e.harness.Another(e.t), e.prefix)
		succeeds(t, other.Check(ctx), "the first check")
		appenders = append(appenders, other.(storagedrivers.Appender)) //nolint:forcetypeassert // as the first one
	}
	for _, other := range appenders {
		_, err := other.Append(ctx, "grown", c.size)
		fails(t, err, storagedrivers.ErrInUse, "appending to an adopted object")
	}
	_, err = late.Write([]byte("late"))
	fails(t, err, storagedrivers.ErrInUse, "appending to an adopted object")
	e.commit(t, staged, "f/item", c, create)
	e.has(t, "grown", c)
	closed(t, staged)
	_, err = appender.Append(ctx, "grown", c.size)
	fails(t, err, fs.ErrExist, "appending to a committed object")
	fruitless(t, late, fs.ErrExist)
	e.holds(t, "f/item", "grown")
	succeeds(t, e.storage.Delete(ctx, "grown"), "deleting")
	e.has(t, "f/item", c)
	e.holds(t, "f/item")
}
