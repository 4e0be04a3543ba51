//go:build unix

package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// recovered opens the folder like the next start, and reports whether it has one of the states. A
// growing object may have more than is known, and an empty one is as good as none.
func (d *testDisk) recovered(driver *Driver) (got map[string]string, ok bool) {
	test.Must(d.t, errors.Join(driver.Check(d.t.Context()), driver.Close()))
	got = files(d.t, d.root)
	if got["growing"] == "" {
		delete(got, "growing")
	}
	return got, slices.ContainsFunc(d.states, func(want map[string]string) bool {
		if end := want["growing"]; strings.HasPrefix(got["growing"], end) {
			want = maps.Clone(want)
			if want["growing"] = got["growing"]; want["growing"] == "" {
				delete(want, "growing")
			}
		}
		return maps.Equal(got, want)
	})
}

// work runs all kinds of requests.
func (d *testDisk) work(driver *Driver) {
	t, ctx := d.t, d.t.Context()
	s := storagedrivers.New("test", driver, storagedrivers.Options{})
	d.states = []map[string]string{{}}
	d.record(everything)
	store := func(key, content string) {
		d.request(map[string]string{key: content}, func() { test.Must(t, put(t, s, key, content, storagedrivers.Overwrite)) })
	}
	remove := func(key string) {
		d.request(map[string]string{key: ""}, func() { test.Must(t, s.Delete(ctx, key)) })
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		store(key, before[key])
	}
	for _, content := range []string{"1", "2", "3"} {
		store("a/b/c", content)
	}
	remove("a/b/c")
	for _, again := range []bool{false, true} {
		commitSeveral(t, driver, func(key, content string) {
			store(key, content)
			if again {
				d.states = append(d.states, after)
			}
		}, again)
		d.answered(d.states[len(d.states)-1])
		if !again {
			remove("g/created")
		}
	}
	d.changeTwo(driver)
	for _, content := range []string{"1", "2"} { // over the folders of the other one
		for _, key := range []string{"h/i/j", "h"} {
			store(key, content)
			remove(key)
		}
	}
	w, err := driver.Append(ctx, "growing", 0)
	test.Must(t, err)
	_, err = w.Write([]byte("known"))
	test.Must(t, err)
	d.request(map[string]string{"growing": "known"}, func() { test.Must(t, w.Flush(ctx)) })
	_, err = w.Write([]byte(" and not"))
	test.Must(t, errors.Join(err, w.Close()))
	d.request(map[string]string{"f/grown": "known and not"}, func() {
		w, err := driver.Append(ctx, "growing", 13)
		test.Must(t, err)
		st, err := w.Adopt(ctx)
		test.Must(t, err)
		test.Must(t, errors.Join(commitOne(ctx, driver, st, "f/grown", storagedrivers.PutOptions{}), st.Close()))
	})
	test.Must(t, s.Close())
}

// changeTwo replaces two objects by one commit, removes both by another, and creates them by a
// third.
func (d *testDisk) changeTwo(driver *Driver) {
	t, ctx := d.t, d.t.Context()
	for _, content := range []string{"newer", "", "newest"} {
		changes := []storagedrivers.Change{{Key: "f/created", Options: overwrite}, {Key: "f/new", Options: overwrite}}
		for i := range changes {
			if content == "" {
				continue
			}
			st, err := driver.Stage(ctx)
			test.Must(t, err)
			defer st.Close()
			_, err = st.Write([]byte(content))
			test.Must(t, err)
			changes[i].Staged = st
		}
		d.request(map[string]string{"f/created": content, "f/new": content}, func() {
			_, err := driver.Commit(ctx, changes)
			test.Must(t, err)
		})
	}
}

// cuts yields power failures after every moment from the second on: with nothing that was not
// synced, with all of it, and with some.
func (d *testDisk) cuts(rnd *rand.Rand, some int) iter.Seq2[int, cut] {
	return func(yield func(int, cut) bool) {
		for end := 2; end <= len(d.moments); end++ {
			for i := range 2 + some {
				kept := []func(int) int{func(int) int { return 0 }, func(n int) int { return n - 1 }, rnd.IntN}[min(i, 2)]
				if !yield(end, cut{d.moments[:end], kept}) {
					return
				}
			}
		}
	}
}

