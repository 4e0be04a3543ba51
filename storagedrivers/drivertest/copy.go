package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// stageCopy stages a copy of source.
func (e *env) stageCopy(t *testing.T, source storagedrivers.Info) storagedrivers.Staged {
	t.Helper()
	staged, err := e.storage.StageCopy(t.Context(), source)
	test.Must(t, err, "staging a copy of", source.Key)
	return staged
}

// copies skips the test unless the driver copies.
func (e *env) copies(t *testing.T) {
	t.Helper()
	if e.storage.Features().Copies {
		return
	}
	source := storagedrivers.Info{Key: "key"}
	_, err := e.storage.StageCopy(t.Context(), source)
	fails(t, err, errors.ErrUnsupported, "staging a copy")
	if stager, ok := e.driver.(storagedrivers.Stager); ok {
		_, err := stager.StageCopy(t.Context(), source)
		fails(t, err, errors.ErrUnsupported, "the driver staging a copy")
	}
	t.Skip("the driver does not copy")
}

// copy copies source at once.
func (e *env) copy(ctx context.Context, source storagedrivers.Info, key string, opts storagedrivers.PutOptions) error {
	staged, err := e.storage.StageCopy(ctx, source)
	if err != nil {
		return err
	}
	_, err = commitOne(ctx, e.storage, staged, key, opts)
	return errors.Join(err, staged.Close())
}

// sizesOfCopies are in bytes. The last one is of a file that a driver may copy in parts.
func (e *env) sizesOfCopies() map[string]int64 {
	if testing.Short() || RaceDetector || e.prefix != "" {
		return map[string]int64{"empty": 0, "small": 100, "large": 9 * mib}
	}
	return map[string]int64{"empty": 0, "small": 100, "large": 9 * mib, "larger": 64*mib + 1}
}

// testCopy: a copy is an object of its own, which is read and committed like any other.
func testCopy(t *testing.T, e *env) {
	e.copies(t)
	sizes := e.sizesOfCopies()
	want := append(make([]string, 0, 1+len(sizes)), "taken")
	for name, size := range sizes {
		c := content{1, size}
		source := e.put(t, name+".txt", c, create)
		source, err := e.storage.Stat(t.Context(), source.Key)
		succeeds(t, err, "stat")
		unread := e.stageCopy(t, source)
		e.commit(t, unread, "f/"+name+" +ä%2F.png", c, create)
		closed(t, unread)

		read := e.stageCopy(t, source)
		e.readsCopy(t, read, c)
		e.put(t, "taken", content{9, 200}, overwrite)
		_, err = commitOne(t.Context(), e.storage, read, "taken", create)
		fails(t, err, fs.ErrExist, "copying to an existing key")
		e.has(t, "taken", content{9, 200})
		e.commit(t, read, "taken", c, overwrite)
		closed(t, read)
		e.has(t, "taken", c)

		opts := overwrite
		opts.IfMatch = source.ETag
		there, err := e.storage.Stat(t.Context(), "taken")
		succeeds(t, err, "stat")
		if source.ETag != "" && source.ETag != there.ETag {
			fails(t, e.copy(t.Context(), source, "taken", opts), storagedrivers.ErrChanged, "copying over another object")
			e.has(t, "taken", c)
			opts.IfMatch = there.ETag
			succeeds(t, e.copy(t.Context(), source, "taken", opts), "copying over the expected object")
			e.has(t, "taken", c)
		}
		succeeds(t, e.copy(t.Context(), source, source.Key, overwrite), "copying onto itself")
		e.has(t, source.Key, c)
		succeeds(t, e.storage.Delete(t.Context(), source.Key), "deleting")
		e.has(t, "f/"+name+" +ä%2F.png", c)
		want = append(want, "f/"+name+" +ä%2F.png")
	}
	e.holds(t, want...)
}

// readsCopy asserts that the bytes of a staged copy can be read from any offset.
func (e *env) readsCopy(t *testing.T, staged storagedrivers.Staged, c content) {
	t.Helper()
	at, err := staged.Seek(0, io.SeekEnd)
	if err != nil || at != c.size {
		t.Errorf("seeking to the end of %d bytes: at %d, error %v", c.size, at, err)
	}
	for _, from := range []int64{0, c.size / 2, 0} {
		_, err := staged.Seek(from, io.SeekStart)
		succeeds(t, err, "seeking")
		n := min(c.size-from, 3000)
		succeeds(t, equal(io.LimitReader(staged, n), c.part(from, n)), "reading a part")
	}
	_, err = staged.Seek(0, io.SeekStart)
	succeeds(t, err, "seeking")
	succeeds(t, equal(staged, c.reader()), "reading all")
}

