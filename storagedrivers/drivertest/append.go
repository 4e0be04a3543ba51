package drivertest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// appends skips the test if the driver cannot append, or not on this system.
func (e *env) appends(t *testing.T) {
	t.Helper()
	if !e.storage.CanAppend() {
		t.Skip("the driver is no Appender")
	}
	w, err := e.storage.Append(t.Context(), "probe", 0)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the system cannot append")
	}
	if err != nil {
		t.Fatalf("appending: %v", err)
	}
	closed(t, w)
	succeeds(t, e.storage.Delete(t.Context(), "probe"), "deleting")
	e.holds(t)
}

// append opens key for appending, which must succeed.
func (e *env) append(t *testing.T, s *storagedrivers.Storage, key string, size int64) storagedrivers.Appended {
	t.Helper()
	w, err := s.Append(t.Context(), key, size)
	if err != nil {
		t.Fatalf("appending to %q: %v", key, err)
	}
	return w
}

// writes appends n bytes of c from offset on.
func writes(t *testing.T, w io.Writer, c content, offset, n int64) {
	t.Helper()
	if got, err := io.Copy(w, c.part(offset, n)); err != nil || got != n {
		t.Fatalf("appended %d of %d bytes: %v", got, n, err)
	}
}

// flushes asserts that w makes size bytes durable.
func flushes(t *testing.T, w storagedrivers.Appended, size int64) {
	t.Helper()
	got, err := w.Flush(t.Context())
	if err != nil || got != size {
		t.Errorf("flushed %d bytes, error %v, want %d", got, err, size)
	}
}

// grow stores c under key by appending.
func (e *env) grow(t *testing.T, key string, c content) {
	t.Helper()
	w := e.append(t, e.storage, key, 0)
	writes(t, w, c, 0, c.size)
	flushes(t, w, c.size)
	closed(t, w)
}

// hasPart asserts that key holds the first size bytes of c, and returns the Info.
func (e *env) hasPart(t *testing.T, key string, c content, size int64) storagedrivers.Info {
	t.Helper()
	body, info, err := e.storage.Open(t.Context(), key, all)
	if err != nil {
		t.Fatalf("opening %q: %v", key, err)
	}
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

func testAppend(t *testing.T, e *env) {
	e.appends(t)
	c, size := content{1, 30 * mib}, int64(0)
	tags := map[string]bool{}
	for _, parts := range [][]int64{{0, 1, 10}, {100 * kib}, {}, {9 * mib, 1}, {c.size - 9*mib - 100*kib - 12}} {
		w := e.append(t, e.storage, "new/f/object", size)
		for _, n := range parts {
			writes(t, w, c, size, n)
			size += n
			if info := e.hasPart(t, "new/f/object", c, size); info.ETag != "" && n > 0 {
				if tags[info.ETag] {
					t.Errorf("the tag of %d bytes is that of others", size)
				}
				tags[info.ETag] = true
			}
			info, err := e.storage.FlushAppended(t.Context(), "new/f/object")
			if err != nil || info.Size != size || info.Key != "new/f/object" {
				t.Errorf("flushing beside the writer: %+v, %v, want %d bytes", info, err, size)
			}
		}
		for range 2 {
			flushes(t, w, size)
		}
		closed(t, w)
		e.hasPart(t, "new/f/object", c, size)
		e.holds(t, "new/f/object")
	}
	e.has(t, "new/f/object", c)
	succeeds(t, e.storage.Delete(t.Context(), "new/f/object"), "deleting")
	e.grow(t, "new/f/object", content{2, 100})
	e.has(t, "new/f/object", content{2, 100})
	e.holds(t, "new/f/object")
}

// testAppendTags: objects that are deleted at once do not share their tags with the next ones.
func testAppendTags(t *testing.T, e *env) {
	e.appends(t)
	tags := map[string]bool{}
	for i := range uint64(30) {
		c := content{i, 100}
		w := e.append(t, e.storage, "object", 0)
		writes(t, w, c, 0, c.size)
		tag := e.hasPart(t, "object", c, c.size).ETag
		if tag != "" && tags[tag] {
			t.Errorf("object %d has the tag of another one", i)
		}
		tags[tag] = true
		closed(t, w)
		succeeds(t, e.storage.Delete(t.Context(), "object"), "deleting")
	}
	e.holds(t)
}

// testAppendRefused: a call that fails neither ends the writer nor changes the object.
func testAppendRefused(t *testing.T, e *env) {
	e.appends(t)
	ctx, c := t.Context(), content{1, 200 * kib}
	w := e.append(t, e.storage, "f/object", 0)
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
		{ctx, "../f", 0, storagedrivers.ErrInvalidKey},
		{cancelled, "f/object", 100 * kib, context.Canceled},
		{cancelled, "f/missing", 0, context.Canceled},
	} {
		_, err := e.storage.Append(tt.ctx, tt.key, tt.size)
		fails(t, err, tt.want, "appending to "+tt.key)
		_, err = e.storage.Adopt(tt.ctx, tt.key, tt.size)
		fails(t, err, tt.want, "adopting "+tt.key)
	}
	_, err := e.storage.Adopt(ctx, "f/missing", 0)
	fails(t, err, fs.ErrNotExist, "adopting a missing object")
	_, err = e.storage.FlushAppended(ctx, "f/missing")
	fails(t, err, fs.ErrNotExist, "flushing a missing object")
	_, err = e.storage.FlushAppended(cancelled, "f/object")
	fails(t, err, context.Canceled, "flushing")
	_, err = w.Flush(cancelled)
	fails(t, err, context.Canceled, "flushing")
	writes(t, w, c, 100*kib, 100*kib)
	flushes(t, w, c.size)
	succeeds(t, e.storage.Delete(ctx, "f/object"), "deleting")
	_, err = w.Flush(ctx)
	fails(t, err, fs.ErrNotExist, "flushing a deleted object")
	closed(t, w)
	e.holds(t)

	e.put(t, "f/object", c, create)
	for _, key := range []string{"f", "f/object/below"} {
		w, err := e.storage.Append(ctx, key, 0)
		if err == nil { // keys are no paths
			closed(t, w)
			succeeds(t, e.storage.Delete(ctx, key), "deleting")
			continue
		}
		fails(t, err, storagedrivers.ErrInvalidKey, "appending to "+key)
	}
	e.holds(t, "f/object")
}

// testAppendClose: a writer keeps its storage open.
func testAppendClose(t *testing.T, e *env) {
	e.appends(t)
	closes := 0
	s := storagedrivers.New("closed", e.driver, storagedrivers.Options{Close: func() error {
		closes++
		return nil
	}})
	c := content{1, 100}
	w := e.append(t, s, "object", 0)
	closed(t, s)
	_, appendErr := s.Append(t.Context(), "object", 0)
	_, adoptErr := s.Adopt(t.Context(), "object", 0)
	_, flushErr := s.FlushAppended(t.Context(), "object")
	for op, err := range map[string]error{"append": appendErr, "adopt": adoptErr, "flush": flushErr} {
		fails(t, err, storagedrivers.ErrClosed, op+" after closing")
	}
	writes(t, w, c, 0, c.size)
	flushes(t, w, c.size)
	if closes != 0 {
		t.Error("the driver was closed while an object had a writer")
	}
	closed(t, w)
	if closes != 1 {
		t.Errorf("the driver was closed %d times, want once", closes)
	}
	e.has(t, "object", c)
	e.holds(t, "object")
}
