package storagedrivers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestRetries: an unavailable operation is tried three times, unless it has waited for the driver's
// whole time-out, and any other once.
func TestRetries(t *testing.T) {
	t.Parallel()
	_, undialled := (&net.Dialer{Timeout: time.Nanosecond}).Dial("tcp", "127.0.0.1:1")
	for _, tt := range []struct {
		err   error
		calls int
	}{
		{storagedrivers.ErrUnavailable, 3},
		{fmt.Errorf("dialling: %w", storagedrivers.ErrUnavailable), 3},
		{errors.Join(storagedrivers.ErrUnavailable, io.ErrUnexpectedEOF), 3},
		{errors.Join(storagedrivers.ErrUnavailable, os.ErrDeadlineExceeded), 1},
		{errors.Join(storagedrivers.ErrUnavailable, undialled), 1},
		{fs.ErrPermission, 1},
		{fs.ErrExist, 1},
		{storagedrivers.ErrNoSpace, 1},
		{storagedrivers.ErrClosed, 1},
		{context.Canceled, 1},
		{io.ErrUnexpectedEOF, 1},
	} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := map[string]int{}
				d := memory.New()
				d.Fail = func(op, _ string) error {
					calls[op]++
					return tt.err
				}
				start := time.Now()
				errs := everyOp(t, onEach(t, d), "key")
				for op, err := range errs {
					test.Is(t, err, tt.err)
					var opErr *storagedrivers.OpError
					if !errors.As(err, &opErr) || opErr.Op != op || opErr.Storage != "test" {
						t.Errorf("%s: error %#v, want an OpError", op, err)
					}
				}
				for op, n := range calls {
					want := tt.calls
					if op == "put" { // by commit too
						want *= 2
					}
					test.Equal(t, n, want, op, "was tried", "times")
				}
				want := time.Duration(len(errs)*(tt.calls/2)) * 300 * time.Millisecond
				test.Equal(t, time.Since(start), want, "paused for")
			})
		})
	}
}

func TestRetrySucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := map[string]int{}
		d := memory.New()
		d.Fail = func(op, _ string) error {
			if calls[op]++; calls[op] < 3 {
				return storagedrivers.ErrUnavailable
			}
			return nil
		}
		for op, err := range everyOp(t, onEach(t, d), "key") {
			if op != "commit" { // create only, and it is there
				test.Is(t, err, nil)
			}
		}
	})
}

func TestRetryEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		d := memory.New()
		d.Fail = func(string, string) error {
			calls++
			return storagedrivers.ErrUnavailable
		}
		s := open(t, d, storagedrivers.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := s.Stat(ctx, "key")
		test.Is(t, err, storagedrivers.ErrUnavailable)
		test.Equal(t, calls, 1, "tried", "times")
	})
}

// TestPutRewinds: a retry sends the source from its start.
func TestPutRewinds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &stub{Driver: memory.New()}
		calls := 0
		d.put = func(
			ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
		) (storagedrivers.Info, error) {
			if at, err := r.Seek(0, io.SeekCurrent); at != 0 || err != nil {
				t.Errorf("the source stands at %d, error %v", at, err)
			}
			if calls++; calls < 3 {
				_, err := io.CopyN(io.Discard, r, int64(calls))
				return storagedrivers.Info{}, errors.Join(storagedrivers.ErrUnavailable, err)
			}
			return d.Driver.Put(ctx, key, r, opts)
		}
		s := open(t, d, storagedrivers.Options{})
		put(t, s, "put", "text")
		has(t, s, "put", "text")
		calls = 0
		test.Is(t, commitText(t.Context(), t, s, "staged", "staged", create), nil)
		has(t, s, "staged", "staged")
	})
}

var errCut = errors.New("connection cut")

// TestTimeout: a backend that does not answer is unavailable, whatever error its driver returns for
// the end of ctx. A caller that cancels gets the error of its context.
func TestTimeout(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(context.Context) error{
		"err":   context.Context.Err,
		"cause": context.Cause,
		"other": func(context.Context) error { return errCut },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testTimeout(t, answer) })
		})
	}
}

