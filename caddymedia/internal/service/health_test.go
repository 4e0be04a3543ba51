package service

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

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// checked records the last observed check, and the number of checks with a change.
type checked struct {
	NopObserver
	last    Health
	changes int
}

func (c *checked) StorageChecked(_ string, health Health, changed bool) {
	c.last = health
	if changed {
		c.changes++
	}
}

// TestHealth: changes are logged, and Since is the time of the last change.
func TestHealth(t *testing.T) {
	t.Parallel()
	var broken error
	driver := memory.New()
	driver.Fail = func(string, string) error { return broken }
	var log bytes.Buffer
	now, observer := time.Unix(1000, 0), new(checked)
	s := start(t, Parts{
		Tokens: new(store), Aliases: aliasesOf(), Storages: []Storage{{Name: "far", Driver: driver}},
		Log: slog.New(slog.NewTextHandler(&log, nil)), Observer: observer,
		Now: func() time.Time {
			now = now.Add(time.Second)
			return now
		},
	})
	storage := s.storages["far"]
	if got := s.Health()["far"]; got != (Health{}) {
		t.Errorf("before the first check: %+v", got)
	}
	down := storagedrivers.WithCause(errors.New("down"), "Broken.")
	var since time.Time
	for i, tt := range []struct {
		err     error
		changes bool
		logged  string
	}{
		{nil, true, ""},
		{nil, false, ""},
		{down, true, msgUnreachable + `" storage=far reason=Broken. error=`},
		{down, false, ""},
		{nil, true, msgReachable},
		{down, true, msgUnreachable + `" storage=far reason=Broken. error=`},
	} {
		broken = tt.err
		log.Reset()
		if ok := s.check(t.Context(), "far", storage); ok != (tt.err == nil) {
			t.Errorf("check %d: reachable %t", i, ok)
		}
		got := s.Health()["far"]
		if !errors.Is(got.Err, tt.err) || got.Took <= 0 || got.Features != storage.Features() || got != observer.last {
			t.Errorf("check %d: %+v, observed %+v, want error %v", i, got, observer.last, tt.err)
		}
		if changed := !got.Since.Equal(since); changed != tt.changes {
			t.Errorf("check %d: since %v, before %v, want a change %t", i, got.Since, since, tt.changes)
		}
		since = got.Since
		if text := log.String(); strings.Count(text, "\n") > 1 || (tt.logged == "") != (text == "") || !strings.Contains(text, tt.logged) {
			t.Errorf("check %d logs %q, want %q", i, text, tt.logged)
		}
	}
	if observer.changes != 3 {
		t.Errorf("observed %d changes, want 3", observer.changes)
	}
}

// healthOf returns the states of storages by their names and settings.
func healthOf(settings map[string]string) *health {
	h := newHealth(0, time.Now)
	for name, setting := range settings {
		h.add(name, setting)
	}
	return h
}

// TestHealthAfterReload: a storage with unchanged settings keeps its state and Since after a
// reload.
func TestHealthAfterReload(t *testing.T) {
	t.Parallel()
	down, long := errors.New("down"), time.Unix(1000, 0)
	before := healthOf(map[string]string{"stays": "a", "moves": "b", "fixed": "c"})
	after := healthOf(map[string]string{"stays": "a", "moves": "x", "fixed": "c", "new": "n"})
	for name := range before.settings {
		before.states[name] = Health{Err: down, Since: long, Checked: long}
	}
	after.inherit(before)
	for name, known := range map[string]bool{"stays": true, "fixed": true, "moves": false, "new": false} {
		if got := after.all()[name]; got.Since.Equal(long) != known || (got.Err != nil) != known {
			t.Errorf("%s: %+v, known %t", name, got, known)
		}
	}
	if _, logged := after.note("stays", Health{Err: down, Checked: after.now()}); logged.Err != nil {
		t.Errorf("this service would not log: %+v", logged)
	}
	after.note("stays", Health{Err: down, Checked: after.now()})
	after.note("fixed", Health{Checked: after.now()})
	if got := after.all(); !got["stays"].Since.Equal(long) || got["fixed"].Since.Equal(long) || got["fixed"].Err != nil {
		t.Errorf("after the first checks: %+v", got)
	}
}

// TestHealthFixedByReload: if a storage was unreachable in the previous service, the log says that
// it is reachable again, also with other settings. If it was reachable, nothing is logged.
func TestHealthFixedByReload(t *testing.T) {
	t.Parallel()
	partsOn := func(names ...string) Parts {
		parts := Parts{Tokens: new(store), Aliases: aliasesOf()}
		for _, name := range names {
			parts.Storages = append(parts.Storages, Storage{Name: name, Driver: memory.New(), Settings: name})
		}
		return parts
	}
	before := start(t, partsOn("stays", "moved", "well"))
	for name, err := range map[string]error{"stays": errors.New("down"), "moved": errors.New("down"), "well": nil} {
		before.health.states[name] = Health{Err: err, Since: time.Unix(1000, 0), Checked: time.Unix(1000, 0)}
	}
	var log bytes.Buffer
	next := partsOn("stays", "moved", "well", "new")
	next.Storages[1].Settings = "others"
	next.Previous, next.Log = before, slog.New(slog.NewTextHandler(&log, nil))
	after := start(t, next)
	for name, again := range map[string]bool{"stays": true, "moved": true, "well": false, "new": false} {
		log.Reset()
		for range 2 { // once is enough
			after.check(t.Context(), name, after.storages[name])
		}
		if logged := strings.Count(log.String(), msgReachable); logged > 1 || (logged == 1) != again {
			t.Errorf("%s: logged %q, want it logged %t", name, log.String(), again)
		}
	}
}

// TestFailureBringsCheckForward: a storage that fails is checked before the interval is over.
func TestFailureBringsCheckForward(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var checks atomic.Int32
		var broken error
		driver := memory.New()
		driver.Fail = func(op, _ string) error {
			switch op {
			case "check":
				checks.Add(1)
			case "stat":
				return broken
			}
			return nil // also for the sweeps
		}
		s := start(t, Parts{
			Tokens: new(store), Aliases: aliasesOf(), Storages: []Storage{{Name: "far", Driver: driver}},
			HealthInterval: time.Minute,
		})
		s.Start()
		use := func(err error) {
			broken = err
			_, _ = s.storages["far"].Stat(t.Context(), "missing")
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

// TestHealthOfTheEnd: a closed service logs nothing more.
func TestHealthOfTheEnd(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := start(t, Parts{
		Tokens: new(store), Aliases: aliasesOf(), Storages: []Storage{{Name: "far", Driver: memory.New()}},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.check(ctx, "far", s.storages["far"])
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.check(t.Context(), "far", s.storages["far"])
	s.watch(ctx, "far", s.storages["far"]) // ends at once
	if log.Len() > 0 || len(s.health.states) > 0 {
		t.Errorf("logged %q, kept %v", log.String(), s.health.states)
	}
}
