package storagedrivers_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

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

// TestSilenceIsNotRepeated: an operation that has waited for the driver's whole time-out is not
// retried.
func TestSilenceIsNotRepeated(t *testing.T) {
	t.Parallel()
	_, undialled := (&net.Dialer{Timeout: time.Nanosecond}).Dial("tcp", "127.0.0.1:1")
	for _, silence := range []error{os.ErrDeadlineExceeded, undialled} {
		f := newFlaky()
		s := open(t, f, storagedrivers.Options{})
		f.err = errors.Join(storagedrivers.ErrUnavailable, silence)
		test.Is(t, stat(t, s), silence)
		test.Equal(t, f.calls, 1, silence, "tried", "times")
	}
}
