package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// crash is a panic that simulates the end of a process.
type crash struct{ step string }

// crashAt makes the driver crash at the nth step of a commit. It returns the steps up to then.
func crashAt(d *Driver, n int) *[]string {
	steps := new([]string)
	d.step = func(name string) {
		if *steps = append(*steps, name); len(*steps) == n {
			panic(crash{name})
		}
	}
	return steps
}

// untilCrash runs f and reports whether the driver crashed in it.
func untilCrash(f func()) (crashed bool) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case crash:
			crashed = true
		default:
			panic(value)
		}
	}()
	f()
	return false
}

// die closes the handles and releases the lock of a driver, like the end of its process.
func (d *Driver) die() error {
	f := d.current
	if f == nil {
		return nil
	}
	var lock error
	if f.scratch != nil {
		lock = f.scratch.lock.Close()
	}
	return errors.Join(lock, f.dir.Close(), f.root.Close())
}

// files returns the contents of all files below a folder, by name.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, path)
		data, err := os.ReadFile(path)
		found[filepath.ToSlash(name)] = string(data)
		return err
	})
	test.Must(t, err)
	return found
}

// holds asserts that a folder has exactly these files, after crashes at some steps.
func holds(t *testing.T, root string, want map[string]string, steps ...any) {
	t.Helper()
	if got := files(t, root); !maps.Equal(got, want) {
		t.Errorf("after %q: the folder has %v, want %v", steps, got, want)
	}
}

// stageOn stages data. It is closed at the end of the test.
func stageOn(t *testing.T, d storagedrivers.Stager, data string) storagedrivers.Staged {
	t.Helper()
	st, err := d.Stage(context.Background())
	test.Must(t, err)
	t.Cleanup(func() { st.Close() }) // not before a crash has ended the process
	_, err = st.Write([]byte(data))
	test.Must(t, err)
	return st
}

// unstage closes the staged data of changes.
func unstage(t *testing.T, changes []storagedrivers.Change) {
	t.Helper()
	for _, c := range changes {
		test.Must(t, c.Staged.Close())
	}
}

var overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}

// commitOne commits staged data under key.
func commitOne(
	ctx context.Context, d storagedrivers.Stager, st storagedrivers.Staged, key string, opts storagedrivers.PutOptions,
) error {
	_, err := d.Commit(ctx, []storagedrivers.Change{{Staged: st, Key: key, Options: opts}})
	return err
}

// before are the files before a request, and after those after it. The request creates two objects,
// one of them under a second name because the first is taken, replaces one, "replaces" a missing
// one, and removes one.
var (
	before = map[string]string{"f/replaced": "old", "f/removed": "removed", "other": "other"}
	after  = map[string]string{
		"f/created": "1", "g/created-1": "2", "g/created": "late", "f/replaced": "3", "f/new": "4", "other": "other",
	}
)

// commitSeveral runs the request. When the first name of its second object has been seen to be
// free, another process takes it. With again, the request then commits under the second name.
func commitSeveral(t *testing.T, d *Driver, another func(key, content string), again bool) {
	t.Helper()
	ctx, step, taken := context.Background(), d.step, false
	defer func() { d.step = step }()
	d.step = func(name string) {
		if name == "recorded" && !taken {
			taken = true
			another("g/created", "late")
		}
		step(name)
	}
	changes := []storagedrivers.Change{
		{Key: "f/created"},
		{Key: "g/created"},
		{Key: "f/replaced", Options: overwrite},
		{Key: "f/new", Options: overwrite},
		{Key: "f/removed"},
	}
	for i := range changes[:4] {
		changes[i].Staged = stageOn(t, d, string(rune('1'+i)))
	}
	_, err := d.Commit(ctx, changes)
	if exists, ok := errors.AsType[*storagedrivers.ExistsError](err); !ok || !slices.Equal(exists.Taken, []int{1}) {
		t.Fatal(err)
	}
	if again {
		changes[1].Key = "g/created-1"
		_, err = d.Commit(ctx, changes)
		test.Must(t, err)
	}
	unstage(t, changes[:4])
}

// crashed is a folder with the files of before, in which a request has crashed at a step.
type crashed struct {
	root  string
	steps []string
	want  map[string]string // what a recovery must leave
	ended bool              // the request ended before the step
}