// TestPowerFailure: after a power failure at any moment, each answered request has happened, and
// each other one as a whole or not at all. The same is true after a second failure during the
// recovery. Without syncs the test finds losses.
func TestPowerFailure(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Driver){
		"unnamed": func(*Driver) {},
		"named":   func(d *Driver) { d.named = true },
		"no sync": func(d *Driver) { d.sync = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const seed = 1
			rnd := rand.New(rand.NewPCG(seed, 0))
			first := newDisk(t)
			defer first.remove()
			driver := first.driver(Config{})
			set(driver)
			synced := driver.sync
			first.work(driver)
			lost := 0
			check := func(d *testDisk, driver *Driver, message string, args ...any) {
				set(driver)
				got, ok := d.recovered(driver)
				if ok {
					return
				}
				lost++
				if synced {
					t.Errorf(message+": %v, want one of %v", append(args, got, d.states)...)
				}
			}
			for at, one := range first.cuts(rnd, 2) {
				d, twice := one.restored(t), rnd.IntN(32) == 0
				d.record(everything)
				check(d, d.driver(Config{Sync: new(twice)}), "after moment %d", at)
				if twice {
					for again, one := range d.cuts(rnd, 1) {
						d := one.restored(t)
						check(d, d.driver(Config{Sync: new(false)}), "after moments %d and %d", at, again)
						d.remove()
					}
				}
				d.remove()
			}
			t.Logf("%d moments, %d losses", len(first.moments), lost)
			if !synced && lost == 0 {
				t.Error("no loss was noticed")
			}
		})
	}
}

// testDisk is a folder with a recorded history: names, files and syncs after each step of a driver.
// After a power failure each name and each file has its state of the last sync or of any later
// moment, independently of the others. File systems with a journal promise more. A name that is
// replaced by rename(2) is never missing, but one of an exchange may be.
type testDisk struct {
	t    *testing.T
	root string
	// states are the states that a power failure may leave for the callers: one, or both those
	// before and after a running request.
	states []map[string]string

	mu      sync.Mutex
	held    map[uint64]*os.File // keeps the number of a file from being used again
	moments []moment
}

const everything = ^uint64(0)

// moment is the state of a disk after a step.
type moment struct {
	names  map[string]map[string]uint64 // by folder, of files and folders
	files  map[uint64]version
	synced uint64 // a file or folder, or all of them
	states []map[string]string
}

type version struct {
	data   string
	time   time.Time
	folder string // of this name; its names are in moment.names
}

func newDisk(t *testing.T) *testDisk {
	t.Helper()
	root, err := os.MkdirTemp(t.TempDir(), "")
	test.Must(t, err)
	return &testDisk{t: t, root: root, held: map[uint64]*os.File{}}
}

// remove removes the disk.
func (d *testDisk) remove() {
	for _, file := range d.held {
		test.Must(d.t, file.Close())
	}
	test.Must(d.t, os.RemoveAll(d.root))
}

// driver returns a driver of the folder whose steps are recorded.
func (d *testDisk) driver(config Config) *Driver {
	config.Root = d.root
	driver := New(config, slog.New(slog.DiscardHandler))
	driver.step = func(string) { d.record(0) }
	driver.synced = d.recordSync
	return driver
}

// recordSync records the sync of a file, which need not have a name, or a folder.
func (d *testDisk) recordSync(file *os.File) error {
	stat, err := file.Stat()
	if err != nil {
		return err
	}
	data, _ := io.ReadAll(io.NewSectionReader(file, 0, stat.Size())) // others are read by name
	d.recordWith(inode(stat), version{data: string(data), time: stat.ModTime()})
	return d.hold(inode(stat), file) // it may never have a name
}

// hold keeps the number of an open file from being used again.
func (d *testDisk) hold(id uint64, file *os.File) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held[id] != nil {
		return nil
	}
	again, err := syscall.Dup(int(file.Fd()))
	if err == nil {
		d.held[id] = os.NewFile(uintptr(again), file.Name())
	}
	return err
}

func (d *testDisk) record(synced uint64) { d.recordWith(synced, version{}) }

func (d *testDisk) recordWith(synced uint64, content version) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := moment{map[string]map[string]uint64{}, map[uint64]version{synced: content}, synced, d.states}
	test.Must(d.t, filepath.WalkDir(d.root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		stat, err := os.Lstat(name)
		if err != nil {
			return err
		}
		id, relative := inode(stat), strings.TrimPrefix(strings.TrimPrefix(name, d.root), "/")
		if d.held[id] == nil {
			if d.held[id], err = os.Open(name); err != nil {
				return err
			}
		}
		one := version{time: stat.ModTime()}
		if entry.IsDir() {
			one.folder = "/" + relative
			now.names[one.folder] = map[string]uint64{}
		} else {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			one.data = string(data)
		}
		now.files[id] = one
		if relative != "" {
			now.names[path.Dir("/"+relative)][entry.Name()] = id
		}
		return nil
	}))
	d.moments = append(d.moments, now)
}

