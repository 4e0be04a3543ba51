package local

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

var overwrite = storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}

// replaced returns a driver, and staged data that has replaced the object "key".
func replaced(t *testing.T) (*Driver, *staged) {
	t.Helper()
	d := New(Config{Root: t.TempDir(), Sync: new(false)}, slog.New(slog.DiscardHandler))
	must(t, os.WriteFile(filepath.Join(d.path, "key"), []byte("old"), filePerm))
	st, err := d.stage(t.Context())
	must(t, err)
	_, err = st.Write([]byte("mine"))
	must(t, err)
	_, err = st.Commit(t.Context(), "key", overwrite)
	must(t, err)
	return d, st
}

// TestRollbackMeetsOthers: an object that another process stores at any step of a rollback stays.
func TestRollbackMeetsOthers(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"recorded", "taken away", "put back", "undone", "void"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			d, st := replaced(t)
			elsewhere, met := unsynced(t, d.path), false
			d.step = func(step string) {
				if step == at {
					met = true
					must(t, put(t, elsewhere, "key", "theirs", storagedrivers.Overwrite))
				}
			}
			must(t, st.Rollback(t.Context()))
			must(t, st.Close())
			must(t, d.Close())
			must(t, elsewhere.Close())
			if got := files(t, d.path); !met || !maps.Equal(got, map[string]string{"key": "theirs"}) {
				t.Errorf("the folder has %v", got)
			}
		})
	}
}

// TestRollbackFails: after a failed rollback the old object is kept, also if everything is closed,
// and the next start restores it.
func TestRollbackFails(t *testing.T) {
	t.Parallel()
	for name, roll := range map[string]func(*testing.T, *Driver, *staged) (aside string, back func() error){
		"one": func(t *testing.T, _ *Driver, st *staged) (string, func() error) {
			return strings.TrimSuffix(st.backup, asideOld), func() error { return st.Rollback(t.Context()) }
		},
		"group": func(t *testing.T, d *Driver, st *staged) (string, func() error) {
			must(t, st.Rollback(t.Context()))
			g := d.Group().(*group)
			members := map[string]*staged{}
			for _, key := range []string{"key", "other"} {
				member, err := d.stage(t.Context())
				must(t, err)
				t.Cleanup(func() { member.Close() })
				must(t, g.Plan(t.Context(), member, key, overwrite))
				members[key] = member
			}
			must(t, g.Prepare(t.Context()))
			_, err := members["key"].Commit(t.Context(), "key", overwrite)
			must(t, err)
			return g.asideOf(g.stepOf(members["key"])), func() error {
				return errors.Join(members["key"].Rollback(t.Context()), g.Close())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, st := replaced(t)
			aside, back := roll(t, d, st)
			obstacle := filepath.Join(d.path, aside+asideNew)
			must(t, os.MkdirAll(filepath.Join(obstacle, "full"), dirPerm))
			if back() == nil {
				t.Error("rolled back")
			}
			must(t, st.Close())
			if d.Close() == nil {
				t.Error("closed")
			}
			must(t, os.RemoveAll(obstacle))
			recoverAll(t, d.path, func(*Driver) {})
			if got := files(t, d.path); !maps.Equal(got, map[string]string{"key": "old"}) {
				t.Errorf("the folder has %v", got)
			}
		})
	}
}

// TestRollbackWithoutRecord: a rollback that cannot write its record, such as on a full disk, still
// restores the old object.
func TestRollbackWithoutRecord(t *testing.T) {
	t.Parallel()
	d, st := replaced(t)
	next := strconv.FormatInt(d.scratch.next.Load()+1, 36)
	must(t, os.WriteFile(filepath.Join(d.path, d.scratch.name, next+recordSuffix), []byte(recordVoid), filePerm))
	must(t, st.Rollback(t.Context()))
	must(t, errors.Join(st.Close(), d.Close()))
	if got := files(t, d.path); !maps.Equal(got, map[string]string{"key": "old"}) {
		t.Errorf("the folder has %v", got)
	}
}

// TestRollbackAgain: a rollback that failed restores the old object when it is repeated.
func TestRollbackAgain(t *testing.T) {
	t.Parallel()
	d, st := replaced(t)
	obstacle := filepath.Join(d.path, strings.TrimSuffix(st.backup, asideOld)+asideNew)
	must(t, os.MkdirAll(filepath.Join(obstacle, "full"), dirPerm))
	if st.Rollback(t.Context()) == nil {
		t.Error("rolled back")
	}
	must(t, os.RemoveAll(obstacle))
	must(t, st.Rollback(t.Context()))
	if got, err := os.ReadFile(filepath.Join(d.path, "key")); string(got) != "old" {
		t.Errorf("the key has %q, %v", got, err)
	}
	must(t, errors.Join(st.Close(), d.Close()))
	if got := files(t, d.path); !maps.Equal(got, map[string]string{"key": "old"}) {
		t.Errorf("the folder has %v", got)
	}
}

// TestFailedReplacementLeavesNothing: a replacement that fails after it has kept the old object does
// not keep it any longer than the staged data.
func TestFailedReplacementLeavesNothing(t *testing.T) {
	t.Parallel()
	d, first := replaced(t)
	must(t, first.Close())
	st, err := d.stage(t.Context())
	must(t, err)
	key := filepath.Join(d.path, "key")
	d.step = func(step string) {
		if step == "kept the old object" {
			must(t, errors.Join(os.Remove(key), os.MkdirAll(filepath.Join(key, "full"), dirPerm)))
		}
	}
	if _, err := st.Commit(t.Context(), "key", overwrite); err == nil {
		t.Error("committed")
	}
	must(t, st.Close())
	left, err := os.ReadDir(filepath.Join(d.path, d.scratch.name))
	must(t, errors.Join(err, d.Close()))
	if len(left) > 0 {
		t.Errorf("left in the scratch folder: %v", left)
	}
}

// TestUndoOfEarlierVersion: an earlier version kept replaced and removed objects under another
// aside name.
func TestUndoOfEarlierVersion(t *testing.T) {
	t.Parallel()
	d, st := replaced(t)
	stat, err := st.file.Stat()
	must(t, err)
	folder := filepath.Join(d.path, scratchPrefix+"OLD")
	must(t, os.Mkdir(folder, dirPerm))
	for name, data := range map[string]string{
		"1": "old", "2": "removed",
		"3.group": string(recordOf(intent{replace, "key", etag(stat), "1"}, intent{remove, "gone", "", "2"})),
	} {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(data), filePerm))
	}
	must(t, errors.Join(st.Close(), d.Close()))
	recoverAll(t, d.path, func(*Driver) {})
	if got := files(t, d.path); !maps.Equal(got, map[string]string{"key": "old", "gone": "removed"}) {
		t.Errorf("the folder has %v", got)
	}
}