func testTimeout(t *testing.T, answer func(context.Context) error) {
	calls := 0
	wait := func(ctx context.Context) error {
		calls++
		<-ctx.Done()
		return answer(ctx)
	}
	d := &stub{
		Driver: memory.New(),
		stat: func(ctx context.Context, _ string) (storagedrivers.Info, error) {
			return storagedrivers.Info{}, wait(ctx)
		},
		open: func(
			ctx context.Context, _ string, _ storagedrivers.Range,
		) (io.ReadCloser, storagedrivers.Info, error) {
			return nil, storagedrivers.Info{}, wait(ctx)
		},
		remove: func(ctx context.Context, _ string, _ storagedrivers.DeleteOptions) error { return wait(ctx) },
	}
	s := open(t, d, storagedrivers.Options{Timeout: time.Second})
	for op, call := range map[string]func(context.Context) error{
		"stat":   func(ctx context.Context) error { _, err := s.Stat(ctx, "key"); return err },
		"open":   func(ctx context.Context) error { _, _, err := s.Open(ctx, "key", all); return err },
		"delete": func(ctx context.Context) error { return s.Delete(ctx, "key") },
	} {
		calls = 0
		err := call(t.Context())
		test.Is(t, err, storagedrivers.ErrUnavailable)
		test.Equal(t, calls, 1, op, "was tried", "times within one time-out")

		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		err = call(ctx)
		test.IsNot(t, err, storagedrivers.ErrUnavailable)
		if !errors.Is(err, errCut) {
			test.Is(t, err, context.DeadlineExceeded)
		}
		cancel()

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		err = call(ctx)
		test.IsNot(t, err, storagedrivers.ErrUnavailable)
		if !errors.Is(err, errCut) {
			test.Is(t, err, context.Canceled)
		}
	}
}

// TestTimeoutOfOpen: the time-out bounds opening a reader, not reading.
func TestTimeoutOfOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory.New(), storagedrivers.Options{Timeout: time.Second})
		put(t, s, "key", "text")
		body, _, err := s.Open(t.Context(), "key", all)
		test.Is(t, err, nil)
		time.Sleep(time.Minute)
		got, err := io.ReadAll(body)
		test.Is(t, err, nil)
		test.Equal(t, string(got), "text", "read")
		test.Is(t, body.Close(), nil)
	})
}

// closeCounter counts the calls of Close.
type closeCounter struct {
	io.Reader
	n int
}

func (c *closeCounter) Close() error {
	c.n++
	return nil
}

func TestOpenTooLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		body := &closeCounter{Reader: strings.NewReader("text")}
		d := &stub{Driver: memory.New(), open: func(
			context.Context, string, storagedrivers.Range,
		) (io.ReadCloser, storagedrivers.Info, error) {
			time.Sleep(2 * time.Second)
			return body, storagedrivers.Info{}, nil
		}}
		s := open(t, d, storagedrivers.Options{Timeout: time.Second})
		_, _, err := s.Open(t.Context(), "key", all)
		test.Is(t, err, storagedrivers.ErrUnavailable)
		test.Equal(t, body.n, 1, "the reader that came too late was closed", "times")
	})
}

// TestSilence: an operation on a silent backend is not retried, whatever error its driver returns.
// An operation that fails at once is retried, and so is an upload that was transferring until it
// failed.
func TestSilence(t *testing.T) {
	t.Parallel()
	const timeout = 30 * time.Second
	for name, tt := range map[string]struct {
		moves, silent time.Duration // of each attempt
		calls         int
	}{
		"at once":                     {0, 0, 3},
		"silent":                      {0, timeout, 1},
		"silent for half of it":       {0, timeout / 2, 1},
		"silent for a third of it":    {0, timeout / 3, 2},
		"moves and breaks":            {10 * timeout, 0, 3},
		"moves and is silent":         {10 * timeout, timeout, 1},
		"moves, a little silent":      {10 * timeout, timeout / 10, 3},
		"moves, silent for a quarter": {timeout, timeout / 4, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				d := &stub{Driver: memory.New()}
				d.put = func(
					_ context.Context, _ string, r io.ReadSeeker, _ storagedrivers.PutOptions,
				) (storagedrivers.Info, error) {
					calls++
					time.Sleep(tt.moves)
					_, err := io.ReadAll(r)
					time.Sleep(tt.silent)
					return storagedrivers.Info{}, errors.Join(storagedrivers.ErrUnavailable, err)
				}
				s := open(t, d, storagedrivers.Options{Timeout: timeout})
				_, err := s.Put(t.Context(), "key", strings.NewReader("text"), create)
				test.Is(t, err, storagedrivers.ErrUnavailable)
				test.Equal(t, calls, tt.calls, "put was tried", "times")
				calls = 0
				test.Is(t, commitText(t.Context(), t, s, "key", "", create), storagedrivers.ErrUnavailable)
				test.Equal(t, calls, tt.calls, "commit was tried", "times")
			})
		})
	}
}

