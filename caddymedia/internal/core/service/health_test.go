package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
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

// presigning is a driver whose backend has an address.
type presigning struct {
	*memory.Driver
	base string
}

func (d presigning) Presign(_ context.Context, key string, _ storagedrivers.PresignOptions) (string, error) {
	return d.base + "/" + key + "?signature=x", nil
}

// TestProbePrivate: the probe of a storage with private items warns if its objects can be read
// without a signature, and leaves nothing behind.
func TestProbePrivate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		below   string // the prefix that it is for; others get 403
		private *item.Private
		steps   int // further ones
		note    string
	}{
		"public bucket":         {http.StatusOK, "", &item.Private{}, 1, noteUnsigned},
		"public prefix":         {http.StatusOK, "file/a/", &item.Private{}, 1, noteUnsigned},
		"last public prefix":    {http.StatusOK, "file/b/", &item.Private{}, 1, noteUnsigned},
		"other public prefix":   {http.StatusOK, "file/open/", &item.Private{}, 1, ""},
		"private bucket":        {http.StatusForbidden, "", &item.Private{}, 1, ""},
		"redirect":              {http.StatusFound, "", &item.Private{}, 1, ""},
		"without private items": {http.StatusOK, "", nil, 0, ""},
		"unreachable":           {0, "", &item.Private{}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			driver := memory.New()
			backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := driver.Stat(r.Context(), r.URL.Path[1:]); err != nil || r.URL.RawQuery != "" {
					t.Errorf("requested %s: %v", r.URL, err)
				}
				if !strings.HasPrefix(r.URL.Path[1:], c.below) {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				w.WriteHeader(c.status)
			}))
			defer backend.Close()
			if c.status == 0 {
				backend.Close()
			}
			a, b := newAlias(t, item.File, "a"), newAlias(t, item.File, "b")
			a.Private, b.Private = c.private, c.private
			parts := partsOf(t)
			parts.Storages[0].Driver = presigning{driver, backend.URL}
			parts.Aliases = aliasesOf(a, b, newAlias(t, item.File, "open"))
			s := start(t, parts)
			storage, _ := s.Storage("default")
			plain, report := storage.Probe(t.Context()), s.Probe(t.Context(), storage)
			last := report.Steps[len(report.Steps)-1]
			if !report.OK() || len(report.Steps) != len(plain.Steps)+c.steps || last.Note != c.note {
				t.Errorf("%d steps, want %d more than %d; the last is %+v", len(report.Steps), c.steps, len(plain.Steps), last)
			}
			for info, err := range storage.All(t.Context(), "") {
				t.Errorf("left behind: %s (%v)", info.Key, err)
			}
		})
	}
}
