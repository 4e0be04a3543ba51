package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// stage stages an object and writes c to it.
func (e *env) stage(t *testing.T, c content) storagedrivers.Staged {
	t.Helper()
	staged, err := e.storage.Stage(t.Context())
	if err != nil {
		t.Fatalf("staging: %v", err)
	}
	if n, err := io.Copy(staged, c.reader()); err != nil || n != c.size {
		t.Fatalf("writing %d of %d bytes: %v", n, c.size, err)
	}
	return staged
}

// commit commits staged under key, which must succeed.
func (e *env) commit(t *testing.T, staged storagedrivers.Staged, key string, c content, opts storagedrivers.PutOptions) {
	t.Helper()
	info, err := commitOne(t.Context(), e.storage, staged, key, opts)
	if err != nil {
		t.Fatalf("committing %q: %v", key, err)
	}
	if info.Key != key || info.Size != c.size || info.ContentType != storagedrivers.ContentType(key) {
		t.Errorf("committed %+v, want %q of %d bytes", info, key, c.size)
	}
	stat, err := e.storage.Stat(t.Context(), key)
	if err != nil {
		t.Fatalf("stat: %v", err)
	}
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

func testStageCommitCancelled(t *testing.T, e *env) {
	old := content{1, 100}
	e.put(t, "old", old, create)
	for key, opts := range map[string]storagedrivers.PutOptions{"f/new": create, "old": overwrite} {
		staged := e.stage(t, content{2, 300 * kib})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := commitOne(ctx, e.storage, staged, key, opts)
		fails(t, err, context.Canceled, "committing "+key)
		closed(t, staged)
		e.hasNot(t, "f/new")
		e.has(t, "old", old)
		e.holds(t, "old")
	}
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