// flaky is a driver whose Stat and Check return the set error. It counts the calls.
type flaky struct {
	*memory.Driver
	err   error
	calls int
}

func newFlaky() *flaky {
	f := &flaky{Driver: memory.New()}
	f.Fail = func(string, string) error {
		f.calls++
		return f.err
	}
	return f
}

func stat(t *testing.T, s *storagedrivers.Storage) error {
	t.Helper()
	_, err := s.Stat(t.Context(), "key")
	return err
}

// TestCircuitIgnoresBusyDrivers: a driver without a free connection does not open the circuit.
func TestCircuitIgnoresBusyDrivers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		s := open(t, f, storagedrivers.Options{})
		f.err = storagedrivers.ErrBusy
		for range 20 {
			test.Is(t, stat(t, s), storagedrivers.ErrUnavailable)
		}
		f.err = nil
		test.Is(t, stat(t, s), fs.ErrNotExist)
	})
}

// TestCircuitOpens: after five failures in a row, an unavailable backend gets one trial in five
// seconds.
func TestCircuitOpens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlaky()
		s := open(t, f, storagedrivers.Options{})
		f.err = storagedrivers.ErrUnavailable
		for range 5 {
			test.Is(t, stat(t, s), storagedrivers.ErrUnavailable)
		}
		tried := f.calls
		start := time.Now()
		for range 100 {
			test.Is(t, stat(t, s), storagedrivers.ErrUnavailable)
		}
		_, err := s.Stage(t.Context())
		test.Is(t, err, storagedrivers.ErrUnavailable)
		if storagedrivers.CauseOf(err) == "" {
			t.Errorf("error %v has no cause", err)
		}
		if f.calls != tried || time.Since(start) != 0 {
			t.Errorf("a dead place was tried %d times more, for %v", f.calls-tried, time.Since(start))
		}
		for range 3 {
			time.Sleep(5 * time.Second)
			staged, err := s.Stage(t.Context()) // what is received now may be the trial
			test.Is(t, err, nil)
			test.Is(t, staged.Close(), nil)
			tried = f.calls
			for range 10 {
				test.Is(t, stat(t, s), storagedrivers.ErrUnavailable)
			}
			test.Equal(t, f.calls-tried, 3, "after a rest the place was tried", "times")
		}
	})
}

// TestCircuitCloses: any answer closes the circuit. A check is tried without waiting for the end of
// the rest.
func TestCircuitCloses(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(t *testing.T, s *storagedrivers.Storage){
		"by a trial": func(t *testing.T, s *storagedrivers.Storage) {
			time.Sleep(5 * time.Second)
			test.Is(t, stat(t, s), fs.ErrNotExist)
		},
		"by a check": func(t *testing.T, s *storagedrivers.Storage) { test.Is(t, s.Check(t.Context()), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFlaky()
				s := open(t, f, storagedrivers.Options{})
				f.err = storagedrivers.ErrUnavailable
				for range 7 {
					test.Is(t, stat(t, s), storagedrivers.ErrUnavailable)
				}
				f.err = nil
				test.Is(t, stat(t, s), storagedrivers.ErrUnavailable)
				back(t, s)
				for range 10 {
					test.Is(t, stat(t, s), fs.ErrNotExist)
				}
			})
		})
	}
}

