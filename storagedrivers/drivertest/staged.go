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

// stage begins an object and writes c to it.
func (p *place) stage(t *testing.T, c content) storagedrivers.Staged {
	t.Helper()
	staged, err := p.storage.Stage(t.Context())
	if err != nil {
		t.Fatalf("staging: %v", err)
	}
	if n, err := io.Copy(staged, c.reader()); err != nil || n != c.size {
		t.Fatalf("writing %d of %d bytes: %v", n, c.size, err)
	}
	return staged
}

// commit commits staged under key, which must succeed.
func (p *place) commit(t *testing.T, staged storagedrivers.Staged, key string, c content, opts storagedrivers.PutOptions) {
	t.Helper()
	info, err := staged.Commit(t.Context(), key, opts)
	if err != nil {
		t.Fatalf("committing %q: %v", key, err)
	}
	if info.Key != key || info.Size != c.size || info.ContentType != storagedrivers.ContentType(key) {
		t.Errorf("committed %+v, want %q of %d bytes", info, key, c.size)
	}
	stat, err := p.storage.Stat(t.Context(), key)
	if err != nil {
		t.Fatalf("stat: %v", err)
	}
	sameInfo(t, "commit", info, stat)
}

func (p *place) tryStage(ctx context.Context, key string, c content, opts storagedrivers.PutOptions) error {
	staged, err := p.storage.Stage(ctx)
	if err != nil {
		return err
	}
	_, err = io.Copy(staged, c.reader())
	if err == nil {
		_, err = staged.Commit(ctx, key, opts)
	}
	return errors.Join(err, staged.Close())
}

func testStage(t *testing.T, p *place) {
	sizes := []int64{0, 1, 100 * kib, mib, mib + 1, 9 * mib}
	keys := make([]string, len(sizes))
	for i, size := range sizes {
		key, c := fmt.Sprintf("folder/%d.png", size), content{uint64(size), size}
		staged := p.stage(t, c)
		if got := p.keys(t); len(got) != i {
			t.Errorf("a staged object shows: %q", got)
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
		p.commit(t, staged, key, c, create)
		closed(t, staged)
		p.has(t, key, c)
		keys[i] = key
	}
	p.holds(t, keys...)
}

func testStageOtherKey(t *testing.T, p *place) {
	for _, size := range []int64{100, 9 * mib} {
		taken, free := fmt.Sprintf("f/%d", size), fmt.Sprintf("f/%d other", size)
		old, now := content{1, 200}, content{2, size}
		p.put(t, taken, old, create)
		staged := p.stage(t, now)
		for range 2 {
			_, err := staged.Commit(t.Context(), taken, create)
			fails(t, err, fs.ErrExist, "committing under a key that is taken")
		}
		p.commit(t, staged, free, now, create)
		closed(t, staged)
		p.has(t, taken, old)
		p.has(t, free, now)
	}
	p.holds(t, "f/100", "f/100 other", "f/9437184", "f/9437184 other")
}

func testStageOverwrite(t *testing.T, p *place) {
	for i, size := range []int64{100, 9 * mib, 0} {
		c := content{uint64(i), size}
		staged := p.stage(t, c)
		p.commit(t, staged, "f/object", c, overwrite)
		p.has(t, "f/object", c)
		closed(t, staged)
		p.has(t, "f/object", c)
		p.holds(t, "f/object")
	}
}

func testStageWithoutCommit(t *testing.T, p *place) {
	for _, size := range []int64{0, 100, 9 * mib} {
		closed(t, p.stage(t, content{1, size}))
		p.holds(t)
	}
	p.put(t, "taken", content{1, 100}, create)
	staged := p.stage(t, content{2, 100})
	_, err := staged.Commit(t.Context(), "taken", create)
	fails(t, err, fs.ErrExist, "committing under a key that is taken")
	closed(t, staged)
	p.has(t, "taken", content{1, 100})
	p.holds(t, "taken")
}

func testStageCommitCancelled(t *testing.T, p *place) {
	old := content{1, 100}
	p.put(t, "old", old, create)
	for key, opts := range map[string]storagedrivers.PutOptions{"f/new": create, "old": overwrite} {
		staged := p.stage(t, content{2, 300 * kib})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := staged.Commit(ctx, key, opts)
		fails(t, err, context.Canceled, "committing "+key)
		closed(t, staged)
		p.hasNot(t, "f/new")
		p.has(t, "old", old)
		p.holds(t, "old")
	}
}

func testStageMany(t *testing.T, p *place) {
	const n = 20
	contents := make([]content, n)
	staged := make([]storagedrivers.Staged, n)
	keys := make([]string, n)
	for i := range n {
		contents[i] = content{uint64(i), int64(i) * 100 * kib}
		staged[i] = p.stage(t, contents[i])
		keys[i] = fmt.Sprintf("f/%02d", i)
	}
	p.holdsStaged(t)
	atOnce(n, func(i int) {
		_, err := staged[i].Commit(t.Context(), keys[i], create)
		succeeds(t, err, "committing at once with others")
		closed(t, staged[i])
	})
	for i, key := range keys {
		p.has(t, key, contents[i])
	}
	p.holds(t, keys...)
}

// holdsStaged asserts that what is staged has no name yet.
func (p *place) holdsStaged(t *testing.T) {
	t.Helper()
	if keys := p.keys(t); len(keys) > 0 {
		t.Errorf("staged objects show as %q", keys)
	}
}

func testStageCommitRace(t *testing.T, p *place) {
	const n = 8
	staged := make([]storagedrivers.Staged, n)
	for i := range n {
		staged[i] = p.stage(t, content{uint64(i), 100 * kib})
	}
	errs := make([]error, n)
	atOnce(n, func(i int) {
		_, errs[i] = staged[i].Commit(t.Context(), "new/folder/object", create)
	})
	for _, s := range staged {
		closed(t, s)
	}
	p.oneWon(t, "new/folder/object", errs, true)
	p.holds(t, "new/folder/object")
}
