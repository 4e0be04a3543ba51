package storagedrivers_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestCallerHangsUp: an operation that its caller cancels is no failure of the backend, whatever error
// its driver returns for the cut connection. It is not retried and does not open the circuit.
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
				"commit": func(ctx context.Context) error {
					staged, err := s.Stage(ctx)
					if err != nil {
						return err
					}
					err = commit(ctx, s, staged, "key", create)
					test.Is(t, staged.Close(), nil)
					return err
				},
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
