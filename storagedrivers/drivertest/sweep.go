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

// sweeps gives a function that sweeps over d and tells how it ended, or skips the test where
// d cannot.
func (p *place) sweeps(t *testing.T, d storagedrivers.Driver) func(opts storagedrivers.SweepOptions) []storagedrivers.Leftover {
	t.Helper()
	if _, ok := d.(storagedrivers.Sweeper); !ok {
		t.Skip("the driver has nothing to sweep")
	}
	s := storagedrivers.New("sweeper", d, storagedrivers.Options{Close: func() error { return nil }})
	if _, err := s.Sweep(t.Context(), storagedrivers.SweepOptions{DryRun: true}); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the place does not tell of leftovers")
	}
	return func(opts storagedrivers.SweepOptions) []storagedrivers.Leftover {
		t.Helper()
		left, err := s.Sweep(t.Context(), opts)
		succeeds(t, err, "sweeping")
		return left
	}
}

// testSweep: what an upload that was cut off has left is found when it is old, and goes, and
// nothing else does.
func testSweep(t *testing.T, p *place) {
	now := p.sweeps(t, p.bare)
	if p.harness.CutOff == nil {
		t.Skip("the harness cannot cut an upload off")
	}
	c := content{1, 100}
	p.put(t, "folder/object", c, create)
	p.harness.CutOff(p.t, p.prefix+"folder/cut")
	left := p.hidden(t, "folder/object")
	if len(left) == 0 {
		t.Fatal("an upload that was cut off has left nothing")
	}
	for _, dry := range []bool{true, false} {
		if got := now(storagedrivers.SweepOptions{DryRun: dry}); len(got) > 0 {
			t.Errorf("swept %+v, which is young", got)
		}
	}
	driver := p.harness.Later(p.t)
	defer closed(t, driver)
	later := p.sweeps(t, driver)
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
	_, err := driver.List(t.Context(), storagedrivers.ListOptions{}) // which sweeps otherwise
	succeeds(t, err, "listing")
	if got := p.hidden(t, "folder/object"); !slices.Equal(got, left) {
		t.Errorf("the place has %q, had %q before what was not to remove anything", got, left)
	}
	if got := later(storagedrivers.SweepOptions{}); !sameNames(got, found) {
		t.Errorf("removed %+v, found %+v", got, found)
	}
	p.holds(t, "folder/object")
	p.has(t, "folder/object", c)
	if got := later(storagedrivers.SweepOptions{}); len(got) > 0 {
		t.Errorf("swept %+v once more", got)
	}
}

// sameNames goes by names alone: a host may take a while to notice that nothing more comes.
func sameNames(a, b []storagedrivers.Leftover) bool {
	return slices.EqualFunc(a, b, func(a, b storagedrivers.Leftover) bool { return a.Name == b.Name })
}

// hidden gives what the place holds beside these objects.
func (p *place) hidden(t *testing.T, objects ...string) []string {
	t.Helper()
	if got := p.keys(t); !slices.Equal(got, objects) {
		t.Errorf("listed %q, want %q", got, objects)
	}
	names := slices.DeleteFunc(p.harness.Leftovers(p.t), func(name string) bool {
		return slices.Contains(objects, strings.TrimPrefix(name, p.prefix))
	})
	slices.Sort(names)
	return names
}

// testSweepBesideUploads: what an upload under way uses stays, whoever sweeps for things of
// whatever age.
func testSweepBesideUploads(t *testing.T, p *place) {
	sweepers := []func(storagedrivers.SweepOptions) []storagedrivers.Leftover{p.sweeps(t, p.bare)}
	if p.harness.Another != nil {
		other := p.harness.Another(p.t)
		defer closed(t, other)
		sweepers = append(sweepers, p.sweeps(t, other))
	}
	sweep := func() error {
		for _, sweep := range sweepers {
			if got := sweep(storagedrivers.SweepOptions{OlderThan: 1}); len(got) > 0 {
				t.Errorf("swept %+v of an upload under way", got)
			}
		}
		return nil
	}
	p.put(t, "old", content{1, 100}, create)
	for _, at := range []int64{10 * kib, 8*mib + kib} { // in the first part of an upload, and between parts
		for key, opts := range map[string]storagedrivers.PutOptions{"new": create, "old": overwrite} {
			c := content{uint64(at), 9 * mib}
			src := newSource(c)
			src.at, src.event = at, sweep
			_, err := p.storage.Put(t.Context(), key, src, opts)
			succeeds(t, err, "storing "+key+" beside a sweep")
			p.has(t, key, c)
		}
		succeeds(t, p.storage.Delete(t.Context(), "new"), "deleting")
	}
	staged := p.stage(t, content{2, 9 * mib})
	succeeds(t, sweep(), "sweeping")
	p.commit(t, staged, "old", content{2, 9 * mib}, overwrite)
	succeeds(t, sweep(), "sweeping")
	closed(t, staged)
	p.has(t, "old", content{2, 9 * mib})
	p.holds(t, "old")
}
