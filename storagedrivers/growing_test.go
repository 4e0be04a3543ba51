package storagedrivers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// appender is a driver whose appending methods fail, and whose writers do.
type appender struct {
	*memory.Driver
	err    error
	writer error
	calls  int
}

func (a *appender) Append(context.Context, string, int64) (storagedrivers.Appended, error) {
	a.calls++
	return appended{a.writer}, a.err
}

type appended struct{ err error }

func (a appended) Write(p []byte) (int, error) { return len(p), a.err }
func (a appended) Flush(context.Context) error { return a.err }
func (a appended) Close() error                { return a.err }
func (a appended) Adopt(context.Context) (storagedrivers.Staged, error) {
	return nil, a.err
}

// add adds a text to the growing object under "key".
func add(t *testing.T, s *storagedrivers.Storage, text string) error {
	t.Helper()
	g, err := s.Growing(t.Context(), "key")
	if err != nil {
		return err
	}
	w, err := g.Append(t.Context(), storagedrivers.GrowthOptions{})
	if err != nil {
		return err
	}
	_, err = w.Write([]byte(text))
	return errors.Join(err, w.Flush(t.Context()), w.Close())
}

// TestAppendErrors: errors have their operation, and are observed. An object in use is not waited
// for again, and does not count as a failure of the backend. All of them mean that it has changed.
func TestAppendErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &appender{Driver: memory.New(), err: storagedrivers.ErrInUse, writer: storagedrivers.ErrChanged}
		observed := map[string]int{}
		s := open(t, d, storagedrivers.Options{Observe: func(op string, _ time.Duration, _ error) { observed[op]++ }})
		for range 10 {
			err := add(t, s, "some")
			test.Is(t, err, storagedrivers.ErrChanged)
			if opErr, ok := errors.AsType[*storagedrivers.OpError](err); !ok || opErr.Op != "append" || opErr.Key != "key" {
				t.Errorf("error %v, want one of append", err)
			}
		}
		test.Equal(t, d.calls, 10, "calls")
		d.err = nil
		test.Is(t, add(t, s, "some"), storagedrivers.ErrChanged)
		test.Equal(t, fmt.Sprint(observed), "map[append:11 flush:1 stat:22]", "observed", observed)
		for _, op := range []string{"append", "flush", "adopt"} {
			for _, err := range []error{fs.ErrNotExist, storagedrivers.ErrInUse, storagedrivers.ErrChanged} {
				if storagedrivers.Fault(op, err) {
					t.Errorf("%s: %v is called a fault of the backend", op, err)
				}
			}
		}
	})
}

// TestAppendUnsupported: where the system lets no object grow, pieces are stored.
func TestAppendUnsupported(t *testing.T) {
	t.Parallel()
	d := &appender{Driver: memory.New(), err: errors.ErrUnsupported}
	s := open(t, d, storagedrivers.Options{})
	for _, text := range []string{"some", "more"} {
		test.Is(t, add(t, s, text), nil)
	}
	var keys []string
	for info, err := range s.All(t.Context(), "") {
		test.Is(t, err, nil)
		keys = append(keys, info.Key)
	}
	test.Equal(t, fmt.Sprint(keys), "[key.0000000000000000 key.0000000000000004]", "stored")
}

// TestAppendTimeout: a backend that does not answer is unavailable after the time-out.
func TestAppendTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, silentAppender{&appender{Driver: memory.New()}}, storagedrivers.Options{})
		test.Is(t, add(t, s, "some"), storagedrivers.ErrUnavailable)
	})
}

type silentAppender struct{ *appender }

func (silentAppender) Append(ctx context.Context, _ string, _ int64) (storagedrivers.Appended, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestGrowingGap: pieces behind a missing or an empty one have no bytes, and an empty one is
// replaced.
func TestGrowingGap(t *testing.T) {
	t.Parallel()
	s := open(t, memory.New(), storagedrivers.Options{})
	for key, text := range map[string]string{
		"key.0000000000000000": "ab", "key.0000000000000002": "", "key.0000000000000004": "ef", "key.x": "xyz", "key.0000000000000001": "b",
	} {
		_, err := s.Put(t.Context(), key, strings.NewReader(text), storagedrivers.PutOptions{})
		test.Is(t, err, nil)
	}
	for _, want := range []int64{2, 6} {
		g, err := s.Growing(t.Context(), "key")
		test.Is(t, err, nil)
		test.Equal(t, g.Size(), want, "bytes")
		test.Is(t, add(t, s, "cd"), nil)
	}
}

// listings counts the listings of a driver.
type listings struct {
	*memory.Driver
	count int
}

func (l *listings) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	l.count++
	return l.Driver.List(ctx, opts)
}

// TestGrowingLists: the pieces of an object are listed only by a process that finds many at once.
func TestGrowingLists(t *testing.T) {
	t.Parallel()
	d := &listings{Driver: memory.New()}
	s := open(t, d, storagedrivers.Options{})
	other := open(t, d, storagedrivers.Options{Close: func() error { return nil }})
	for range 100 {
		test.Is(t, add(t, s, "some"), nil)
	}
	_, err := s.Put(t.Context(), "key.0000000000000401", strings.NewReader("stray"), storagedrivers.PutOptions{})
	test.Is(t, err, nil)
	test.Equal(t, d.count, 0, "its own process has listed the pieces", "times")
	for range 10 {
		test.Is(t, add(t, other, "more"), nil)
		test.Is(t, add(t, s, "some"), nil)
	}
	test.Equal(t, d.count, 1, "another process has listed the pieces", "times")
	if g, err := s.Growing(t.Context(), "key"); err != nil || g.Size() != 480 {
		t.Errorf("%d bytes, error %v", g.Size(), err)
	}
}

// broken is a driver whose Put fails, after the first one.
type broken struct {
	*memory.Driver
	puts int
}

var errBroken = errors.New("broken")

func (b *broken) Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	if b.puts++; b.puts == 2 {
		return storagedrivers.Info{}, errBroken
	}
	return b.Driver.Put(ctx, key, r, opts)
}

// TestGrowingFails: nothing is stored behind a piece that failed.
func TestGrowingFails(t *testing.T) {
	t.Parallel()
	d := &broken{Driver: memory.New()}
	s := open(t, d, storagedrivers.Options{})
	test.Is(t, add(t, s, strings.Repeat("x", 50<<20)), errBroken)
	if g, err := s.Growing(t.Context(), "key"); err != nil || g.Size() != 16<<20 || d.puts != 2 {
		t.Errorf("%d bytes by %d puts, error %v", g.Size(), d.puts, err)
	}
}