// TestCircuitStaysClosed: the circuit stays closed after other errors, after failures with answers
// between them, and after operations cancelled by their callers.
func TestCircuitStaysClosed(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(t *testing.T, f *flaky, s *storagedrivers.Storage){
		"other answers": func(t *testing.T, f *flaky, s *storagedrivers.Storage) {
			f.err = fs.ErrPermission
			test.Is(t, stat(t, s), fs.ErrPermission)
		},
		"now and then": func(t *testing.T, f *flaky, s *storagedrivers.Storage) {
			f.err = storagedrivers.ErrUnavailable
			test.Is(t, stat(t, s), storagedrivers.ErrUnavailable)
			f.err = nil
			test.Is(t, stat(t, s), fs.ErrNotExist)
		},
		"callers who give up": func(t *testing.T, f *flaky, s *storagedrivers.Storage) {
			f.err = context.Canceled
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := s.Stat(ctx, "key")
			test.Is(t, err, context.Canceled)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFlaky()
				s := open(t, f, storagedrivers.Options{})
				for range 10 {
					fail(t, f, s)
				}
				f.err = nil
				test.Is(t, stat(t, s), fs.ErrNotExist)
			})
		})
	}
}

// TestCallerHangsUp: an operation that its caller cancels is no failure of the backend, whatever
// error its driver returns for the cut connection. It is not retried and does not open the circuit.
func TestCallerHangsUp(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{
		"unreachable": fmt.Errorf("%w: %w: %w", context.Canceled, storagedrivers.ErrUnavailable, net.ErrClosed),
		"busy":        fmt.Errorf("%w: %w", storagedrivers.ErrBusy, context.Canceled),
		"other":       storagedrivers.ErrUnavailable,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, calls := memory.New(), 0
			var hangUp context.CancelFunc
			d.Fail = func(string, string) error {
				calls++
				hangUp()
				return answer
			}
			s := open(t, d, storagedrivers.Options{Observe: func(op string, _ time.Duration, err error) {
				if storagedrivers.Fault(op, err) {
					t.Errorf("%s: %v is a fault", op, err)
				}
			}})
			for op, call := range map[string]func(context.Context) error{
				"stat": func(ctx context.Context) error { _, err := s.Stat(ctx, "key"); return err },
				"open": func(ctx context.Context) error { _, _, err := s.Open(ctx, "key", all); return err },
				"list": func(ctx context.Context) error {
					_, err := s.List(ctx, storagedrivers.ListOptions{})
					return err
				},
				"delete": func(ctx context.Context) error { return s.Delete(ctx, "key") },
				"put": func(ctx context.Context) error {
					_, err := s.Put(ctx, "key", strings.NewReader("text"), create)
					return err
				},
				"commit": func(ctx context.Context) error { return commitText(ctx, t, s, "key", "", create) },
			} {
				ctx, cancel := context.WithCancel(t.Context())
				hangUp, calls = cancel, 0
				err := call(ctx)
				cancel()
				test.Is(t, err, context.Canceled)
				test.IsNot(t, err, storagedrivers.ErrUnavailable)
				test.Equal(t, calls, 1, op, "was tried", "times")
			}
			d.Fail = nil
			test.Is(t, stat(t, s), fs.ErrNotExist)
		})
	}
}

// TestPanics: a panic of a driver is the error of the operation, and of a goroutine of its caller.
func TestPanics(t *testing.T) {
	t.Parallel()
	d := memory.New()
	s := open(t, d, storagedrivers.Options{})
	d.Fail = func(string, string) error { panic("crashed") }
	for op, err := range everyOp(t, func() *storagedrivers.Storage { return s }, "key") {
		test.Is(t, err, storagedrivers.ErrPanic, op)
		test.Says(t, err, "panic: crashed", op)
	}
	d.Fail = nil
	for op, err := range everyOp(t, func() *storagedrivers.Storage { return s }, "other") {
		if op != "commit" { // the key is stored by then
			test.Is(t, err, nil, op)
		}
	}
}