func unsynced(t *testing.T, root string) *storagedrivers.Storage {
	s := storagedrivers.New("test", New(Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	t.Cleanup(func() { s.Close() })
	return s
}

func newCrashed(t *testing.T, set func(*Driver), at int, again bool) crashed {
	t.Helper()
	root := t.TempDir()
	elsewhere := unsynced(t, root)
	for key, content := range before {
		test.Must(t, put(t, elsewhere, key, content, storagedrivers.CreateOnly))
	}
	d := New(Config{Root: root}, slog.New(slog.DiscardHandler))
	set(d)
	c := crashed{root: root, want: maps.Clone(before)}
	steps := crashAt(d, at)
	c.ended = !untilCrash(func() {
		commitSeveral(t, d, func(key, content string) {
			c.want[key] = content
			test.Must(t, put(t, elsewhere, key, content, storagedrivers.CreateOnly))
		}, again)
	})
	test.Must(t, d.die())
	c.steps = *steps
	if again && c.ended || slices.Contains(c.steps, "decided") {
		c.want = after
	}
	return c
}

// recoverAll opens the folder like the next process, on the same system.
func recoverAll(t *testing.T, root string, set func(*Driver)) {
	t.Helper()
	d := New(Config{Root: root, Sync: new(false)}, slog.New(slog.DiscardHandler))
	set(d)
	test.Is(t, d.Check(t.Context()), nil)
	test.Is(t, d.Close(), nil)
}

var kinds = map[string]func(*Driver){
	"unnamed": func(*Driver) {},
	"named":   func(d *Driver) { d.named, d.sync = true, false },
}

// TestCrashOfCommit: after a crash at any step of a request and a restart, either all of the
// request is there or nothing. From the decision on it is all.
func TestCrashOfCommit(t *testing.T) {
	t.Parallel()
	for name, set := range kinds {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, again %t", name, again), func(t *testing.T) {
				t.Parallel()
				for at, ended := 1, false; !ended; at++ {
					c := newCrashed(t, set, at, again)
					ended = c.ended
					recoverAll(t, c.root, set)
					holds(t, c.root, c.want, c.steps)
				}
			})
		}
	}
}

// TestCrashOfRecovery: after a crash at any step of a recovery, the next recovery completes it.
func TestCrashOfRecovery(t *testing.T) {
	t.Parallel()
	for name, set := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at, ended := 1, false; !ended; at++ {
				for again, recovered := 1, false; !recovered; again++ {
					c := newCrashed(t, set, at, true)
					ended = c.ended
					d := New(Config{Root: c.root, Sync: new(false)}, slog.New(slog.DiscardHandler))
					set(d)
					steps := crashAt(d, again)
					recovered = !untilCrash(func() { _, _ = d.open(t.Context()) })
					test.Must(t, d.die())
					recoverAll(t, c.root, set)
					holds(t, c.root, c.want, c.steps, *steps)
				}
			}
		})
	}
}

// TestCrashLeavesOthers: changes of another process to the keys of a crashed request, before its
// recovery, are kept.
func TestCrashLeavesOthers(t *testing.T) {
	t.Parallel()
	for name, set := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at, ended := 1, false; !ended; at++ {
				c := newCrashed(t, set, at, true)
				ended = c.ended
				// This process was running before and has not noticed the crash.
				running := New(Config{Root: c.root, Sync: new(false)}, slog.New(slog.DiscardHandler))
				f, err := running.beginSweep() // which recovers nothing
				test.Must(t, err)
				f.recovered = true
				f.release()
				s := storagedrivers.New("running", running, storagedrivers.Options{})
				want := map[string]string{"other": "other"}
				for _, key := range []string{"f/created", "g/created", "g/created-1", "f/replaced", "f/new", "f/removed"} {
					test.Must(t, put(t, s, key, "theirs", storagedrivers.Overwrite))
					want[key] = "theirs"
				}
				for _, key := range []string{"f/new", "f/created"} {
					test.Must(t, s.Delete(t.Context(), key))
					delete(want, key)
				}
				recoverAll(t, c.root, set)
				test.Is(t, s.Close(), nil)
				holds(t, c.root, want, c.steps)
			}
		})
	}
}

