package mediaapp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestHealth: what changes goes to the log, and since when it is so is kept.
func TestHealth(t *testing.T) {
	t.Parallel()
	var broken error
	driver := memory.New()
	driver.Fail = func(string, string) error { return broken }
	storage := storagedrivers.New("far", driver, storagedrivers.Options{})
	var log bytes.Buffer
	now := time.Unix(1000, 0)
	app := &App{
		log: slog.New(slog.NewTextHandler(&log, nil)), metrics: newMetrics(prometheus.NewPedanticRegistry()),
		health: newHealth(), storages: map[string]*storagedrivers.Storage{"far": storage},
	}
	app.health.now = func() time.Time {
		now = now.Add(time.Second)
		return now
	}
	if got := app.Health()["far"]; got != (Health{}) {
		t.Errorf("before the first check: %+v", got)
	}
	down := errors.New("down")
	var since time.Time
	for i, tt := range []struct {
		err     error
		changes bool
		logged  string
	}{
		{nil, true, ""},
		{nil, false, ""},
		{down, true, msgUnusable},
		{down, false, ""},
		{nil, true, msgUsableAgain},
		{down, true, msgUnusable},
	} {
		broken = tt.err
		log.Reset()
		if ok := app.examine(t.Context(), "far", storage); ok != (tt.err == nil) {
			t.Errorf("check %d: usable %t", i, ok)
		}
		got := app.Health()["far"]
		if !errors.Is(got.Err, tt.err) || got.Took <= 0 || got.Features != storage.Features() {
			t.Errorf("check %d: %+v, want error %v", i, got, tt.err)
		}
		if changed := !got.Since.Equal(since); changed != tt.changes {
			t.Errorf("check %d: since %v, before %v, want a change %t", i, got.Since, since, tt.changes)
		}
		since = got.Since
		if text := log.String(); strings.Count(text, "\n") > 1 || (tt.logged == "") != (text == "") || !strings.Contains(text, tt.logged) {
			t.Errorf("check %d logs %q, want %q", i, text, tt.logged)
		}
		up := testutil.ToFloat64(app.metrics.usable.WithLabelValues("far"))
		if (up == 1) != (tt.err == nil) {
			t.Errorf("check %d: the metric is %v", i, up)
		}
	}
}

// TestHealthAfterReload: what was known of a storage that stays is known until its first
// check, and since when it is so longer than that.
func TestHealthAfterReload(t *testing.T) {
	t.Parallel()
	down, long := errors.New("down"), time.Unix(1000, 0)
	before := &App{health: newHealth(), poolKeys: map[string]string{"stays": "a", "moves": "b", "mended": "c"}, storages: map[string]*storagedrivers.Storage{}}
	after := &App{health: newHealth(), poolKeys: map[string]string{"stays": "a", "moves": "x", "mended": "c", "new": "n"}, storages: map[string]*storagedrivers.Storage{}}
	for name := range before.poolKeys {
		before.storages[name] = nil
		before.health.states[name] = Health{Err: down, Since: long, Checked: long}
	}
	for name := range after.poolKeys {
		after.storages[name] = nil
	}
	after.inherit(before)
	for name, known := range map[string]bool{"stays": true, "mended": true, "moves": false, "new": false} {
		if got := after.Health()[name]; got.Since.Equal(long) != known || (got.Err != nil) != known {
			t.Errorf("%s: %+v, known %t", name, got, known)
		}
	}
	if told := after.health.note("stays", long, down, storagedrivers.Features{}); told.Err != nil {
		t.Errorf("the log of this configuration would not tell: %+v", told)
	}
	after.health.note("stays", long, down, storagedrivers.Features{})
	after.health.note("mended", long, nil, storagedrivers.Features{})
	if got := after.Health(); !got["stays"].Since.Equal(long) || got["mended"].Since.Equal(long) || got["mended"].Err != nil {
		t.Errorf("after the first checks: %+v", got)
	}
}

