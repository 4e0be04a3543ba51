//go:build unix

package mediacmd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
)

// TestInterrupt: an error that the interrupt itself causes is reported as an interruption, not as a
// failure of the storage.
func TestInterrupt(t *testing.T) { // not parallel: the signal reaches the whole process
	for name, test := range map[string]struct {
		interrupted bool
		fails       error
		want        string
	}{
		"an operation is aborted": {true, errors.New(`storage "a" cannot be used: context canceled`), "interrupted"},
		"a reported failure":      {true, errReported, errReported.Error()},
		"a failure without it":    {false, errors.New("refused"), "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := withOutput(new(cobra.Command), func(ctx context.Context, _ *output, _ []string) error {
				if test.interrupted {
					if err := syscall.Kill(syscall.Getpid(), syscall.SIGINT); err != nil {
						t.Error(err)
					}
					<-ctx.Done()
				}
				return test.fails
			})
			cmd.SetContext(t.Context())
			err := cmd.RunE(cmd, nil)
			if err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// TestSweepInterrupted: an interrupted sweep counts no failure.
func TestSweepInterrupted(t *testing.T) {
	t.Parallel()
	s := storagedrivers.New("a", local.New(local.Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	t.Cleanup(func() { s.Close() })
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(errors.New("a signal"))
	var out bytes.Buffer
	w := &sweeping{session: &session{output: &output{out: &out, err: &out, json: true}}}
	if err := w.leftovers(ctx, s); err != nil {
		t.Error(err)
	}
	if err := w.variants(ctx, &item.Alias{Kind: item.Image, Storage: s}); err != nil {
		t.Error(err)
	}
	if w.totals.Failed != 0 || out.Len() != 0 {
		t.Errorf("%d failures: %s", w.totals.Failed, &out)
	}
}