// request runs a request that changes files; an empty one is removed.
func (d *testDisk) request(change map[string]string, run func()) {
	old, now := d.states[0], maps.Clone(d.states[0])
	maps.Copy(now, change)
	maps.DeleteFunc(now, func(_, content string) bool { return content == "" })
	d.states = []map[string]string{old, now}
	run()
	d.answered(now)
}

func (d *testDisk) answered(state map[string]string) {
	d.states = []map[string]string{state}
	d.record(0)
}

// cut is a power failure after a moment.
type cut struct {
	moments []moment
	kept    func(n int) int // selects one of n states, the oldest of which is that of the last sync
}

// since returns the moments since a file or folder was synced last.
func (c cut) since(id uint64) []moment {
	for i, m := range slices.Backward(c.moments) {
		if m.synced == id || m.synced == everything {
			return c.moments[i:]
		}
	}
	return c.moments
}

// write creates what the power failure has left of a folder in to.
func (c cut) write(t *testing.T, folder string, id uint64, to string, written map[uint64]string) {
	t.Helper()
	since := slices.DeleteFunc(slices.Clone(c.since(id)), func(m moment) bool {
		return m.files[id].folder != folder // another one had the name, or none
	})
	all := map[string]bool{}
	for _, m := range since {
		for name := range m.names[folder] {
			all[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		kept := c.entry(since, folder, name)
		if kept == 0 {
			continue
		}
		target := filepath.Join(to, name)
		file := c.file(kept)
		switch first := written[kept]; {
		case file.folder != "":
			test.Must(t, os.Mkdir(target, 0o755))
			c.write(t, file.folder, kept, target, written)
		case first != "":
			test.Must(t, os.Link(first, target))
		default:
			test.Must(t, errors.Join(os.WriteFile(target, []byte(file.data), filePerm), os.Chtimes(target, file.time, file.time)))
			written[kept] = target
		}
	}
}

// entry returns the file or folder that a name has, or 0.
func (c cut) entry(since []moment, folder, name string) uint64 {
	var states []uint64
	for i, m := range since {
		now := m.names[folder][name]
		if i > 0 && exchanged(since[i-1], m, folder, name) {
			states = append(states, 0) // only one half of it
		}
		states = append(states, now)
	}
	states = slices.Compact(states)
	return states[c.kept(len(states))]
}

// exchanged reports whether two names were exchanged in a step, one of which is name.
func exchanged(before, after moment, folder, name string) bool {
	old, now := before.names[folder][name], after.names[folder][name]
	if old == now || old == 0 || now == 0 {
		return false
	}
	for other, names := range after.names {
		for n, id := range names {
			if id == old && before.names[other][n] == now {
				return true
			}
		}
	}
	return false
}

// file returns the bytes that a file has. One that was never synced may be empty.
func (c cut) file(id uint64) version {
	var states []version
	for _, m := range c.since(id) {
		if one, ok := m.files[id]; ok {
			if len(states) == 0 && m.synced != id && m.synced != everything {
				states = append(states, version{time: one.time, folder: one.folder})
			}
			states = append(states, one)
		}
	}
	states = slices.Compact(states)
	return states[c.kept(len(states))]
}

// restored returns the disk in a new folder. Its files have other numbers, which their records
// contain.
func (c cut) restored(t *testing.T) *testDisk {
	t.Helper()
	to := newDisk(t)
	to.states = c.moments[len(c.moments)-1].states
	first, written := c.moments[0], map[uint64]string{}
	c.write(t, "/", first.id("/"), to.root, written)
	numbers := map[string]string{}
	for id, name := range written {
		stat, err := os.Stat(name)
		test.Must(t, err)
		numbers[fmt.Sprintf(`"%x-`, id)] = fmt.Sprintf(`"%x-`, inode(stat))
	}
	for _, name := range written {
		if !strings.HasSuffix(name, recordSuffix) {
			continue
		}
		data, err := os.ReadFile(name)
		test.Must(t, err)
		state, intents := parseRecord(data)
		for i := range intents {
			for _, tag := range []*string{&intents[i].ETag, &intents[i].Old} {
				if id, rest, ok := strings.Cut(*tag, "-"); ok && numbers[id+"-"] != "" {
					*tag = numbers[id+"-"] + rest
				}
			}
		}
		if intents != nil {
			test.Must(t, os.WriteFile(name, recordOf(state, intents...), filePerm))
		}
	}
	return to
}

// id returns the number of a folder.
func (m moment) id(folder string) uint64 {
	for id, one := range m.files {
		if one.folder == folder {
			return id
		}
	}
	return 0
}
