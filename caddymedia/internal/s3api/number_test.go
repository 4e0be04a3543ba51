package s3api_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/internal/testservice"
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