// TestRecoveryGivesBack: what a crashed request has moved aside, but is of another process, gets
// its name back: an object whose folder was removed since, and a folder that has the name by now.
func TestRecoveryGivesBack(t *testing.T) {
	t.Parallel()
	for aside, key := range map[string]string{"1.new": "a/b/c", "1.new/b/c": "a"} {
		root := t.TempDir()
		scratch := filepath.Join(root, scratchPrefix+"crashed")
		test.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(scratch, aside)), dirPerm))
		test.Must(t, os.WriteFile(filepath.Join(scratch, aside), []byte("theirs"), filePerm))
		data := recordOf(recordOpen, intent{Do: create, Key: key, ETag: `"ours"`, Aside: "1"})
		test.Must(t, os.WriteFile(filepath.Join(scratch, "2"+recordSuffix), data, filePerm))
		recoverAll(t, root, func(*Driver) {})
		holds(t, root, map[string]string{"a/b/c": "theirs"}, aside)
	}
}

// newCommit returns a driver with the objects of before, and changes that replace "f/replaced",
// create "created" and remove "f/removed".
func newCommit(t *testing.T) (*Driver, []storagedrivers.Change) {
	t.Helper()
	d := New(Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler))
	elsewhere := unsynced(t, d.path)
	for key, content := range before {
		test.Must(t, put(t, elsewhere, key, content, storagedrivers.CreateOnly))
	}
	changes := []storagedrivers.Change{{Key: "f/replaced", Options: overwrite}, {Key: "created"}, {Key: "f/removed"}}
	for i := range changes[:2] {
		changes[i].Staged = stageOn(t, d, "mine")
	}
	return d, changes
}

var committed = map[string]string{"f/replaced": "mine", "created": "mine", "other": "other"}

// TestCommitMeetsOthers: an object that another process stores at any step of a commit that is
// undone stays.
func TestCommitMeetsOthers(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"named", "taken away", "undone", "void"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			d, changes := newCommit(t)
			elsewhere, met := unsynced(t, d.path), false
			var broken atomic.Bool
			d.synced = func(*os.File) error {
				if broken.CompareAndSwap(true, false) {
					return fs.ErrPermission
				}
				return nil
			}
			d.step = func(step string) {
				if step == "named" {
					broken.Store(true)
				}
				if step == at && !met {
					met = true
					test.Must(t, put(t, elsewhere, "created", "theirs", storagedrivers.Overwrite))
				}
			}
			_, err := d.Commit(t.Context(), changes)
			failed, ok := errors.AsType[*storagedrivers.CommitError](err)
			if !ok || !errors.Is(err, fs.ErrPermission) || failed.Stored != nil || failed.Replaced != nil {
				t.Errorf("got %v", err)
			}
			unstage(t, changes[:2])
			test.Must(t, errors.Join(d.Close(), elsewhere.Close()))
			want := maps.Clone(before)
			want["created"] = "theirs"
			if got := files(t, d.path); !met || !maps.Equal(got, want) {
				t.Errorf("the folder has %v, want %v", got, want)
			}
		})
	}
}

// TestCommitMeetsFolder: between two steps of a commit, another process removes the object that is
// to be replaced, with its folder, or makes it a folder. Alone, the new object is stored, unless
// the folder holds objects; after others, the removal counts.
func TestCommitMeetsFolder(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		step, theirs string // the object that the other process stores; of a folder it only makes it
		n            int    // of changes
		err          error
		want         map[string]string
	}{
		"no folder":    {"sealed", "", 1, nil, map[string]string{"f/replaced": "mine"}},
		"empty folder": {"sealed", "f/replaced/x/", 1, nil, map[string]string{"f/replaced": "mine"}},
		"folder":       {"sealed", "f/replaced/x", 1, storagedrivers.ErrInvalidKey, map[string]string{"f/replaced/x": "theirs"}},
		"folder, of several": {
			"named aside", "f/replaced/x", 2, nil, map[string]string{"created": "mine", "f/replaced/x": "theirs"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, changes := newCommit(t)
			d.step = func(step string) {
				if step == tt.step {
					d.step = nil
					test.Must(t, os.RemoveAll(filepath.Join(d.path, "f")))
					theirs := filepath.Join(d.path, tt.theirs)
					test.Must(t, os.MkdirAll(filepath.Dir(theirs), dirPerm))
					if tt.theirs != "" && !strings.HasSuffix(tt.theirs, "/") {
						test.Must(t, os.WriteFile(theirs, []byte("theirs"), filePerm))
					}
				}
			}
			_, err := d.Commit(t.Context(), changes[:tt.n])
			test.Is(t, err, tt.err)
			unstage(t, changes[:2])
			test.Must(t, d.Close())
			tt.want["other"] = "other"
			holds(t, d.path, tt.want, tt.step)
		})
	}
}

