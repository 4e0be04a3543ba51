package drivertest

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

func testMissing(t *testing.T, e *env) {
	e.put(t, "folder/object", content{1, 100}, create)
	for _, key := range []string{"missing", "missing/missing", "folder/missing", "folder", "folder/object/below"} {
		e.hasNot(t, key)
		succeeds(t, e.storage.Delete(t.Context(), key), "deleting a missing object")
		if err := e.driver.Delete(t.Context(), key, storagedrivers.DeleteOptions{}); err != nil {
			fails(t, err, fs.ErrNotExist, "the driver deleting a missing object")
		}
	}
	e.has(t, "folder/object", content{1, 100})
	e.holds(t, "folder/object")
}

func testDelete(t *testing.T, e *env) {
	keys := []string{"one", "folder/one", "folder/two", "folder/sub/one"}
	for i, key := range keys {
		e.put(t, key, content{uint64(i), 100}, create)
	}
	for i, key := range keys {
		succeeds(t, e.storage.Delete(t.Context(), key), "deleting "+key)
		e.hasNot(t, key)
		succeeds(t, e.storage.Delete(t.Context(), key), "deleting again "+key)
		for j := i + 1; j < len(keys); j++ {
			e.has(t, keys[j], content{uint64(j), 100})
		}
	}
	e.holds(t)
	for i, key := range keys {
		e.put(t, key, content{uint64(i) + 10, 100}, create)
		e.has(t, key, content{uint64(i) + 10, 100})
	}
	e.holds(t, keys...)
}

func testCheck(t *testing.T, e *env) {
	for range 2 {
		succeeds(t, e.storage.Check(t.Context()), "checking")
		e.holds(t)
	}
	e.put(t, "object", content{1, 100}, create)
	succeeds(t, e.storage.Check(t.Context()), "checking")
	if got, want := e.storage.Features(), e.driver.Features(); got != want {
		t.Errorf("features %+v, want %+v", got, want)
	}
	e.holds(t, "object")
}

// testClose: running operations continue after Close, and the driver is closed once, after the last
// of them.
func testClose(t *testing.T, e *env) {
	c := content{1, 9 * mib}
	e.put(t, "object", c, create)
	closes := 0
	s := storagedrivers.New("closed", e.driver, storagedrivers.Options{Close: func() error {
		closes++
		return nil
	}})
	staged, err := s.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(staged, c.part(0, mib))
	succeeds(t, err, "writing")
	body, _, err := s.Open(t.Context(), "object", all)
	if err != nil {
		t.Fatal(err)
	}
	succeeds(t, equal(io.LimitReader(body, kib), c.part(0, kib)), "reading before")
	o, err := s.OpenSeeker(t.Context(), "object")
	if err != nil {
		t.Fatal(err)
	}
	closed(t, s)
	closed(t, s)
	refusesAll(t, s)

	succeeds(t, equal(body, c.part(kib, c.size-kib)), "reading after closing the storage")
	closed(t, body)
	succeeds(t, equal(o, c.reader()), "seeker reading after closing the storage")
	_, err = o.Seek(5, io.SeekStart)
	succeeds(t, err, "seeking after closing the storage")
	succeeds(t, equal(o, c.part(5, c.size-5)), "reading from there")
	closed(t, o)
	_, err = io.Copy(staged, c.part(mib, 8*mib))
	succeeds(t, err, "writing after closing the storage")
	_, err = commitOne(t.Context(), s, staged, "staged", create)
	succeeds(t, err, "committing after closing the storage")
	if closes != 0 {
		t.Error("the driver was closed while an object was staged")
	}
	closed(t, staged)
	closed(t, body)
	closed(t, o)
	closed(t, s)
	if closes != 1 {
		t.Errorf("the driver was closed %d times, want once", closes)
	}
	refusesAll(t, s)
	e.has(t, "staged", c)
	e.holds(t, "object", "staged")
}

// refusesAll asserts that a closed storage refuses all operations.
func refusesAll(t *testing.T, s *storagedrivers.Storage) {
	t.Helper()
	ctx := t.Context()
	_, putErr := s.Put(ctx, "new", newSource(content{1, 1}), create)
	_, _, openErr := s.Open(ctx, "object", all)
	_, seekErr := s.OpenSeeker(ctx, "object")
	_, statErr := s.Stat(ctx, "object")
	_, listErr := s.List(ctx, storagedrivers.ListOptions{})
	_, stageErr := s.Stage(ctx)
	_, spaceErr := s.Space(ctx)
	if errors.Is(spaceErr, errors.ErrUnsupported) {
		spaceErr = storagedrivers.ErrClosed
	}
	for op, err := range map[string]error{
		"put": putErr, "open": openErr, "open to seek": seekErr, "stat": statErr, "list": listErr,
		"stage": stageErr, "space": spaceErr, "delete": s.Delete(ctx, "object"), "check": s.Check(ctx),
	} {
		fails(t, err, storagedrivers.ErrClosed, op+" after closing")
	}
}
