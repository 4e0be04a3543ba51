package ftp

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/faults"
)

// TestSweepRestores: an object that a dead process has moved aside gets its name back, or is removed
// if there is another object of the name. One that is just being replaced is left alone.
func TestSweepRestores(t *testing.T) {
	t.Parallel()
	const aside = "folder/.aside-key"
	lock := strings.TrimPrefix(lockPath("/folder/key"), "/")
	for name, tt := range map[string]struct {
		present bool
		locked  time.Duration // age of the lock; 0 for none
		dry     bool
		found   bool
		left    []string
	}{
		"alone":                   {found: true, left: []string{"folder/key"}},
		"replaced since":          {present: true, found: true, left: []string{"folder/key"}},
		"locked":                  {locked: time.Minute, left: []string{aside, lock}},
		"locked by a dead one":    {locked: staleAfter + 2*time.Minute, found: true, left: []string{"folder/key"}},
		"dry run":                 {dry: true, found: true, left: []string{aside}},
		"replaced since, dry run": {present: true, dry: true, found: true, left: []string{aside, "folder/key"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, f *fake) {
				f.keep = true
				f.start(t)
				f.aged(t, "folder", true, 0)
				f.aged(t, aside, false, time.Hour)
				if tt.present {
					f.replace(t, "folder/key", "new")
				}
				if tt.locked > 0 {
					f.aged(t, lock, true, tt.locked)
				}
				found, err := open(t, f.config()).Sweep(t.Context(), storagedrivers.SweepOptions{DryRun: tt.dry})
				if err != nil || (len(found) == 1 && found[0].Name == aside && found[0].Size == 1) != tt.found {
					t.Errorf("swept %+v, error %v", found, err)
				}
				f.has(t, tt.left...)
			})
		})
	}
}

// TestRestoredAfterADeath: a process dies between the two renames of a replacement. The next one
// restores the old object.
func TestRestoredAfterADeath(t *testing.T) {
	t.Parallel()
	f := &fake{facts: true, keep: true}
	var proxy atomic.Pointer[faults.Proxy] // nil after the death
	restored := make(chan struct{})
	f.before = func(_ *session, command, argument string) string {
		if command != "RNTO" || argument != "/key" {
			return ""
		}
		if _, err := os.Stat(filepath.Join(f.root, ".aside-key")); err != nil {
			return "" // before it is moved aside
		}
		if dying := proxy.Swap(nil); dying != nil {
			dying.SetRefusing(true)
			return "421 Bye."
		}
		close(restored)
		return ""
	}
	f.start(t)
	proxy.Store(faults.New(t, f.address))
	f.replace(t, "key", "old")
	config := f.config()
	config.Address = proxy.Load().Address
	if _, err := open(t, config).Put(t.Context(), "key", strings.NewReader("new"), overwrite); err == nil {
		t.Fatal("the process has not died")
	}
	d := open(t, f.config())
	if _, err := d.Stat(t.Context(), "key"); err == nil {
		t.Fatal("the object has its name")
	}
	then := time.Now().Add(-staleAfter - time.Minute)
	must(t, os.Chtimes(filepath.Join(f.root, lockPath("key")), then, then))
	must(t, d.Check(t.Context()))
	select {
	case <-restored:
	case <-time.After(time.Minute):
		t.Fatal("the object is not restored")
	}
	if err := d.Close(); err != nil { // waits for the sweep
		t.Error(err)
	}
	holds(t, open(t, f.config()), "key", "old")
}

// TestAsideNames: an object with a name that leaves no room for the prefix can still be moved aside.
func TestAsideNames(t *testing.T) {
	t.Parallel()
	for size, named := range map[int]bool{1: true, 248: true, 249: false, 255: false} {
		key := strings.Repeat("k", size)
		got := asideName("/folder/" + key)
		if len(path.Base(got)) > 255 || path.Dir(got) != "/folder" {
			t.Errorf("%d bytes: %s", size, got)
		}
		if found := (suspect{strings.TrimPrefix(got, "/"), entry{}}).aside() == "folder/"+key; found != named {
			t.Errorf("%d bytes: found again %t, want %t", size, found, named)
		}
	}
}

// TestFirstSweepWaits: while the first sweep searches the folders, others get the only connection.
func TestFirstSweepWaits(t *testing.T) {
	t.Parallel()
	f := &fake{facts: true, keep: true}
	var listed atomic.Int32
	listing, goOn := make(chan struct{}), make(chan struct{})
	f.before = func(_ *session, command, argument string) string {
		if command == "MLSD" && strings.Contains(argument, "folder") && listed.Add(1) == 1 {
			close(listing)
			<-goOn
		}
		return ""
	}
	f.start(t)
	const folders = 20
	for i := range folders {
		f.aged(t, fmt.Sprintf("folder%d", i), true, 0)
	}
	f.replace(t, "key", "x")
	config := f.config()
	config.Connections = 1
	d := open(t, config)
	must(t, d.Check(t.Context()))
	<-listing
	looked := make(chan error, 1)
	go func() {
		_, err := d.Stat(t.Context(), "key")
		looked <- err
	}()
	time.Sleep(100 * time.Millisecond) // it waits
	close(goOn)
	if err := <-looked; err != nil || listed.Load() == folders {
		t.Errorf("after %d of %d folders: %v", listed.Load(), folders, err)
	}
}

// TestNothingMayBeRenamed: an object of the same size that could not be replaced is not mistaken
// for the new one.
func TestNothingMayBeRenamed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fake) {
		f.refuse(func(command, _ string) bool { return command == "RNFR" || command == "DELE" }, refusal)
		f.start(t)
		d := open(t, f.config())
		f.replace(t, "object", "old")
		if _, err := d.Put(t.Context(), "object", strings.NewReader("new"), overwrite); err == nil {
			t.Error("nothing was stored, and no error says so")
		}
		holds(t, d, "object", "old")
	})
}

// TestListedWhilePutAside: a listing does not treat an old object that was moved aside as a
// leftover.
func TestListedWhilePutAside(t *testing.T) {
	t.Parallel()
	var renames atomic.Int32
	var lister *driver
	f := &fake{facts: true, keep: true}
	f.before = func(_ *session, command, _ string) string {
		// The first RNTO is refused, the second moves the old object aside.
		if command != "RNTO" {
			return ""
		}
		if n := renames.Add(1); n < 3 || n >= 3+replaceAttempts {
			return ""
		}
		_, err := lister.List(t.Context(), storagedrivers.ListOptions{})
		is(t, err, nil)
		return refusal
	}
	f.start(t)
	d := open(t, f.config())
	lister = open(t, f.config())
	f.replace(t, "key", "old")
	when := time.Now().Add(-3 * 24 * time.Hour)
	must(t, os.Chtimes(filepath.Join(f.root, "key"), when, when))
	if err := put(t, d, "key", "content", overwrite); err == nil {
		t.Error("the server has refused the rename, and no error says so")
	}
	holds(t, d, "key", "old")
	f.has(t, "key")
}