// TestCommitWithoutLease: a commit that fails after its lease is lost leaves its new names, also at
// the next start, because others may have taken them for their own. It replaces and removes
// nothing.
func TestCommitWithoutLease(t *testing.T) {
	t.Parallel()
	for _, changed := range []int{1, 3} {
		t.Run(strconv.Itoa(changed), func(t *testing.T) {
			t.Parallel()
			d, changes := newCommit(t)
			var broken atomic.Bool
			d.synced = func(*os.File) error {
				if broken.CompareAndSwap(true, false) {
					return fs.ErrPermission
				}
				return nil
			}
			d.step = func(step string) { broken.Store(step == "named") }
			ctx := storagedrivers.WithLease(t.Context(), func() bool { return true })
			some := changes
			if changed == 1 {
				some = changes[1:2]
			}
			_, err := d.Commit(ctx, some)
			failed, ok := errors.AsType[*storagedrivers.CommitError](err)
			if !ok || !errors.Is(err, fs.ErrPermission) || len(failed.Stored) != changed {
				t.Errorf("got %v", err)
			}
			unstage(t, changes[:2])
			test.Must(t, d.die())
			recoverAll(t, d.path, func(*Driver) {})
			want := maps.Clone(before)
			want["created"] = "mine"
			holds(t, d.path, want)
		})
	}
}

// TestCommitCompletedLater: a decided commit that fails says so, and is completed when the driver
// is closed or at the next start. An object that another process has stored since stays.
func TestCommitCompletedLater(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Driver) error{"close": (*Driver).Close, "restart": (*Driver).die} {
		for _, others := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, others %t", name, others), func(t *testing.T) {
				t.Parallel()
				d, changes := newCommit(t)
				folder, away := filepath.Join(d.path, "f"), filepath.Join(d.path, "away")
				d.step = func(step string) {
					if step == "decided" {
						test.Must(t, os.Rename(folder, away))
					}
				}
				_, err := d.Commit(t.Context(), changes)
				failed, ok := errors.AsType[*storagedrivers.CommitError](err)
				if !ok || !slices.Equal(failed.Stored, []int{0, 1, 2}) {
					t.Errorf("got %v", err)
				}
				unstage(t, changes[:2])
				test.Must(t, os.Rename(away, folder))
				want := committed
				if others {
					want = maps.Clone(committed)
					for _, key := range []string{"f/replaced", "f/removed"} {
						test.Must(t, put(t, unsynced(t, d.path), key, "theirs", storagedrivers.Overwrite))
						want[key] = "theirs"
					}
				}
				test.Must(t, end(d))
				recoverAll(t, d.path, func(*Driver) {})
				holds(t, d.path, want)
			})
		}
	}
}

// TestUndoingFails: a commit that cannot be undone says so, and the next start undoes it.
func TestUndoingFails(t *testing.T) {
	t.Parallel()
	d, changes := newCommit(t)
	broken := false
	d.synced = func(*os.File) error {
		if broken {
			return fs.ErrPermission
		}
		return nil
	}
	d.step = func(step string) { broken = broken || step == "named" }
	_, err := d.Commit(t.Context(), changes)
	if failed, ok := errors.AsType[*storagedrivers.CommitError](err); !ok || len(failed.Stored) == 0 || failed.Undo == nil {
		t.Errorf("got %v", err)
	}
	unstage(t, changes[:2])
	test.Must(t, d.die())
	recoverAll(t, d.path, func(*Driver) {})
	holds(t, d.path, before)
}

// TestNameNotDurable: a new object whose name cannot be made durable is removed again.
func TestNameNotDurable(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := New(Config{Root: root}, slog.New(slog.DiscardHandler))
	broken := false
	d.step = func(step string) { broken = step == "named" }
	d.synced = func(*os.File) error {
		if broken {
			broken = false // undoing the name can be made durable
			return fs.ErrPermission
		}
		return nil
	}
	_, err := d.Put(t.Context(), "a/b", strings.NewReader("text"), storagedrivers.PutOptions{})
	failed, ok := errors.AsType[*storagedrivers.CommitError](err)
	if !ok || !errors.Is(err, fs.ErrPermission) || len(failed.Stored)+len(failed.Replaced) > 0 {
		t.Errorf("got %v", err)
	}
	test.Must(t, d.Close())
	if got := files(t, root); len(got) > 0 {
		t.Errorf("the folder has %v", got)
	}
}

