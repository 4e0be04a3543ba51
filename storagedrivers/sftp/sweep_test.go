package sftp

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pkgsftp "github.com/pkg/sftp"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// later returns a further driver, with its clock two days ahead.
func (h *host) later(t *testing.T) storagedrivers.Driver {
	d := h.driver(t, h.root(t))
	d.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	return d
}

// old creates a temporary file that is two days old.
func (h *host) old(t *testing.T, name string) {
	t.Helper()
	file, then := filepath.Join(h.folder, name), time.Now().Add(-48*time.Hour)
	test.Is(t, errors.Join(
		os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("half"), 0o600), os.Chtimes(file, then, then),
	), nil)
}

// TestSweep: a file without a time is not a leftover, because it may belong to a running upload.
func TestSweep(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	left := []string{".up-a.part", "f/.up-b.part", "f/g/.up-c.part"}
	kept := []string{".up-untimed.part", ".up-x", "f/.hidden/.up-y.part", "f/object"}
	for _, name := range slices.Concat(left, kept) {
		h.old(t, name)
	}
	test.Must(t, os.Chtimes(filepath.Join(h.folder, kept[0]), time.Unix(0, 0), time.Unix(0, 0)))
	d := h.driver(t, ".")
	for _, dry := range []bool{true, true, false} {
		found, err := d.Sweep(t.Context(), storagedrivers.SweepOptions{DryRun: dry})
		test.Is(t, err, nil)
		var names []string
		for _, one := range found {
			names = append(names, one.Name)
			if one.Size != 4 || time.Since(one.ModTime).Round(time.Hour) != 48*time.Hour {
				t.Errorf("found %+v", one)
			}
		}
		test.Same(t, names, left, "dry run", dry, "swept")
	}
	test.Same(t, test.Files(t, h.folder), slices.Insert(kept, 2, "f/.hidden"), "the folder has")
}

// TestSweepGoesOn: one failure does not stop the sweep.
func TestSweepGoesOn(t *testing.T) {
	t.Parallel()
	d := newRequestHost(t, servers.RequestFiles{Before: func(method, path string) error {
		removed := method == "Remove" || method == "Rmdir" // the client tries both
		if removed && strings.HasPrefix(path, "/kept/") || method == "List" && path == "/closed" {
			return pkgsftp.ErrSSHFxPermissionDenied
		}
		return nil
	}}).driver(t, ".")
	d.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	test.Is(t, run(t.Context(), d.pool, func(c *conn) error {
		for _, folder := range []string{"./closed", "./kept", "./z"} {
			file, _, err := d.makeTemp(t.Context(), c, folder)
			if err != nil {
				return err
			}
			test.Is(t, file.Close(), nil)
		}
		return nil
	}), nil)
	left, err := d.Sweep(t.Context(), storagedrivers.SweepOptions{})
	test.Is(t, err, fs.ErrPermission)
	if len(left) != 1 || !strings.HasPrefix(left[0].Name, "z/"+tempPrefix) {
		t.Errorf("swept %+v", left)
	}
	for _, folder := range []string{"closed/", "kept/"} {
		test.Says(t, err, folder)
	}
}

// TestSweepEndsWithTheCaller: after the end of ctx no file is removed.
func TestSweepEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.old(t, ".up-a.part")
	d := h.driver(t, ".")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.Sweep(ctx, storagedrivers.SweepOptions{})
	test.Is(t, err, context.Canceled)
	test.Is(t, run(t.Context(), d.pool, func(c *conn) error {
		stat, err := c.Stat(d.path(".up-a.part")) // of a folder that was read before
		if err == nil {
			d.sweeper(ctx, c, storagedrivers.SweepOptions{}).hidden(entry{".up-a.part", stat})
		}
		return err
	}), nil)
	if got := test.Files(t, h.folder); len(got) != 1 {
		t.Errorf("the folder has %q", got)
	}
}
