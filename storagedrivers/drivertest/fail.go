package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

var errSource = errors.New("source failure")

// breaking are the offsets at which sources fail: at the start, in the first buffer, at the end of
// parts of an upload, and inside them.
var breaking = []int64{0, 1, 10 * kib, 8 * mib, 30 * mib}

func testSourceErrorOnCreate(t *testing.T, e *env) {
	for _, at := range breaking {
		for _, want := range []error{errSource, io.ErrUnexpectedEOF} {
			what := fmt.Sprintf("creating from a source that fails at %d", at)
			e.breaks(t, what, at, want, create)
			e.hasNot(t, "folder/object")
			e.holds(t)
		}
	}
	e.put(t, "folder/object", content{1, 100}, create)
	e.has(t, "folder/object", content{1, 100})
}

func testSourceErrorOnOverwrite(t *testing.T, e *env) {
	old := content{1, 64 * kib}
	e.put(t, "folder/object", old, create)
	for _, at := range breaking {
		for _, want := range []error{errSource, io.ErrUnexpectedEOF} {
			what := fmt.Sprintf("overwriting from a source that fails at %d", at)
			e.breaks(t, what, at, want, overwrite)
			e.has(t, "folder/object", old)
			e.holds(t, "folder/object")
		}
	}
}

func (e *env) breaks(t *testing.T, what string, at int64, want error, opts storagedrivers.PutOptions) {
	t.Helper()
	src := failing(content{2, at + mib}, at, want)
	_, err := e.storage.Put(t.Context(), "folder/object", src, opts)
	fails(t, err, want, what)
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		t.Errorf("%s: got %v, which blames the backend", what, err)
	}
	if src.closed {
		t.Errorf("%s closed it", what)
	}
}

func testCancelWhileStoring(t *testing.T, e *env) {
	old := content{1, 64 * kib}
	e.put(t, "old", old, create)
	for _, at := range []int64{0, 10 * kib, 9 * mib} {
		for key, opts := range map[string]storagedrivers.PutOptions{"new": create, "old": overwrite} {
			ctx, cancel := context.WithCancel(t.Context())
			src := newSource(content{2, 30 * mib})
			src.at, src.event = at, func() error {
				cancel()
				return nil
			}
			_, err := e.storage.Put(ctx, key, src, opts)
			cancel()
			fails(t, err, context.Canceled, fmt.Sprintf("storing %s, cancelled at %d", key, at))
			if src.closed {
				t.Errorf("storing %s, cancelled at %d, closed the source", key, at)
			}
			e.hasNot(t, "new")
			e.has(t, "old", old)
			e.holds(t, "old")
		}
	}
}

// testCancelWhileReading: reading after the end of ctx returns correct bytes or an error, and never
// looks like the end of a shorter object.
func testCancelWhileReading(t *testing.T, e *env) {
	c := content{1, 9 * mib}
	e.put(t, "object", c, create)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body, _, err := e.storage.Open(ctx, "object", all)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close() // it may report the cancellation
	succeeds(t, equal(io.LimitReader(body, kib), c.part(0, kib)), "reading before")
	cancel()
	b, err := io.ReadAll(body)
	if err == nil {
		_, err = io.ReadFull(c.part(kib, c.size-kib), make([]byte, len(b)))
		succeeds(t, err, "reading after")
		if int64(len(b)) != c.size-kib {
			t.Errorf("the reader ended after %d of %d bytes as if it were all", len(b)+kib, c.size)
		}
	}
	e.has(t, "object", c)
}

func testCancelledBefore(t *testing.T, e *env) {
	e.put(t, "object", content{1, 100}, create)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, key := range []string{"object", "missing"} {
		for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
			_, err := e.storage.Put(ctx, key, newSource(content{2, 100}), opts)
			fails(t, err, context.Canceled, "storing")
		}
		body, _, err := e.storage.Open(ctx, key, all)
		if err == nil {
			closed(t, body)
		}
		fails(t, err, context.Canceled, "opening")
		_, err = e.storage.Stat(ctx, key)
		fails(t, err, context.Canceled, "stat")
		fails(t, e.storage.Delete(ctx, key), context.Canceled, "deleting")
	}
	_, err := e.storage.List(ctx, storagedrivers.ListOptions{})
	fails(t, err, context.Canceled, "listing")
	fails(t, e.storage.Check(ctx), context.Canceled, "checking")
	e.has(t, "object", content{1, 100})
	e.holds(t, "object")
}
