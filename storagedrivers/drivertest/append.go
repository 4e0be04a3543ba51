package drivertest

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

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
	if err != nil {
		t.Fatalf("appending: %v", err)
	}
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
		if err != nil {
			t.Fatalf("appending: %v", err)
		}
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

// testAppendRefused: a call that fails neither ends the writer nor changes the object.
func testAppendRefused(t *testing.T, e *env) {
	appender := e.appender(t)
	ctx, c := t.Context(), content{1, 200 * kib}
	w, err := appender.Append(ctx, "f/object", 0)
	if err != nil {
		t.Fatalf("appending: %v", err)
	}
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
	if err != nil {
		t.Fatalf("appending: %v", err)
	}
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
