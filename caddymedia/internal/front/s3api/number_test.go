package s3api_test

import (
	"context"
	"html"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
)

// deletions counts the deleted items that are reported.
type deletions struct {
	testservice.Observer

	number atomic.Int64
}

func (d *deletions) DeletionEnded(_ context.Context, one service.Deletion) {
	d.number.Add(int64(one.Number))
}

// TestNumberOfDeleted: an item counts once in the audit log, and a missing one does not count.
func TestNumberOfDeleted(t *testing.T) {
	t.Parallel()
	f, _ := withUploads(t)
	observer := &deletions{}
	f.reload(t, func(c *media.Config) { c.Observer = observer })
	const keys = "<Object><Key>there.txt</Key></Object><Object><Key>there.txt</Key></Object><Object><Key>none.txt</Key></Object><Object><Key>nor.txt</Key></Object>"
	f.do(t, call{method: "POST", key: docs, query: "delete", body: "<Delete>" + keys + "</Delete>"})
	if n := observer.number.Load(); n != 1 {
		t.Errorf("%d items were deleted, want 1", n)
	}
}

// TestDeletedTwice: an object that is named twice has one outcome, and each condition is its own.
func TestDeletedTwice(t *testing.T) {
	t.Parallel()
	f := newFront(t, all...)
	tag := f.put(t, docs, "a.txt", "text")
	object := func(tag string) string { return "<Object><Key>a.txt</Key><ETag>" + tag + "</ETag></Object>" }
	for _, c := range []struct {
		objects      string
		errors, gone int
		stays        bool
	}{
		{object(`"&quot;"`) + object("&quot;&quot;") + object("&quot;*&quot;"), 3, 0, true},
		{object("&quot;0&quot;") + object("&quot;0&quot;"), 2, 0, true},
		{object(html.EscapeString(tag)) + object(html.EscapeString(tag)), 0, 2, false},
		{strings.Repeat(object(""), 1000), 0, 1000, false}, // it is not there
	} {
		a := f.do(t, call{method: "POST", key: docs, query: "delete", body: "<Delete>" + c.objects + "</Delete>"})
		if n := strings.Count(a.body, "<Error>"); n != c.errors {
			t.Errorf("%s: %d errors, want %d: %s", c.objects, n, c.errors, a.body)
		}
		if n := strings.Count(a.body, "<Deleted>"); n != c.gone {
			t.Errorf("%s: %d are deleted, want %d: %s", c.objects, n, c.gone, a.body)
		}
		if stays := f.get(t, docs, "a.txt") == "text"; stays != c.stays {
			t.Errorf("%s: it stays: %v", c.objects, stays)
		}
	}
}
