package s3

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
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
			_, err := d.Put(t.Context(), fmt.Sprint(i), content('a', 2*partSize), create)
			test.Is(t, err, nil)
		})
	}
	group.Wait()
	_, release, err := d.buffers.get(t.Context(), partSize)
	test.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	for _, size := range sizes {
		_, err := d.Put(ctx, "none", content('a', size), overwrite)
		test.Is(t, err, context.DeadlineExceeded, "storing", size, "bytes without room")
	}
	release()
	put(t, d, "object", content('a', 2*partSize), overwrite)
	holds(t, d, []string{"0", "1", "2", "3", "object"})
}

// unknown is a source whose size is not known.
type unknown struct{ io.ReadSeeker }

func (u unknown) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return 0, storagedrivers.ErrSizeUnknown
	}
	return u.ReadSeeker.Seek(offset, whence)
}

// TestStreamsHaveTheirOwnMemory: a source of unknown size does not wait for memory, and takes none of
// that of other uploads.
func TestStreamsHaveTheirOwnMemory(t *testing.T) {
	t.Parallel()
	s := fake(t)
	d := s.driver(t, s.fresh(t))
	defer d.Close()
	if !d.buffers.room.TryAcquire(maxBuffered) || !d.streams.room.TryAcquire(maxStreamed-partSize) {
		t.Fatal("there is no room")
	}
	store := func(key string) error {
		_, err := d.Put(t.Context(), key, unknown{content('a', 3*partSize+1)}, create)
		return err
	}
	test.Is(t, store("object"), nil)
	if !d.streams.room.TryAcquire(partSize) {
		t.Fatal("the object has kept its memory")
	}
	test.Is(t, store("other"), storagedrivers.ErrBusy, "storing without room")
	holds(t, d, []string{"object"})
}
