package item_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// TestOperationFailure: each error of an operation has its reason. Only what may be the fault of
// the storage has a cause, which is logged.
func TestOperationFailure(t *testing.T) {
	t.Parallel()
	known := item.Failf(item.TooLarge, "too large")
	for _, c := range []struct {
		err     error
		reason  item.Reason
		message string
		logged  bool
	}{
		{fs.ErrNotExist, item.Missing, "there is no such item", false},
		{storagedrivers.ErrInvalidKey, item.Missing, "there is no such item", false},
		{item.ErrOther, item.Changed, "the item is another one by now", false},
		{storagedrivers.ErrChanged, item.Conflict, "the item is being replaced, try again later", false},
		{context.Canceled, item.BadRequest, "the request was aborted", false},
		{storagedrivers.ErrUnavailable, item.Unavailable, "the storage cannot be reached now, try again later", true},
		{storagedrivers.ErrNoSpace, item.NoSpace, "the storage is full", true},
		{fs.ErrPermission, item.StorageFailed, "the storage could not list the items", true},
		{errors.New("500"), item.StorageFailed, "the storage could not list the items", true},
		{known, item.TooLarge, "too large", false},
	} {
		f := item.OperationFailure("list the items", fmt.Errorf("listing: %w", c.err))
		if f.Reason != c.reason || f.Message != c.message || (f.Err != nil) != c.logged {
			t.Errorf("%v: %v %q, cause %v", c.err, f.Reason, f.Message, f.Err)
		}
	}
}
