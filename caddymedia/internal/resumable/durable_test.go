package resumable

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// flushed counts the bytes that are appended to objects, and those of them that are durable.
type flushed struct {
	*local.Driver
	written, durable int
}

func (f *flushed) Append(ctx context.Context, key string, size int64) (storagedrivers.Appended, error) {
	object, err := f.Driver.Append(ctx, key, size)
	return appendedTo{object, f}, err
}

type appendedTo struct {
	storagedrivers.Appended
	counts *flushed
}

func (a appendedTo) Write(p []byte) (int, error) {
	n, err := a.Appended.Write(p)
	a.counts.written += n
	return n, err
}

func (a appendedTo) Flush(ctx context.Context) error {
	a.counts.durable = a.counts.written
	return a.Appended.Flush(ctx)
}

// TestOffsetIsDurable: the bytes before an acknowledged offset survive a power failure, also those
// before the end of a connection.
func TestOffsetIsDurable(t *testing.T) {
	t.Parallel()
	for _, r := range []io.Reader{strings.NewReader("123"), cut([]byte("12345"), 3)} {
		d := &flushed{Driver: local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))}
		s := storeOn(t, d)
		u := s.create(t, Record{Length: 5})
		err := u.Append(t.Context(), body(0, r))
		if err != nil && !errors.Is(err, errCut) || u.Offset() != 3 || d.durable != 3 {
			t.Errorf("offset %d, %d bytes are durable, error %v", u.Offset(), d.durable, err)
		}
	}
}

// stalled adds n bytes of a request whose connection is silent then, until the test ends.
func (s *Store) stalled(t *testing.T, u *Upload, n int) {
	t.Helper()
	r, client := io.Pipe()
	ended := make(chan error)
	go func() {
		b := body(0, r)
		b.Interrupt = func() { r.CloseWithError(errCut) }
		ended <- s.find(t, u).Append(t.Context(), b)
	}()
	if _, err := client.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.CloseWithError(errCut)
		if err := <-ended; err == nil {
			t.Error("the silent request has succeeded")
		}
	})
	synctest.Wait()
}

// TestLossOfCrash: a process that dies loses at most 16 MiB of a request.
func TestLossOfCrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const received, most = 17 << 20, 16 << 20
		s := storeOn(t, memory.New())
		u := s.create(t, Record{Length: received + 1})
		s.stalled(t, u, received)
		if lost := received - s.find(t, u).Offset(); lost > most {
			t.Errorf("it would lose %d bytes", lost)
		}
	})
}

// TestTakeOverInTime: a request takes over from a silent one within a second.
func TestTakeOverInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := storeOn(t, memory.New())
		u := s.create(t, Record{Length: 5})
		s.stalled(t, u, 1)
		start := time.Now()
		err := s.find(t, u).Append(t.Context(), body(0, strings.NewReader("12345")))
		if took := time.Since(start); err != nil && !errors.Is(err, ErrOffset) || took > time.Second {
			t.Errorf("it took %v, error %v", took, err)
		}
	})
}
