package local

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// leave creates a file of an age below root, in a folder of the same age.
func leave(t *testing.T, root, name string, age time.Duration) {
	t.Helper()
	file, then := filepath.Join(root, name), time.Now().Add(-age)
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("half"), 0o600),
		os.Chtimes(file, then, then), os.Chtimes(filepath.Dir(file), then, then),
	); err != nil {
		t.Fatal(err)
	}
}

// swept sweeps and returns the names.
func swept(t *testing.T, s *storagedrivers.Storage, opts storagedrivers.SweepOptions) []string {
	t.Helper()
	left, err := s.Sweep(t.Context(), opts)
	test.Must(t, err)
	names := make([]string, len(left))
	for i, one := range left {
		names[i] = one.Name
	}
	return names
}

func TestSweepByAge(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	leave(t, root, scratchPrefix+"OLD/deep/1", 48*time.Hour)
	leave(t, root, scratchPrefix+"OLD/2", 49*time.Hour)
	leave(t, root, scratchPrefix+"YOUNG/1", 2*time.Hour)
	leave(t, root, scratchPrefix+"WRITTEN/1", 48*time.Hour)
	leave(t, root, scratchPrefix+"WRITTEN/2", 0)
	then := time.Now().Add(-48 * time.Hour) // a file may be written to long after it was made
	test.Must(t, os.Chtimes(filepath.Join(root, scratchPrefix+"WRITTEN"), then, then))
	leave(t, root, "folder/"+scratchPrefix+"DEEP/1", 48*time.Hour)
	leave(t, root, ".hidden/1", 48*time.Hour)

	s := open(t, root)
	for range 2 {
		left, err := s.Sweep(t.Context(), storagedrivers.SweepOptions{DryRun: true})
		if err != nil || len(left) != 1 || left[0].Name != scratchPrefix+"OLD" || left[0].Size != 8 ||
			time.Since(left[0].ModTime).Round(time.Hour) != 48*time.Hour { // the youngest in it
			t.Errorf("found %+v, error %v", left, err)
		}
	}
	test.Same(t, swept(t, s, storagedrivers.SweepOptions{}), []string{scratchPrefix + "OLD"}, "removed")
	_, err := os.Stat(filepath.Join(root, scratchPrefix+"OLD"))
	test.Is(t, err, fs.ErrNotExist, "the leftover is still there")
	got := swept(t, s, storagedrivers.SweepOptions{OlderThan: time.Hour})
	test.Same(t, got, []string{scratchPrefix + "YOUNG"}, "removed")
	for _, name := range []string{scratchPrefix + "WRITTEN/2", "folder/" + scratchPrefix + "DEEP/1", ".hidden/1"} {
		_, err := os.Stat(filepath.Join(root, name))
		test.Is(t, err, nil, name, "is gone")
	}
	// The first use of the root sweeps by itself, relying only on locks, but not after a call of
	// Sweep.
	for i, user := range []*storagedrivers.Storage{s, open(t, root)} {
		test.Must(t, user.Check(t.Context()))
		_, err := os.Stat(filepath.Join(root, scratchPrefix+"WRITTEN"))
		if gone := errors.Is(err, fs.ErrNotExist); gone != (i == 1) {
			t.Errorf("user %d: the leftover is gone: %t, error %v", i, gone, err)
		}
	}
}

// TestSweepMakesNoRoot: neither a sweep nor a listing creates the root; an upload does.
func TestSweepMakesNoRoot(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "above", "root")
	s := open(t, root)
	if got := swept(t, s, storagedrivers.SweepOptions{DryRun: true}); len(got) > 0 {
		t.Errorf("found %q", got)
	}
	page, err := s.List(t.Context(), storagedrivers.ListOptions{})
	if err != nil || len(page.Objects) > 0 {
		t.Errorf("listed %+v, error %v", page, err)
	}
	_, err = os.Stat(filepath.Dir(root))
	test.Is(t, err, fs.ErrNotExist, "a folder was made")
	test.Is(t, put(t, s, "a", "content", storagedrivers.CreateOnly), nil)
}

// TestSweepOfALivingProcess: the folder of a running process is not a leftover at any age.
func TestSweepOfALivingProcess(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	running := New(Config{Root: root}, slog.New(slog.DiscardHandler))
	running.named = true
	s := storagedrivers.New("test", running, storagedrivers.Options{})
	defer s.Close()
	staged, err := s.Stage(t.Context())
	test.Must(t, err)
	defer staged.Close()
	_, err = staged.Write([]byte("content"))
	test.Must(t, err)
	then := time.Now().Add(-72 * time.Hour)
	for _, name := range []string{running.current.scratch.name + "/1", running.current.scratch.name} {
		test.Must(t, os.Chtimes(filepath.Join(root, name), then, then))
	}
	for name, sweeper := range map[string]*storagedrivers.Storage{"itself": s, "another": open(t, root)} {
		if got := swept(t, sweeper, storagedrivers.SweepOptions{}); len(got) > 0 {
			t.Errorf("%s swept %q", name, got)
		}
	}
	_, err = s.Commit(t.Context(), storagedrivers.Change{Staged: staged, Key: "a"})
	test.Is(t, err, nil)
}

// TestSweepRecovers: a sweep recovers a commit and removes its folder, and the first use recovers
// it in any case, but a dry run does not.
func TestSweepRecovers(t *testing.T) {
	t.Parallel()
	for name, uses := range map[string]func(*testing.T, *Driver) (isRecovered, isRemoved bool){
		"dry run": func(t *testing.T, d *Driver) (bool, bool) {
			sweepDriver(t, d, storagedrivers.SweepOptions{DryRun: true, OlderThan: 1})
			return false, false
		},
		"young": func(t *testing.T, d *Driver) (bool, bool) {
			sweepDriver(t, d, storagedrivers.SweepOptions{OlderThan: time.Hour})
			return false, false
		},
		"removal": func(t *testing.T, d *Driver) (bool, bool) {
			sweepDriver(t, d, storagedrivers.SweepOptions{OlderThan: 1})
			return true, true
		},
		"first use after a dry run": func(t *testing.T, d *Driver) (bool, bool) {
			sweepDriver(t, d, storagedrivers.SweepOptions{DryRun: true, OlderThan: 1})
			test.Is(t, d.Check(t.Context()), nil)
			return true, false
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			complete := newCrashed(t, kinds["unnamed"], 0, true)
			c := newCrashed(t, kinds["unnamed"], 1+slices.Index(complete.steps, "applied"), true)
			d := New(Config{Root: c.root}, slog.New(slog.DiscardHandler))
			isRecovered, isRemoved := uses(t, d)
			test.Is(t, d.Close(), nil)
			got := files(t, c.root)
			left := 0
			for name := range got {
				if strings.HasPrefix(name, scratchPrefix) {
					delete(got, name)
					left++
				}
			}
			if maps.Equal(got, c.want) != isRecovered || (left == 0) != isRemoved {
				t.Errorf("%v with %d leftovers, want recovered: %t, removed: %t", got, left, isRecovered, isRemoved)
			}
		})
	}
}

func sweepDriver(t *testing.T, d *Driver, opts storagedrivers.SweepOptions) {
	t.Helper()
	_, err := d.Sweep(t.Context(), opts)
	test.Is(t, err, nil)
}
