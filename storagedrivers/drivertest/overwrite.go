package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func testOverwrite(t *testing.T, e *env) {
	e.put(t, "new/one", content{1, 100}, overwrite)
	e.has(t, "new/one", content{1, 100})
	for i, size := range []int64{9 * mib, 100, 64 * kib, 0, 1} {
		c := content{uint64(i), size}
		e.put(t, "new/one", c, overwrite)
		e.has(t, "new/one", c)
	}
	e.holds(t, "new/one")
}

// testDated: objects of one size under one key have different times.
func testDated(t *testing.T, e *env) {
	if !e.storage.Features().Dated {
		t.Skip("the driver may store two objects with one size and time")
	}
	seen := map[int64]int{}
	for i, opts := range []storagedrivers.PutOptions{overwrite, overwrite, overwrite, overwrite, create} {
		if i > 2 {
			succeeds(t, e.storage.Delete(t.Context(), "object"), "deleting")
		}
		at := e.put(t, "object", content{uint64(i), 100}, opts).ModTime.UnixNano()
		if earlier, found := seen[at]; found {
			t.Errorf("object %d has the time of object %d", i, earlier)
		}
		seen[at] = i
	}
}

func testOverwriteWhileReading(t *testing.T, e *env) {
	old, now := content{1, 9 * mib}, content{2, 9*mib + 1}
	e.put(t, "a/b", old, create)
	body := e.open(t, "a/b")
	head := make([]byte, 64*kib)
	if _, err := io.ReadFull(body, head); err != nil {
		t.Fatal(err)
	}
	e.put(t, "a/b", now, overwrite)
	e.has(t, "a/b", now)
	e.stays(t, "the overwrite", io.MultiReader(bytes.NewReader(head), body), old)
	closed(t, body)
	e.holds(t, "a/b")
}

func testDeleteWhileReading(t *testing.T, e *env) {
	old := content{1, 9 * mib}
	e.put(t, "a/b", old, create)
	body := e.open(t, "a/b")
	head := make([]byte, 64*kib)
	if _, err := io.ReadFull(body, head); err != nil {
		t.Fatal(err)
	}
	succeeds(t, e.storage.Delete(t.Context(), "a/b"), "deleting an open object")
	e.hasNot(t, "a/b")
	e.stays(t, "the deletion", io.MultiReader(bytes.NewReader(head), body), old)
	closed(t, body)
	e.holds(t)
}

// stays asserts that a reader that was opened before a change stays on old, or fails with an error
// if the driver does not guarantee it.
func (e *env) stays(t *testing.T, what string, body io.Reader, old content) {
	t.Helper()
	err := equal(body, old.reader())
	if errors.Is(err, storagedrivers.ErrChanged) && e.driver.Features().Replace != storagedrivers.Atomic {
		return
	}
	succeeds(t, err, "reading an object opened before "+what)
}

// testOverwritersAndReaders: every read returns some generation, complete.
func testOverwritersAndReaders(t *testing.T, e *env) {
	const writers, readers, rounds = 3, 3, 5
	size := func(seed uint64) int64 { return 300*kib + int64(seed) }
	e.put(t, "hot", content{0, size(0)}, create)
	over := []*storagedrivers.Storage{e.storage}
	if other := e.another(t); other != nil {
		over = append(over, other)
	}
	atOnce(writers+readers, func(i int) {
		for round := range rounds {
			if i >= writers {
				if err := e.readHot(t, over[i%len(over)]); err != nil {
					t.Errorf("reading between overwrites: %v", err)
				}
				continue
			}
			seed := uint64(i*rounds + round + 1)
			_, err := over[i%len(over)].Put(t.Context(), "hot", newSource(content{seed, size(seed)}), overwrite)
			succeeds(t, err, "overwriting in parallel")
		}
	})
	succeeds(t, e.readHot(t, e.storage), "reading in the end")
	e.holds(t, "hot")
}

func (e *env) readHot(t *testing.T, s *storagedrivers.Storage) error {
	late := s.Features().Replace != storagedrivers.Atomic
	body, info, err := s.Open(t.Context(), "hot", all)
	if late && visible(s, err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closed(t, body)
	b, err := io.ReadAll(body)
	if late && errors.Is(err, storagedrivers.ErrChanged) {
		return nil
	}
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

func testManyGoroutines(t *testing.T, e *env) {
	const n = 32
	want := make([]string, n)
	for i := range n {
		want[i] = fmt.Sprintf("folder%d/object%02d", i%4, i)
	}
	atOnce(n, func(i int) {
		key, c := want[i], content{uint64(i), 10*kib + int64(i)}
		_, err := e.storage.Put(t.Context(), key, newSource(c), create)
		succeeds(t, err, "storing in parallel")
		e.has(t, key, c)
		info, err := e.storage.Stat(t.Context(), key)
		if err != nil || info.Size != c.size {
			t.Errorf("stat in parallel: %d bytes, want %d, error %v", info.Size, c.size, err)
		}
		_, err = e.storage.List(t.Context(), storagedrivers.ListOptions{Prefix: key})
		succeeds(t, err, "listing in parallel")
		_, err = e.storage.Put(t.Context(), key+".gone", newSource(c), create)
		succeeds(t, err, "storing in parallel")
		succeeds(t, e.storage.Delete(t.Context(), key+".gone"), "deleting in parallel")
	})
	e.holds(t, want...)
}
