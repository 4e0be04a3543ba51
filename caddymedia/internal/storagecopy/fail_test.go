package storagecopy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/storagecopy"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestCorruptCopy: a corrupt copy is removed.
func TestCorruptCopy(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.put(p.opts.From, "a", "content")
	p.opts.To = storagedrivers.New("to", &corrupting{p.to}, storagedrivers.Options{})
	p.run(want{failed: 1})
	if err := p.failed["a"]; err == nil || !strings.Contains(err.Error(), "other bytes than were sent") {
		t.Errorf("it failed with %v", err)
	}
	if got := p.contents(p.opts.To); len(got) != 0 {
		t.Errorf("the destination has %q", got)
	}
	p.opts.ReadBack = false // so that only the size is compared
	p.run(want{copied: 1})
}

// corrupting stores other bytes than it receives.
type corrupting struct{ *memory.Driver }

func (c *corrupting) Put(
	ctx context.Context, key string, body io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	b, err := io.ReadAll(body)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	b[0]++
	return c.Driver.Put(ctx, key, bytes.NewReader(b), opts)
}

// TestFailures: some failures concern one item, and others end the run.
func TestFailures(t *testing.T) {
	t.Parallel()
	const items = 100
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		fail    func(n int64, op, key string) error // n counts what is put
		want    want
		stopped error
	}{
		"one item": {
			func(_ int64, op, key string) error {
				if op == "put" && key == "img/3/item-3.txt" {
					return refused
				}
				return nil
			},
			want{copied: items - 1, failed: 1},
			nil,
		},
		"away for a moment": {
			func(n int64, op, _ string) error {
				if op == "put" && n > 50 && n < 55 {
					return storagedrivers.ErrUnavailable
				}
				return nil
			},
			want{copied: items},
			nil,
		},
		"away": {
			func(n int64, op, _ string) error {
				if n > 50 && op != "list" {
					return storagedrivers.ErrUnavailable
				}
				return nil
			},
			want{},
			storagedrivers.ErrUnavailable,
		},
		"full": {
			func(n int64, op, _ string) error {
				if n > 50 && op == "put" {
					return storagedrivers.ErrNoSpace
				}
				return nil
			},
			want{},
			storagedrivers.ErrNoSpace,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			p.fill(items)
			var puts atomic.Int64
			p.to.Fail = func(op, key string) error {
				if op == "put" {
					puts.Add(1)
				}
				return test.fail(puts.Load(), op, key)
			}
			report, err := storagecopy.Run(t.Context(), p.opts)
			if !errors.Is(err, test.stopped) {
				t.Errorf("it ended with %v", err)
			}
			if test.stopped == nil {
				p.expect(report, test.want)
				return
			}
			if report.Failed.Items != 0 || report.Copied.Items == 0 || report.Copied.Items > 50 {
				t.Errorf("%+v", report)
			}
			if !strings.Contains(err.Error(), `"to"`) {
				t.Errorf("it does not say which storage: %v", err)
			}
		})
	}
}
