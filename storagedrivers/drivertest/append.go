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

// grow stores c under key by appending.
func (e *env) grow(t *testing.T, key string, c content) {
	t.Helper()
	w := e.append(t, e.storage, key, 0)
	writes(t, w, c, 0, c.size)
	succeeds(t, w.Flush(t.Context()), "flushing")
	closed(t, w)
}

// fruitless asserts that no call of w succeeds, and closes it.
func (e *env) fruitless(t *testing.T, w storagedrivers.Appended, want error) {
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
		}
		for range 2 {
			succeeds(t, w.Flush(t.Context()), "flushing")
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
	}
	fails(t, w.Flush(cancelled), context.Canceled, "flushing")
	writes(t, w, c, 100*kib, 100*kib)
	succeeds(t, w.Flush(t.Context()), "flushing")
	succeeds(t, e.storage.Delete(ctx, "f/object"), "deleting")
	e.fruitless(t, w, fs.ErrNotExist)
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

// testAppendClose: a writer keeps its storage open, and so does the object that it adopts.
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
	_, err := s.Append(t.Context(), "object", 0)
	fails(t, err, storagedrivers.ErrClosed, "appending after closing")
	writes(t, w, c, 0, c.size)
	succeeds(t, w.Flush(t.Context()), "flushing")
	staged, err := w.Adopt(t.Context())
	if err != nil {
		t.Fatalf("adopting: %v", err)
	}
	if closes != 0 {
		t.Error("the driver was closed while an object was adopted")
	}
	closed(t, staged)
	if closes != 1 {
		t.Errorf("the driver was closed %d times, want once", closes)
	}
	e.has(t, "object", c)
	e.holds(t, "object")
}
