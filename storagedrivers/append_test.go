package storagedrivers_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
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

// TestAppendUnsupported: a driver that is no Appender.
func TestAppendUnsupported(t *testing.T) {
	t.Parallel()
	s := open(t, &stub{Driver: memory.New()}, storagedrivers.Options{})
	if s.CanAppend() {
		t.Error("the storage can append")
	}
	_, err := s.Append(t.Context(), "key", 0)
	is(t, err, errors.ErrUnsupported)
}

// TestAppendErrors: errors have their operation, and are observed. An object in use is not waited
// for again, and does not count as a failure of the backend.
func TestAppendErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &appender{Driver: memory.New(), err: storagedrivers.ErrInUse, writer: storagedrivers.ErrChanged}
		observed := map[string]int{}
		s := open(t, d, storagedrivers.Options{Observe: func(op string, _ time.Duration, _ error) { observed[op]++ }})
		if !s.CanAppend() {
			t.Error("the storage cannot append")
		}
		isOp := func(op string, err, want error) {
			t.Helper()
			is(t, err, want)
			if opErr, ok := errors.AsType[*storagedrivers.OpError](err); !ok || opErr.Op != op || opErr.Key != "key" {
				t.Errorf("error %v, want one of %s", err, op)
			}
		}
		for range 10 {
			_, err := s.Append(t.Context(), "key", 0)
			isOp("append", err, storagedrivers.ErrInUse)
		}
		if d.calls != 10 {
			t.Errorf("%d calls, want one for each operation", d.calls)
		}
		d.err = nil
		w, err := s.Append(t.Context(), "key", 0)
		is(t, err, nil)
		_, err = w.Write([]byte("some"))
		isOp("append", err, storagedrivers.ErrChanged)
		isOp("flush", w.Flush(t.Context()), storagedrivers.ErrChanged)
		_, err = w.Adopt(t.Context())
		isOp("adopt", err, storagedrivers.ErrChanged)
		isOp("append", w.Close(), storagedrivers.ErrChanged)
		if want := "map[adopt:1 append:11 flush:1]"; fmt.Sprint(observed) != want {
			t.Errorf("observed %v, want %s", observed, want)
		}
		for _, op := range []string{"append", "flush", "adopt"} {
			for _, err := range []error{fs.ErrNotExist, storagedrivers.ErrInUse, storagedrivers.ErrChanged} {
				if storagedrivers.Fault(op, err) {
					t.Errorf("%s: %v is called a fault of the backend", op, err)
				}
			}
		}
	})
}

// TestAppendTimeout: a backend that does not answer is unavailable after the time-out.
func TestAppendTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, silentAppender{&appender{Driver: memory.New()}}, storagedrivers.Options{})
		_, err := s.Append(t.Context(), "key", 0)
		is(t, err, storagedrivers.ErrUnavailable)
	})
}

type silentAppender struct{ *appender }

func (silentAppender) Append(ctx context.Context, _ string, _ int64) (storagedrivers.Appended, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
