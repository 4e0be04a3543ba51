package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

var errSource = errors.New("the source is broken")

// breaking are the places where sources break: at once, in the first buffer, where parts
// of an upload end, and among them.
var breaking = []int64{0, 1, 10 * kib, 8 * mib, 30 * mib}

func testSourceErrorOnCreate(t *testing.T, p *place) {
	for _, at := range breaking {
		for _, want := range []error{errSource, io.ErrUnexpectedEOF} {
			what := fmt.Sprintf("creating from a source that breaks at %d", at)
			p.breaks(t, what, at, want, create)
			p.hasNot(t, "folder/object")
			p.holds(t)
		}
	}
	p.put(t, "folder/object", content{1, 100}, create)
	p.has(t, "folder/object", content{1, 100})
}

func testSourceErrorOnOverwrite(t *testing.T, p *place) {
	old := content{1, 64 * kib}
	p.put(t, "folder/object", old, create)
	for _, at := range breaking {
		for _, want := range []error{errSource, io.ErrUnexpectedEOF} {
			what := fmt.Sprintf("overwriting from a source that breaks at %d", at)
			p.breaks(t, what, at, want, overwrite)
			p.has(t, "folder/object", old)
			p.holds(t, "folder/object")
		}
	}
}

func (p *place) breaks(t *testing.T, what string, at int64, want error, opts storagedrivers.PutOptions) {
	t.Helper()
	src := failing(content{2, at + mib}, at, want)
	_, err := p.storage.Put(t.Context(), "folder/object", src, opts)
	fails(t, err, want, what)
	if src.closed {
		t.Errorf("%s closed it", what)
	}
}

func testCancelWhileStoring(t *testing.T, p *place) {
	old := content{1, 64 * kib}
	p.put(t, "old", old, create)
	for _, at := range []int64{0, 10 * kib, 9 * mib} {
		for key, opts := range map[string]storagedrivers.PutOptions{"new": create, "old": overwrite} {
			ctx, cancel := context.WithCancel(t.Context())
			src := newSource(content{2, 30 * mib})
			src.at, src.event = at, func() error {
				cancel()
				return nil
			}
			_, err := p.storage.Put(ctx, key, src, opts)
			cancel()
			fails(t, err, context.Canceled, fmt.Sprintf("storing %s, cancelled at %d", key, at))
			if src.closed {
				t.Errorf("storing %s, cancelled at %d, closed the source", key, at)
			}
			p.hasNot(t, "new")
			p.has(t, "old", old)
			p.holds(t, "old")
		}
	}
}

// testCancelWhileReading: what is read after the end of ctx is right or an error, and
// never looks like the end of a shorter object.
func testCancelWhileReading(t *testing.T, p *place) {
	c := content{1, 9 * mib}
	p.put(t, "object", c, create)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body, _, err := p.storage.Open(ctx, "object", all)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close() // it may tell of the cancellation
	succeeds(t, equal(io.LimitReader(body, kib), c.part(0, kib)), "reading before")
	cancel()
	b, err := io.ReadAll(body)
	if err == nil {
		_, err = io.ReadFull(c.part(kib, c.size-kib), make([]byte, len(b)))
		succeeds(t, err, "reading on")
		if int64(len(b)) != c.size-kib {
			t.Errorf("the reader ended after %d of %d bytes as if it were all", len(b)+kib, c.size)
		}
	}
	p.has(t, "object", c)
}

func testCancelledBefore(t *testing.T, p *place) {
	p.put(t, "object", content{1, 100}, create)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, key := range []string{"object", "missing"} {
		for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
			_, err := p.storage.Put(ctx, key, newSource(content{2, 100}), opts)
			fails(t, err, context.Canceled, "storing")
		}
		body, _, err := p.storage.Open(ctx, key, all)
		if err == nil {
			closed(t, body)
		}
		fails(t, err, context.Canceled, "opening")
		_, err = p.storage.Stat(ctx, key)
		fails(t, err, context.Canceled, "stat")
		fails(t, p.storage.Delete(ctx, key), context.Canceled, "deleting")
	}
	_, err := p.storage.List(ctx, storagedrivers.ListOptions{})
	fails(t, err, context.Canceled, "listing")
	fails(t, p.storage.Check(ctx), context.Canceled, "checking")
	p.has(t, "object", content{1, 100})
	p.holds(t, "object")
}
