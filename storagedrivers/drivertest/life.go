package drivertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

func testMissing(t *testing.T, e *env) {
	e.put(t, "folder/object", content{1, 100}, create)
	for _, key := range []string{"missing", "missing/missing", "folder/missing", "folder", "folder/object/below"} {
		e.hasNot(t, key)
		succeeds(t, e.storage.Delete(t.Context(), key), "deleting a missing object")
		if err := e.driver.Delete(t.Context(), key, storagedrivers.DeleteOptions{}); err != nil {
			fails(t, err, fs.ErrNotExist, "the driver deleting a missing object")
		}
	}
	e.has(t, "folder/object", content{1, 100})
	e.holds(t, "folder/object")
}

func testDelete(t *testing.T, e *env) {
	keys := []string{"one", "folder/one", "folder/two", "folder/sub/one"}
	for i, key := range keys {
		e.put(t, key, content{uint64(i), 100}, create)
	}
	for i, key := range keys {
		succeeds(t, e.storage.Delete(t.Context(), key), "deleting "+key)
		e.hasNot(t, key)
		succeeds(t, e.storage.Delete(t.Context(), key), "deleting again "+key)
		for j := i + 1; j < len(keys); j++ {
			e.has(t, keys[j], content{uint64(j), 100})
		}
	}
	e.holds(t)
	for i, key := range keys {
		e.put(t, key, content{uint64(i) + 10, 100}, create)
		e.has(t, key, content{uint64(i) + 10, 100})
	}
	e.holds(t, keys...)
}

func testCheck(t *testing.T, e *env) {
	for range 2 {
		succeeds(t, e.storage.Check(t.Context()), "checking")
		e.holds(t)
	}
	e.put(t, "object", content{1, 100}, create)
	succeeds(t, e.storage.Check(t.Context()), "checking")
	if got, want := e.storage.Features(), e.driver.Features(); got != want {
		t.Errorf("features %+v, want %+v", got, want)
	}
	e.holds(t, "object")
}

// testClose: running operations continue after Close, and the driver is closed once, after the last
// of them.
func testClose(t *testing.T, e *env) {
	c := content{1, 9 * mib}
	e.put(t, "object", c, create)
	closes := 0
	s := storagedrivers.New("closed", e.driver, storagedrivers.Options{Close: func() error {
		closes++
		return nil
	}})
	staged, err := s.Stage(t.Context())
	test.Must(t, err)
	_, err = io.Copy(staged, c.part(0, mib))
	succeeds(t, err, "writing")
	body, _, err := s.Open(t.Context(), "object", all)
	test.Must(t, err)
	succeeds(t, equal(io.LimitReader(body, kib), c.part(0, kib)), "reading before")
	o, err := s.OpenSeeker(t.Context(), "object")
	test.Must(t, err)
	closed(t, s)
	closed(t, s)
	refusesAll(t, s)

	succeeds(t, equal(body, c.part(kib, c.size-kib)), "reading after closing the storage")
	closed(t, body)
	succeeds(t, equal(o, c.reader()), "seeker reading after closing the storage")
	_, err = o.Seek(5, io.SeekStart)
	succeeds(t, err, "seeking after closing the storage")
	succeeds(t, equal(o, c.part(5, c.size-5)), "reading from there")
	closed(t, o)
	_, err = io.Copy(staged, c.part(mib, 8*mib))
	succeeds(t, err, "writing after closing the storage")
	_, err = commitOne(t.Context(), s, staged, "staged", create)
	succeeds(t, err, "committing after closing the storage")
	if closes != 0 {
		t.Error("the driver was closed while an object was staged")
	}
	closed(t, staged)
	closed(t, body)
	closed(t, o)
	closed(t, s)
	if closes != 1 {
		t.Errorf("the driver was closed %d times, want once", closes)
	}
	refusesAll(t, s)
	e.has(t, "staged", c)
	e.holds(t, "object", "staged")
}

