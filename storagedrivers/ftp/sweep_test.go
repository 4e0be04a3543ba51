package ftp

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// onBoth runs a test with a server that has MLSD and with one that has only LIST.
func onBoth(t *testing.T, test func(t *testing.T, f *fake)) {
	t.Helper()
	for name, facts := range map[string]bool{"facts": true, "lists": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, &fake{facts: facts})
		})
	}
}

func TestListSweeps(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fake) {
		f.start(t)
		f.aged(t, "folder", true, 0)
		f.aged(t, "folder/object", false, 72*time.Hour)
		f.aged(t, "folder/.up-old.part", false, 72*time.Hour)
		f.aged(t, "folder/.up-new.part", false, 12*time.Hour)
		f.aged(t, "folder/.up-other", false, 72*time.Hour)
		page, err := open(t, f.config()).List(t.Context(), storagedrivers.ListOptions{})
		if err != nil || len(page.Objects) != 1 || page.Objects[0].Key != "folder/object" {
			t.Errorf("listed %+v, error %v", page.Objects, err)
		}
		f.has(t, "folder/.up-new.part", "folder/.up-other", "folder/object")
	})
}

func TestSweep(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fake) {
		f.start(t)
		stay := []string{
			".hidden/.up-old.part", ".old-object", "folder/.up-new.part", "folder/.up-other", "folder/object",
		}
		left := map[string]int64{".up-old.part": 1, "folder/deep/.up-old.part": 1}
		for _, folder := range []string{".hidden", "folder/deep", "folder/deep/.up-a-folder.part"} {
			f.aged(t, folder, true, 0)
		}
		for _, name := range stay {
			age := 72 * time.Hour
			if strings.HasSuffix(name, "new.part") {
				age = time.Hour
			}
			f.aged(t, name, false, age)
		}
		for name := range left {
			f.aged(t, name, false, 72*time.Hour)
		}
		before := test.Files(t, f.root)
		d := open(t, f.config())
		for _, dry := range []bool{true, true, false} {
			if dry {
				f.has(t, before...)
			}
			found, err := d.Sweep(t.Context(), storagedrivers.SweepOptions{OlderThan: 1, DryRun: dry})
			test.Is(t, err, nil)
			test.Equal(t, len(found), len(left), "dry run", dry, "swept", left)
			for _, one := range found {
				if size, ok := left[one.Name]; !ok || one.Size != size || time.Since(one.ModTime).Round(24*time.Hour) != 72*time.Hour {
					t.Errorf("dry run %t: swept %+v", dry, one)
				}
			}
		}
		f.has(t, append([]string{".hidden"}, slices.Insert(stay, 4, "folder/deep/.up-a-folder.part")...)...)
	})
}

// TestSweepGoesOn: one failure does not stop the sweep.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fake) {
		f.before = func(_ *session, command, argument string) string {
			if command == "DELE" && strings.Contains(argument, "kept") {
				return "550 Permission denied."
			}
			return ""
		}
		f.start(t)
		for _, folder := range []string{"kept", "z"} {
			f.aged(t, folder, true, 0)
			f.aged(t, folder+"/.up-old.part", false, 72*time.Hour)
		}
		found, err := open(t, f.config()).Sweep(t.Context(), storagedrivers.SweepOptions{})
		test.Is(t, err, fs.ErrPermission)
		if len(found) != 1 || found[0].Name != "z/.up-old.part" {
			t.Errorf("swept %+v", found)
		}
		f.has(t, "kept/.up-old.part")
	})
}

// TestSweepIsCutOff: the leftovers removed before an error are returned with it.
func TestSweepIsCutOff(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fake) {
		ctx, cancel := context.WithCancel(t.Context())
		f.before = func(s *session, command, argument string) string {
			if command == "DELE" && strings.HasSuffix(argument, "b.part") {
				cancel()
				_, _ = s.in.ReadByte() // up to the end of the connection
			}
			return ""
		}
		f.start(t)
		f.aged(t, ".up-a.part", false, 72*time.Hour)
		f.aged(t, ".up-b.part", false, 72*time.Hour)
		found, err := open(t, f.config()).Sweep(ctx, storagedrivers.SweepOptions{})
		test.Is(t, err, context.Canceled)
		if !slices.ContainsFunc(found, func(one storagedrivers.Leftover) bool { return one.Name == ".up-a.part" }) {
			t.Errorf("swept %+v", found)
		}
	})
}

// TestSweepOfAServerThatHides: a sweep of a server that hides names is unsupported.
func TestSweepOfAServerThatHides(t *testing.T) {
	t.Parallel()
	f := (&fake{plain: true}).start(t)
	f.aged(t, "folder", true, 0)
	f.aged(t, "folder/.up-old.part", false, 72*time.Hour)
	found, err := open(t, f.config()).Sweep(t.Context(), storagedrivers.SweepOptions{})
	test.Is(t, err, errors.ErrUnsupported)
	if len(found) > 0 {
		t.Errorf("swept %+v", found)
	}
}

// TestUntimedIsNoLeftover: a file without a time is not a leftover.
func TestUntimedIsNoLeftover(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, made := range map[bool]time.Time{false: {}, true: now.Add(-time.Hour)} {
		test.Equal(t, (entry{name: ".up-a.part", modTime: made}).isLeftover(now), want, "a file of", made, "is a leftover")
	}
}

// TestLevel: hidden folders are not listed, empty ones are, and no folder is entered.
func TestLevel(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fake) {
		var lists atomic.Int32
		f.before = func(_ *session, command, _ string) string {
			if command == "MLSD" || command == "LIST" {
				lists.Add(1)
			}
			return ""
		}
		f.start(t)
		for _, folder := range []string{"a", "a/.hidden", "a/empty", "a/end.", "a/in", "a/in/deep", "b"} {
			f.aged(t, folder, true, time.Minute)
		}
		f.aged(t, "a/object", false, time.Minute)
		d := open(t, f.config())
		for prefix, want := range map[string][]string{"": {"a/", "b/"}, "a/": {"a/empty/", "a/in/"}, "a/e": {"a/empty/"}} {
			lists.Store(0)
			page, err := d.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix, Shallow: true})
			test.Is(t, err, nil)
			test.Same(t, page.Folders, want, "folders of", prefix)
			test.Equal(t, lists.Load(), 1, "folders were listed for", prefix)
		}
	})
}
