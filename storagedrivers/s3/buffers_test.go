package s3

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestUploadsShareMemory: uploads wait for room, continue with the room that is left, and release
// it when their callers cancel.
func TestUploadsShareMemory(t *testing.T) {
	t.Parallel()
	s := fake(t)
	d := s.driver(t, s.fresh(t))
	defer d.Close()
	if !d.buffers.room.TryAcquire(maxBuffered - partSize) {
		t.Fatal("there is no room")
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			if _, err := d.Put(t.Context(), fmt.Sprint(i), content('a', 2*partSize), create); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	_, release, err := d.buffers.get(t.Context(), partSize)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for _, size := range sizes {
		if _, err := d.Put(ctx, "none", content('a', size), overwrite); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("storing %d bytes without room: %v", size, err)
		}
	}
	release()
	put(t, d, "object", content('a', 2*partSize), overwrite)
	holds(t, d, []string{"0", "1", "2", "3", "object"})
}
