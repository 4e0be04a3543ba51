package drivertest

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// sweeps returns a function that sweeps d and returns the leftovers. It skips the test if d cannot.
func (e *env) sweeps(t *testing.T, d storagedrivers.Driver) func(opts storagedrivers.SweepOptions) []storagedrivers.Leftover {
	t.Helper()
	if _, ok := d.(storagedrivers.Sweeper); !ok {
		t.Skip("the driver has nothing to sweep")
	}
	s := storagedrivers.New("sweeper", d, storagedrivers.Options{Close: func() error { return nil }})
	if _, err := s.Sweep(t.Context(), storagedrivers.SweepOptions{DryRun: true}); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the backend does not report leftovers")
	}
	return func(opts storagedrivers.SweepOptions) []storagedrivers.Leftover {
		t.Helper()
		left, err := s.Sweep(t.Context(), opts)
		succeeds(t, err, "sweeping")
		return left
	}
}

// testSweep: leftovers of an aborted upload are found and removed when they are old enough, and
// nothing else is.
func testSweep(t *testing.T, e *env) {
	now := e.sweeps(t, e.bare)
	if e.harness.Later == nil {
		t.Skip("the harness cannot abort an upload")
	}
	c := content{1, 100}
	e.put(t, "folder/object", c, create)
	e.abort(t, e.prefix+"folder/cut")
	left := e.hidden(t, "folder/object")
	if len(left) == 0 {
		t.Fatal("an aborted upload has no leftovers")
	}
	for _, dry := range []bool{true, false} {
		if got := now(storagedrivers.SweepOptions{DryRun: dry}); len(got) > 0 {
			t.Errorf("swept %+v, which is young", got)
		}
	}
	driver := e.harness.Later(e.t)
	defer closed(t, driver)
	later := e.sweeps(t, driver)
	if got := later(storagedrivers.SweepOptions{OlderThan: 72 * time.Hour}); len(got) > 0 {
		t.Errorf("swept %+v, which is younger than three days", got)
	}
	found := later(storagedrivers.SweepOptions{DryRun: true})
	if len(found) == 0 {
		t.Error("an old leftover was not found")
	}
	for _, one := range found {
		if one.Name == "" || path.IsAbs(one.Name) || strings.Contains(one.Name, "..") || one.Size < -1 || one.ModTime.IsZero() {
			t.Errorf("found %+v, want a name below the root, a size and a time", one)
		}
	}
	_, err := driver.List(t.Context(), storagedrivers.ListOptions{}) // which sweeps in other cases
	succeeds(t, err, "listing")
	if got := e.hidden(t, "folder/object"); !slices.Equal(got, left) {
		t.Errorf("the backend has %q, had %q before operations that must not remove anything", got, left)
	}
	if got := later(storagedrivers.SweepOptions{}); !sameNames(got, found) {
		t.Errorf("removed %+v, found %+v", got, found)
	}
	e.holds(t, "folder/object")
	e.has(t, "folder/object", c)
	if got := later(storagedrivers.SweepOptions{}); len(got) > 0 {
		t.Errorf("swept %+v again", got)
	}
}

// sameNames compares only names: a host may be late to update the times of an aborted upload.
func sameNames(a, b []storagedrivers.Leftover) bool {
	return slices.EqualFunc(a, b, func(a, b storagedrivers.Leftover) bool { return a.Name == b.Name })
}

// hidden returns the content of the backend besides these objects.
func (e *env) hidden(t *testing.T, objects ...string) []string {
	t.Helper()
	if got := e.keys(t); !slices.Equal(got, objects) {
		t.Errorf("listed %q, want %q", got, objects)
	}
	names := slices.DeleteFunc(e.harness.Leftovers(e.t), func(name string) bool {
		return slices.Contains(objects, strings.TrimPrefix(name, e.prefix))
	})
	slices.Sort(names)
	return names
}

// testSweepBesideUploads: data of a running upload stays, whichever driver sweeps, at any age.
func testSweepBesideUploads(t *testing.T, e *env) {
	sweepers := []func(storagedrivers.SweepOptions) []storagedrivers.Leftover{e.sweeps(t, e.bare)}
	if e.harness.Another != nil {
		other := e.harness.Another(e.t)
		defer closed(t, other)
		sweepers = append(sweepers, e.sweeps(t, other))
	}
	sweep := func() error {
		for _, sweep := range sweepers {
			if got := sweep(storagedrivers.SweepOptions{OlderThan: 1}); len(got) > 0 {
				t.Errorf("swept %+v of an upload in progress", got)
			}
		}
		return nil
	}
	e.put(t, "old", content{1, 100}, create)
	for _, at := range []int64{10 * kib, 8*mib + kib} { // in the first part of an upload, and between parts
		for key, opts := range map[string]storagedrivers.PutOptions{"new": create, "old": overwrite} {
			c := content{uint64(at), 9 * mib}
			src := newSource(c)
			src.at, src.event = at, sweep
			_, err := e.storage.Put(t.Context(), key, src, opts)
			succeeds(t, err, "storing "+key+" beside a sweep")
			e.has(t, key, c)
		}
		succeeds(t, e.storage.Delete(t.Context(), "new"), "deleting")
	}
	staged := e.stage(t, content{2, 9 * mib})
	succeeds(t, sweep(), "sweeping")
	e.commit(t, staged, "old", content{2, 9 * mib}, overwrite)
	succeeds(t, sweep(), "sweeping")
	closed(t, staged)
	e.has(t, "old", content{2, 9 * mib})
	e.holds(t, "old")
}
