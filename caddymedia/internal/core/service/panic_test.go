package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// panicking is a driver that panics in one of its methods.
type panicking struct {
	*memory.Driver
	in string // "features", or an operation of [memory.Driver]
}

func (d *panicking) Features() storagedrivers.Features {
	_ = d.fail("features", "")
	return d.Driver.Features()
}

func (d *panicking) fail(op, _ string) error {
	if op == d.in {
		panic("a fault of " + op)
	}
	return nil
}

// panickingStore is a token store whose check panics.
type panickingStore struct{ tokens.Store }

func (panickingStore) Check(context.Context) error { panic("a fault of the store") }

// TestBackgroundPanics: a panic of a driver or of a token store in the background is logged, and
// the error of its operation. The work goes on after it.
func TestBackgroundPanics(t *testing.T) {
	t.Parallel()
	for in, tt := range map[string]struct {
		health, usage bool
		logged        string
	}{
		"check":    {health: true, logged: msgUnreachable},
		"list":     {usage: true, logged: "sweeping resumable uploads"},
		"features": {health: true, usage: true, logged: msgUnreachable},
	} {
		t.Run(in, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &panicking{Driver: memory.New()}
				d.Fail = d.fail
				var log bytes.Buffer
				parts := partsOf(t)
				parts.Storages[0].Driver, parts.Tokens = d, panickingStore{parts.Tokens}
				parts.Log = slog.New(slog.NewTextHandler(&log, nil))
				s := start(t, parts)
				outcome := func() (health, usage error) {
					s.CountUsages(true)
					time.Sleep(2 * time.Hour)
					synctest.Wait()
					for _, state := range s.Health() {
						health = errors.Join(health, state.Err)
					}
					return health, usageOf(t, s, item.File, "content").Err
				}
				d.in = in
				s.Start()
				health, usage := outcome()
				if errors.Is(health, storagedrivers.ErrPanic) != tt.health || errors.Is(usage, storagedrivers.ErrPanic) != tt.usage {
					t.Errorf("health %v, usage %v", health, usage)
				}
				for _, want := range []string{tt.logged, "checking the token store"} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("%q is missing in the log: %s", want, log.String())
					}
				}
				d.in = ""
				if health, usage = outcome(); health != nil || usage != nil {
					t.Errorf("afterwards: health %v, usage %v", health, usage)
				}
			})
		})
	}
}