// refusesAll asserts that a closed storage refuses all operations.
func refusesAll(t *testing.T, s *storagedrivers.Storage) {
	t.Helper()
	ctx := t.Context()
	_, putErr := s.Put(ctx, "new", newSource(content{1, 1}), create)
	_, _, openErr := s.Open(ctx, "object", all)
	_, seekErr := s.OpenSeeker(ctx, "object")
	_, statErr := s.Stat(ctx, "object")
	_, listErr := s.List(ctx, storagedrivers.ListOptions{})
	_, stageErr := s.Stage(ctx)
	_, spaceErr := s.Space(ctx)
	if errors.Is(spaceErr, errors.ErrUnsupported) {
		spaceErr = storagedrivers.ErrClosed
	}
	for op, err := range map[string]error{
		"put": putErr, "open": openErr, "open to seek": seekErr, "stat": statErr, "list": listErr,
		"stage": stageErr, "space": spaceErr, "delete": s.Delete(ctx, "object"), "check": s.Check(ctx),
	} {
		fails(t, err, storagedrivers.ErrClosed, op+" after closing")
	}
}

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

// testSpace: the space of a backend is possible, and asking for it leaves nothing behind.
func testSpace(t *testing.T, e *env) {
	s := storagedrivers.New("space", e.bare, storagedrivers.Options{Close: func() error { return nil }})
	defer closed(t, s)
	space, err := s.Space(t.Context())
	if errors.Is(err, errors.ErrUnsupported) {
		if space != (storagedrivers.Space{}) {
			t.Errorf("space %+v with the error %v", space, err)
		}
		t.Skip("the backend does not report its space")
	}
	succeeds(t, err, "asking for the space")
	if space.Free < 0 || space.Total < 1 || space.Free > space.Total {
		t.Errorf("space %+v, want 0 <= Free <= Total, and a Total of at least 1", space)
	}
	e.put(t, "object", content{1, 100}, create)
	after, err := s.Space(t.Context())
	succeeds(t, err, "asking for the space again")
	if after.Total < 1 {
		t.Errorf("space %+v", after)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Space(ctx)
	fails(t, err, context.Canceled, "asking for the space after the end of the context")
	e.holds(t, "object")
}

const defaultMaxMemory = 32 * mib

// testMemory stages 100 MiB of unknown length, commits and reads them, and measures the live heap
// and, on Linux, the resident memory. The race detector multiplies both, so that nothing is
// measured under it.
func testMemory(t *testing.T, e *env) {
	if RaceDetector || testing.Short() {
		t.Skip("needs some seconds, and no race detector")
	}
	c := content{1, 100 * mib}
	limit := e.harness.MaxMemory
	if limit == 0 {
		limit = defaultMaxMemory
	}
	e.put(t, "warm up", content{2, 9 * mib}, create) // connections and pools
	e.has(t, "warm up", content{2, 9 * mib})
	heap, resident := watch(func() {
		staged := e.stage(t, c)
		e.commit(t, staged, "object", c, create)
		closed(t, staged)
		e.has(t, "object", c)
	})
	t.Logf("the live heap grew by %d KiB, the process by %d KiB", heap/kib, resident/kib)
	if heap > limit {
		t.Errorf("the live heap grew by %d bytes, want at most %d", heap, limit)
	}
	// Free pages are returned late.
	if want := 2 * limit; resident > want {
		t.Errorf("the process grew by %d bytes, want at most %d", resident, want)
	}
	e.holds(t, "warm up", "object")
}

// watch returns the largest growth of the live heap and of the process while f runs. It collects
// garbage repeatedly, because the amount of uncollected garbage depends on the load of the machine.
func watch(f func()) (heap, resident uint64) {
	heapBefore, residentBefore := heapBytes(), residentBytes()
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			heap = max(heap, grown(heapBefore, heapBytes()))
			resident = max(resident, grown(residentBefore, residentBytes()))
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(done)
	<-stopped
	return heap, resident
}

func grown(before, after uint64) uint64 { return max(before, after) - before }

// heapBytes collects garbage and returns the size of the remaining heap.
func heapBytes() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// residentBytes returns 0 if unknown.
func residentBytes() uint64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(io.LimitReader(file, mib)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			var kilobytes uint64
			if _, err := fmt.Sscan(rest, &kilobytes); err == nil {
				return kilobytes * kib
			}
		}
	}
	return 0
}
