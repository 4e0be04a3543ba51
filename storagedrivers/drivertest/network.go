package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// patient is a time-out that no test waits for, and brief one that some do.
const patient, brief = time.Minute, 3 * time.Second

// line is the way of a driver to its server, which can be disturbed.
type line struct {
	*faults.Proxy
	driver  storagedrivers.Driver
	storage *storagedrivers.Storage
}

// line returns a line to the backend of e. It skips the test if there is no network.
func (e *env) line(t *testing.T, timeout time.Duration) *line {
	t.Helper()
	if e.harness.Through == nil || e.prefix != "" {
		t.Skip("there is no network, or the keys without a prefix were tested with it")
	}
	proxy := faults.New(t, e.harness.Address)
	l := &line{Proxy: proxy, driver: e.harness.Through(e.t, proxy.Address, timeout)}
	l.storage = storagedrivers.New("line", l.driver, storagedrivers.Options{})
	t.Cleanup(func() { closed(t, l.storage) })
	test.Eventually(t, "the first check", func() bool { return l.driver.Check(t.Context()) == nil })
	return l
}

// goneHost silences or stops the host, and returns what brings it back. Data under way does not
// arrive later.
func (l *line) goneHost(gone func(bool)) (back func()) {
	gone(true)
	return func() {
		l.CloseAll()
		gone(false)
	}
}

// everyOp asserts that every method, called beside the others, fails with want, and soon. Only
// "other" is changed, because the changes may arrive nevertheless.
func (l *line) everyOp(ctx context.Context, t *testing.T, want error) {
	t.Helper()
	test.Within(t, test.Soon, "every operation", func() {
		var calls sync.WaitGroup
		for op, call := range map[string]func() error{
			"create": func() error { _, err := l.driver.Put(ctx, "other", newSource(content{2, 100}), create); return err },
			"overwrite": func() error {
				_, err := l.driver.Put(ctx, "other", newSource(content{2, 9 * mib}), overwrite)
				return err
			},
			"open":   func() error { _, _, err := l.driver.Open(ctx, "object", all); return err },
			"stat":   func() error { _, err := l.driver.Stat(ctx, "object"); return err },
			"list":   func() error { _, err := l.driver.List(ctx, storagedrivers.ListOptions{}); return err },
			"delete": func() error { return l.driver.Delete(ctx, "other", storagedrivers.DeleteOptions{}) },
			"check":  func() error { return l.driver.Check(ctx) },
		} {
			calls.Go(func() { fails(t, call(), want, op) })
		}
		calls.Wait()
	})
}

// testGoneHost: every method fails soon while the host refuses connections or is silent, and works
// again when it is back.
func testGoneHost(t *testing.T, e *env) {
	l := e.line(t, brief)
	c := content{1, 9 * mib}
	e.put(t, "object", c, create)
	for _, gone := range []func(bool){l.SetRefusing, l.SetSilent} {
		back := l.goneHost(gone)
		l.everyOp(t.Context(), t, storagedrivers.ErrUnavailable)
		back()
		test.Eventually(t, "the host to be back", func() bool {
			_, err := l.storage.Stat(t.Context(), "object")
			return err == nil
		})
		e.has(t, "object", c)
	}
	test.Eventually(t, "storing in a host that is back", func() bool {
		_, err := l.driver.Put(t.Context(), "new", newSource(c), overwrite)
		return err == nil
	})
	e.has(t, "new", c)
}

// testSilentOnTheWay: an upload and a download end if the host falls silent.
func testSilentOnTheWay(t *testing.T, e *env) {
	l := e.line(t, brief)
	c := content{1, 30 * mib}
	e.put(t, "object", c, create)
	body, _, err := l.driver.Open(t.Context(), "object", all)
	test.Must(t, err)
	defer body.Close()
	src := newSource(content{2, 30 * mib})
	src.at, src.event = 15*mib, func() error {
		l.SetSilent(true)
		return nil
	}
	test.Within(t, test.Soon, "both", func() {
		_, err := l.driver.Put(t.Context(), "new", src, create)
		fails(t, err, storagedrivers.ErrUnavailable, "storing")
		e.broken(t, body, c)
	})
	l.goneHost(l.SetSilent)()
	e.hasNot(t, "new")
	e.has(t, "object", c)
}

// broken reads the rest of c, which may be whole. An error is not that of the end, and what was
// read before is right.
func (e *env) broken(t *testing.T, body io.Reader, c content) {
	t.Helper()
	got, err := io.ReadAll(body)
	if err != nil {
		fails(t, err, storagedrivers.ErrUnavailable, "reading")
	} else if int64(len(got)) != c.size {
		t.Errorf("%d bytes of %d as if they were all", len(got), c.size)
	}
	succeeds(t, equal(bytes.NewReader(got), c.part(0, int64(len(got)))), "what was read")
}

