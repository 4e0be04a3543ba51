package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// streamed is a source whose size is not known, until it was read to its end. It pauses once.
type streamed struct {
	source
	ended bool
}

// newStreamed returns a source that waits after at bytes, and then fails with err if it is not nil.
func newStreamed(c content, at int64, err error) *streamed {
	s := &streamed{source: *newSource(c)}
	s.at, s.event = at, func() error {
		time.Sleep(50 * time.Millisecond)
		return err
	}
	return s
}

func (s *streamed) Read(p []byte) (int, error) {
	n, err := s.source.Read(p)
	s.ended = s.ended || errors.Is(err, io.EOF)
	return n, err
}

func (s *streamed) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd && !s.ended {
		return 0, storagedrivers.ErrSizeUnknown
	}
	return s.source.Seek(offset, whence)
}

// testStream: an object whose size is not known is stored whole or not at all. The race detector watches each
// size in one mode: it makes bytes dear.
func testStream(t *testing.T, e *env) {
	if !e.driver.Features().Streams {
		t.Skip("the driver needs the size first")
	}
	// 20 MiB and 24 MiB are the end of parts.
	for i, size := range []int64{8*mib + 1, 20 * mib, 24 * mib, 30*mib + 7} {
		for name, opts := range map[string]storagedrivers.PutOptions{"created": create, "overwritten": overwrite} {
			if RaceDetector && (i%2 == 0) != (name == "created") {
				continue
			}
			c, key := content{uint64(i), size}, fmt.Sprintf("f/%s%d", name, i)
			src := newStreamed(c, 10*mib, nil)
			info, err := e.driver.Put(t.Context(), key, src, opts)
			succeeds(t, err, "storing "+key)
			if info.Size != size || src.closed {
				t.Errorf("%s has %d bytes, want %d; source closed %t", key, info.Size, size, src.closed)
			}
			now, err := e.storage.Stat(t.Context(), key)
			succeeds(t, err, "stat")
			sameInfo(t, "storing "+key, info, now)
			e.has(t, key, c)
			succeeds(t, e.storage.Delete(t.Context(), key), "deleting")
		}
	}
	old := content{9, 100}
	e.put(t, "f/old", old, create)
	_, err := e.driver.Put(t.Context(), "f/old", newStreamed(content{1, 12 * mib}, 10*mib, nil), create)
	fails(t, err, fs.ErrExist, "creating an existing object")
	for key, opts := range map[string]storagedrivers.PutOptions{"f/new": create, "f/old": overwrite} {
		for _, want := range []error{errSource, io.ErrUnexpectedEOF} {
			src := newStreamed(content{1, 20 * mib}, 12*mib, want)
			_, err := e.driver.Put(t.Context(), key, src, opts)
			fails(t, err, want, "storing "+key+" from a source that fails")
			e.has(t, "f/old", old)
			e.holds(t, "f/old")
		}
		e.cancelStream(t, key, opts)
		e.has(t, "f/old", old)
		e.holds(t, "f/old")
	}
}

// cancelStream cancels a Put while its source waits.
func (e *env) cancelStream(t *testing.T, key string, opts storagedrivers.PutOptions) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	src := newStreamed(content{1, 20 * mib}, 12*mib, nil)
	src.event = func() error {
		cancel()
		return ctx.Err()
	}
	_, err := e.driver.Put(ctx, key, src, opts)
	fails(t, err, context.Canceled, "storing "+key+", cancelled")
}
