package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func testOverwrite(t *testing.T, p *place) {
	p.put(t, "new/one", content{1, 100}, overwrite)
	p.has(t, "new/one", content{1, 100})
	for i, size := range []int64{9 * mib, 100, 64 * kib, 0, 1} {
		c := content{uint64(i), size}
		p.put(t, "new/one", c, overwrite)
		p.has(t, "new/one", c)
	}
	p.holds(t, "new/one")
}

func testOverwriteWhileReading(t *testing.T, p *place) {
	old, now := content{1, 9 * mib}, content{2, 9*mib + 1}
	p.put(t, "a/b", old, create)
	body := p.open(t, "a/b")
	head := make([]byte, 64*kib)
	if _, err := io.ReadFull(body, head); err != nil {
		t.Fatal(err)
	}
	p.put(t, "a/b", now, overwrite)
	p.has(t, "a/b", now)
	p.stays(t, "the overwrite", io.MultiReader(bytes.NewReader(head), body), old)
	closed(t, body)
	p.holds(t, "a/b")
}

func testDeleteWhileReading(t *testing.T, p *place) {
	old := content{1, 9 * mib}
	p.put(t, "a/b", old, create)
	body := p.open(t, "a/b")
	head := make([]byte, 64*kib)
	if _, err := io.ReadFull(body, head); err != nil {
		t.Fatal(err)
	}
	succeeds(t, p.storage.Delete(t.Context(), "a/b"), "deleting what is read")
	p.hasNot(t, "a/b")
	p.stays(t, "the deletion", io.MultiReader(bytes.NewReader(head), body), old)
	closed(t, body)
	p.holds(t)
}

// stays asserts that a reader opened before what is on old, or fails visibly where nothing better is
// promised.
func (p *place) stays(t *testing.T, what string, body io.Reader, old content) {
	t.Helper()
	err := equal(body, old.reader())
	if errors.Is(err, storagedrivers.ErrChanged) && p.driver.Features().Replace != storagedrivers.Atomic {
		return
	}
	succeeds(t, err, "reading what was opened before "+what)
}

// testOverwritersAndReaders: whatever is read is some generation, whole.
func testOverwritersAndReaders(t *testing.T, p *place) {
	const writers, readers, rounds = 3, 3, 5
	size := func(seed uint64) int64 { return 300*kib + int64(seed) }
	p.put(t, "hot", content{0, size(0)}, create)
	over := []*storagedrivers.Storage{p.storage}
	if other := p.another(t); other != nil {
		over = append(over, other)
	}
	atOnce(writers+readers, func(i int) {
		for round := range rounds {
			if i >= writers {
				if err := p.readHot(t, over[i%len(over)]); err != nil {
					t.Errorf("reading between overwrites: %v", err)
				}
				continue
			}
			seed := uint64(i*rounds + round + 1)
			_, err := over[i%len(over)].Put(t.Context(), "hot", newSource(content{seed, size(seed)}), overwrite)
			succeeds(t, err, "overwriting at once with others")
		}
	})
	succeeds(t, p.readHot(t, p.storage), "reading after all")
	p.holds(t, "hot")
}

func (p *place) readHot(t *testing.T, s *storagedrivers.Storage) error {
	body, info, err := s.Open(t.Context(), "hot", all)
	if s.Features().Replace != storagedrivers.Atomic && visible(s, err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closed(t, body)
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if _, err = identify(b); err != nil {
		return err
	}
	if info.ETag != "" && info.Size != int64(len(b)) {
		return fmt.Errorf("%d bytes with the info of %d", len(b), info.Size)
	}
	return nil
}

func testManyGoroutines(t *testing.T, p *place) {
	const n = 32
	want := make([]string, n)
	for i := range n {
		want[i] = fmt.Sprintf("folder%d/object%02d", i%4, i)
	}
	atOnce(n, func(i int) {
		key, c := want[i], content{uint64(i), 10*kib + int64(i)}
		_, err := p.storage.Put(t.Context(), key, newSource(c), create)
		succeeds(t, err, "storing at once with others")
		p.has(t, key, c)
		info, err := p.storage.Stat(t.Context(), key)
		if err != nil || info.Size != c.size {
			t.Errorf("stat at once with others: %d bytes, want %d, error %v", info.Size, c.size, err)
		}
		_, err = p.storage.List(t.Context(), storagedrivers.ListOptions{Prefix: key})
		succeeds(t, err, "listing at once with others")
		_, err = p.storage.Put(t.Context(), key+".gone", newSource(c), create)
		succeeds(t, err, "storing at once with others")
		succeeds(t, p.storage.Delete(t.Context(), key+".gone"), "deleting at once with others")
	})
	p.holds(t, want...)
}