// TestHealthMendedByReload: a storage that could not be used in the configuration before is told
// to be usable again, also on another backend; one that could be used is nothing to tell of.
func TestHealthMendedByReload(t *testing.T) {
	t.Parallel()
	before := &App{health: newHealth(), poolKeys: map[string]string{}, storages: map[string]*storagedrivers.Storage{}}
	var log bytes.Buffer
	after := &App{
		log: slog.New(slog.NewTextHandler(&log, nil)), metrics: newMetrics(prometheus.NewPedanticRegistry()),
		health: newHealth(), poolKeys: map[string]string{"stays": "a", "moved": "x", "well": "w", "new": "n"},
		storages: map[string]*storagedrivers.Storage{},
	}
	for name, state := range map[string]Health{
		"stays": {Err: errors.New("down")}, "moved": {Err: errors.New("down")}, "well": {},
	} {
		state.Since, state.Checked = time.Unix(1000, 0), time.Unix(1000, 0)
		before.poolKeys[name], before.storages[name], before.health.states[name] = name[:1], nil, state
	}
	before.poolKeys["stays"] = "a"
	for name := range after.poolKeys {
		after.storages[name] = storagedrivers.New(name, memory.New(), storagedrivers.Options{})
	}
	after.inherit(before)
	for name, again := range map[string]bool{"stays": true, "moved": true, "well": false, "new": false} {
		log.Reset()
		for range 2 { // once is enough
			after.examine(t.Context(), name, after.storages[name])
		}
		if told := strings.Count(log.String(), msgUsableAgain); told > 1 || (told == 1) != again {
			t.Errorf("%s: logged %q, want it told %t", name, log.String(), again)
		}
	}
}

// TestFailureBringsCheckForward: the state of a storage that fails is known before the interval is over.
func TestFailureBringsCheckForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checks atomic.Int32
		var broken error
		driver := memory.New()
		driver.Fail = func(op, _ string) error {
			if op == "check" {
				checks.Add(1)
				return nil
			}
			return broken
		}
		app := &App{
			log: slog.New(slog.DiscardHandler), metrics: newMetrics(prometheus.NewPedanticRegistry()), health: newHealth(),
			storages: map[string]*storagedrivers.Storage{}, HealthInterval: caddy.Duration(time.Minute),
		}
		storage := storagedrivers.New("far", driver, storagedrivers.Options{Observe: app.observe("far")})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go app.watch(ctx, "far", storage)
		use := func(err error) {
			broken = err
			_, _ = storage.Stat(ctx, "missing")
			synctest.Wait()
		}
		want := func(n int32, after time.Duration, when string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if checks.Load() != n {
				t.Errorf("%s: %d checks, want %d", when, checks.Load(), n)
			}
		}
		want(1, time.Second, "at the start")
		use(errors.New("read-only"))
		want(1, 8*time.Second, "right after a check")
		want(2, 2*time.Second, "10 s after a check")
		use(nil)
		want(2, 20*time.Second, "after a missing object")
		use(errors.New("read-only"))
		want(3, 0, "after a failure")
		want(4, time.Minute, "after the interval")
	})
}

// TestHealthOfTheEnd: a configuration that is gone is not heard of any more.
func TestHealthOfTheEnd(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	app := &App{log: slog.New(slog.NewTextHandler(&log, nil)), metrics: newMetrics(prometheus.NewPedanticRegistry()), health: newHealth()}
	storage := storagedrivers.New("far", memory.New(), storagedrivers.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	app.examine(ctx, "far", storage)
	if err := storage.Close(); err != nil {
		t.Fatal(err)
	}
	app.examine(t.Context(), "far", storage)
	app.watch(ctx, "far", storage) // ends at once
	if log.Len() > 0 || len(app.health.states) > 0 {
		t.Errorf("logged %q, kept %v", log.String(), app.health.states)
	}
}