// testCancelledWhileSilent: callers return when their context ends, whatever the host does.
func testCancelledWhileSilent(t *testing.T, e *env) {
	l := e.line(t, patient)
	c := content{1, mib}
	e.put(t, "object", c, create)
	ctx, cancel := context.WithCancel(t.Context())
	body, _, err := l.driver.Open(ctx, "object", all)
	test.Must(t, err)
	back := l.goneHost(l.SetSilent)
	time.AfterFunc(100*time.Millisecond, cancel)
	test.Within(t, test.Soon, "reading", func() {
		if got, err := io.ReadAll(body); err != nil || int64(len(got)) != c.size {
			fails(t, err, context.Canceled, "reading")
		}
	})
	_ = body.Close() // it may report the cancellation
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	l.everyOp(ctx, t, context.DeadlineExceeded)
	back()
	e.has(t, "object", c)
	e.holdsSoon(t, "object")
}

// holdsSoon waits until the backend contains exactly these keys, and nothing hidden.
func (e *env) holdsSoon(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	if e.harness.Leftovers != nil {
		test.Eventually(t, fmt.Sprintf("the backend to hold only %q", want), func() bool {
			names := e.harness.Leftovers(e.t)
			slices.Sort(names)
			return slices.Equal(names, want)
		})
	}
	e.listed(t, want...)
}

// testCutWhileStoring: if the connection is cut, an object is stored whole or not at all. A retry
// succeeds.
func testCutWhileStoring(t *testing.T, e *env) {
	l := e.line(t, patient)
	const small, large = 200 * kib, 10 * mib
	for i, tt := range []struct {
		size, at int64
		opts     storagedrivers.PutOptions
	}{
		{small, 0, create},
		{small, 100 * kib, create},
		{small, small + 100, overwrite},
		{large, 10 * kib, overwrite},
		{large, 5 * mib, create},
		{large, large - 50, overwrite},
		{large, large + 1000, create},
	} {
		what, c := fmt.Sprintf("storing %d bytes, cut at %d", tt.size, tt.at), content{uint64(i), tt.size}
		l.CutAfter(tt.at)
		_, err := l.driver.Put(t.Context(), "folder/object", newSource(c), tt.opts)
		l.CutAfter(-1)
		if err == nil {
			e.has(t, "folder/object", c)
			succeeds(t, e.storage.Delete(t.Context(), "folder/object"), "deleting")
		} else {
			fails(t, err, storagedrivers.ErrUnavailable, what)
			e.hasNot(t, "folder/object")
		}
		e.holdsSoon(t)

		l.CutAfter(tt.at)
		_, err = l.storage.Put(t.Context(), "folder/object", newSource(c), tt.opts)
		l.CutAfter(-1)
		succeeds(t, err, what+" again")
		e.has(t, "folder/object", c)
		e.holdsSoon(t, "folder/object")
		succeeds(t, e.storage.Delete(t.Context(), "folder/object"), "deleting")
	}
	if l.Cuts() == 0 {
		t.Error("nothing was cut")
	}
}

// testCutWhileReading: if the connection is cut, a reader returns the object or fails. A reader
// that has not begun, and an upload, use another connection.
func testCutWhileReading(t *testing.T, e *env) {
	l := e.line(t, patient)
	c := content{1, 10 * mib}
	e.put(t, "object", c, create)
	body, _, err := l.driver.Open(t.Context(), "object", all)
	test.Must(t, err)
	succeeds(t, equal(io.LimitReader(body, kib), c.part(0, kib)), "reading before")
	l.CloseAll()
	rest := io.MultiReader(c.part(0, kib), body)
	e.broken(t, rest, c)
	_ = body.Close() // it may report the cut
	o, err := l.storage.OpenSeeker(t.Context(), "object")
	test.Must(t, err)
	l.CloseAll()
	succeeds(t, equal(io.LimitReader(o, kib), c.part(0, kib)), "the first bytes after")
	e.broken(t, io.MultiReader(c.part(0, kib), o), c)
	_, err = o.Seek(0, io.SeekStart)
	succeeds(t, err, "seeking after")
	succeeds(t, equal(o, c.reader()), "reading again after")
	closed(t, o)
	for range 3 {
		l.CloseAll()
		_, err := l.storage.Put(t.Context(), "object", newSource(c), overwrite)
		succeeds(t, err, "storing after idle connections were cut")
	}
	e.has(t, "object", c)
	e.holdsSoon(t, "object")
}

// abort starts an upload of key and cuts it off. The host keeps what it has received.
func (e *env) abort(t *testing.T, key string) {
	t.Helper()
	if e.harness.AbortUpload != nil {
		e.harness.AbortUpload(e.t, key)
		return
	}
	proxy := faults.New(t, e.harness.Address)
	d := e.harness.Through(e.t, proxy.Address, patient)
	defer closed(t, d)
	src := newSource(content{1, 9 * mib})
	src.at, src.event = 6*mib, func() error {
		proxy.SetRefusing(true)
		return nil
	}
	_, err := d.Put(t.Context(), key, src, overwrite)
	fails(t, err, storagedrivers.ErrUnavailable, "an upload that was cut off")
	never(t, err, "an upload that was cut off", fs.ErrNotExist, fs.ErrExist, errors.ErrUnsupported)
}