// testCopyChanged: only the generation that was asked for is copied.
func testCopyChanged(t *testing.T, e *env) {
	e.copies(t)
	for _, size := range []int64{100, 9 * mib} {
		replaced := e.put(t, "replaced", content{1, size}, overwrite)
		staged := e.stageCopy(t, replaced)
		e.put(t, "replaced", content{2, size}, overwrite)
		fails(t, e.copy(t.Context(), replaced, "copy", create), storagedrivers.ErrChanged, "copying a replaced object")
		missing := e.put(t, "missing", content{1, size}, overwrite)
		succeeds(t, e.storage.Delete(t.Context(), "missing"), "deleting")
		for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
			err := e.copy(t.Context(), missing, "copy", opts)
			fails(t, err, storagedrivers.ErrChanged, "copying a missing object")
			never(t, err, "copying a missing object", fs.ErrExist)
		}
		// A driver that has the bytes already may commit them.
		if _, err := commitOne(t.Context(), e.storage, staged, "copy", create); err == nil {
			e.has(t, "copy", content{1, size})
			succeeds(t, e.storage.Delete(t.Context(), "copy"), "deleting")
		} else {
			fails(t, err, storagedrivers.ErrChanged, "committing a copy of a replaced object")
		}
		closed(t, staged)
	}
	e.holds(t, "replaced")
}

// testCopyCancelled: a copy that is cancelled leaves nothing.
func testCopyCancelled(t *testing.T, e *env) {
	e.copies(t)
	source := e.put(t, "source", content{1, 9 * mib}, create)
	e.put(t, "old", content{2, 100}, create)
	for key, opts := range map[string]storagedrivers.PutOptions{"new": create, "old": overwrite} {
		staged := e.stageCopy(t, source)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := commitOne(ctx, e.storage, staged, key, opts)
		fails(t, err, context.Canceled, "committing a copy")
		closed(t, staged)
		e.hasNot(t, "new")
		e.has(t, "old", content{2, 100})
	}
	e.holds(t, "source", "old")
}

// testCopyAgain: a copy that is repeated because its reply was lost is recognised, if the driver
// supports it.
func testCopyAgain(t *testing.T, e *env) {
	e.copies(t)
	for _, size := range []int64{100, 9 * mib} {
		source := e.put(t, "source", content{1, size}, overwrite)
		key := fmt.Sprint("copy of ", size)
		opts := storagedrivers.PutOptions{Mode: storagedrivers.CreateOnly, ID: "FIRST"}
		succeeds(t, e.copy(t.Context(), source, key, opts), "copying")
		err := e.copy(t.Context(), source, key, opts)
		if e.storage.Features().Repeat {
			succeeds(t, err, "repeating a copy")
		} else {
			fails(t, err, fs.ErrExist, "repeating a copy")
		}
		opts.ID = "SECOND"
		fails(t, e.copy(t.Context(), source, key, opts), fs.ErrExist, "another copy of the name")
		e.has(t, key, content{1, size})
	}
	e.holds(t, "source", "copy of 100", fmt.Sprint("copy of ", 9*mib))
}

// testCopyRace: of copies and uploads that create one name, one wins.
func testCopyRace(t *testing.T, e *env) {
	e.copies(t)
	for _, size := range []int64{100, 300 * kib} {
		source := e.put(t, "source", content{0, size}, overwrite)
		const n = 8
		errs := make([]error, n)
		atOnce(n, func(i int) {
			if i%2 == 0 {
				errs[i] = e.copy(t.Context(), source, "new/object", create)
			} else {
				_, errs[i] = e.storage.Put(t.Context(), "new/object", newSource(content{uint64(i), size}), create)
			}
		})
		e.oneCopyWon(t, errs)
		e.holds(t, "source", "new/object")
		succeeds(t, e.storage.Delete(t.Context(), "new/object"), "deleting")
	}
}

// oneCopyWon asserts the outcome of testCopyRace. All copies have the content 0.
func (e *env) oneCopyWon(t *testing.T, errs []error) {
	t.Helper()
	for i := range errs {
		if i%2 == 0 && i > 0 && errs[i] == nil {
			if errs[0] == nil {
				t.Errorf("two copies have created one name")
			}
			errs[0], errs[i] = nil, fs.ErrExist
		}
	}
	e.oneWon(t, "new/object", errs, true)
}