// TestFailedReplacementLeavesNothing: a replacement that fails leaves nothing in the scratch folder
// longer than the staged data.
func TestFailedReplacementLeavesNothing(t *testing.T) {
	t.Parallel()
	d, changes := newCommit(t)
	key := filepath.Join(d.path, "f/replaced")
	d.synced = func(*os.File) error { // after it was seen to be a file
		return errors.Join(os.Remove(key), os.MkdirAll(filepath.Join(key, "full"), dirPerm))
	}
	_, err := d.Commit(t.Context(), changes[:1])
	test.Fails(t, err, "committed")
	test.Must(t, changes[0].Staged.Close())
	left, err := os.ReadDir(filepath.Join(d.path, d.current.scratch.name))
	test.Must(t, errors.Join(err, d.Close()))
	if len(left) > 0 {
		t.Errorf("left in the scratch folder: %v", left)
	}
}

var intents = []intent{
	{create, "f/a b", `"1-2-3"`, "", "a1"}, {replace, "ě", `"1"`, `"0"`, "b"}, {remove, "c.webp", `"3"`, "", "zz"},
}

func recordOf(state string, intents ...intent) []byte {
	data := []byte(state)
	for _, one := range intents {
		data = append(data, one.line()...)
	}
	return data
}

func TestRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	test.Must(t, err)
	defer root.Close()
	r, err := newRecord(root, "1.group", intents)
	test.Must(t, err)
	for _, state := range []string{recordOpen, recordDecided, recordVoid} {
		test.Must(t, r.set(state))
		data, err := os.ReadFile(filepath.Join(dir, "1.group"))
		test.Must(t, err)
		want := intents
		if state == recordVoid {
			want = nil
		}
		gotState, got := parseRecord(data)
		if gotState != state || !slices.Equal(got, want) || !bytes.Equal(data, recordOf(state, intents...)) {
			t.Errorf("%q is %q, %v", data, gotState, got)
		}
	}
	test.Must(t, r.close())
	data := recordOf(recordOpen, intents...)
	for n := range data { // of a record that is not whole nothing was done yet
		if _, got := parseRecord(data[:n]); !slices.Equal(got, intents[:len(got)]) || len(got) == len(intents) {
			t.Errorf("%d bytes are %v", n, got)
		}
		bent := bytes.Clone(data)
		bent[n] ^= 1
		if _, got := parseRecord(bent); !slices.Equal(got, intents[:len(got)]) || len(got) == len(intents) {
			t.Errorf("with byte %d changed it is %v", n, got)
		}
	}
}

func TestRecordRefusesOddIntents(t *testing.T) {
	t.Parallel()
	for _, odd := range []intent{
		{},
		{"other", "a", `"1"`, "", "a"},
		{create, "../a", `"1"`, "", "a"},
		{create, ".media-tmp-A/1", `"1"`, "", "a"},
		{create, "a", "", "", "a"},
		{create, "a", `"1"`, `"0"`, "a"},
		{replace, "a", `"1"`, "", "a"},
		{create, "a", `"1"`, "", ""},
		{create, "a", `"1"`, "", "../a"},
		{create, "a", `"1"`, "", "a/b"},
		{create, "a", `"1"`, "", "a.group"},
	} {
		if _, got := parseRecord(recordOf(recordOpen, odd, intents[0])); len(got) > 0 {
			t.Errorf("%+v is read as %+v", odd, got)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(recordOf(recordOpen, intents...))
	f.Add(append([]byte(recordVoid), recordOf(recordDecided, intents...)...))
	f.Add([]byte(recordOpen + "00000000 {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		state, parsed := parseRecord(data)
		for _, one := range parsed {
			if !one.valid() {
				t.Errorf("%+v", one)
			}
		}
		if _, again := parseRecord(recordOf(state, parsed...)); !slices.Equal(again, parsed) {
			t.Errorf("%+v, then %+v", parsed, again)
		}
	})
}
