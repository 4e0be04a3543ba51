package sftp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
)

// Bounds of the sweep after the first check. Further leftovers are removed when their folder is
// listed.
const (
	sweepTime    = time.Minute
	sweepFolders = 10_000
)

// sweepFirst sweeps all folders in the background.
func (d *driver) sweepFirst() {
	ctx, cancel := context.WithTimeout(d.pool.ctx, sweepTime)
	defer cancel()
	if _, err := d.sweep(ctx, storagedrivers.SweepOptions{}, sweepFolders); err != nil {
		d.log.Debug("looking for temporary files that were left behind", "error", err)
	}
}

// Sweep searches all folders for temporary files of aborted uploads. Only their age distinguishes
// them from those of other processes' uploads.
func (d *driver) Sweep(ctx context.Context, opts storagedrivers.SweepOptions) ([]storagedrivers.Leftover, error) {
	d.manualSweep.Store(true)
	return d.sweep(ctx, opts, math.MaxInt)
}

// sweep searches at most limit folders, the upper ones first.
func (d *driver) sweep(
	ctx context.Context, opts storagedrivers.SweepOptions, limit int,
) ([]storagedrivers.Leftover, error) {
	var found []storagedrivers.Leftover
	var failed []error
	folders := []string{""}
	for i := 0; i < len(folders) && i < limit; i++ {
		s, err := do(ctx, d.pool, func(c *conn) (*sweeper, error) {
			s := d.sweeper(ctx, c, opts)
			return s, s.folder(folders[i])
		})
		if s != nil {
			found, failed = append(found, s.found...), append(failed, s.failed...)
			folders = append(folders, s.below...)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("reading the folder %q: %w", folders[i], err))
		}
		if unavailable(err) || ctx.Err() != nil {
			break
		}
	}
	return found, errors.Join(failed...)
}

// sweeper removes leftover temporary files, or only finds them.
type sweeper struct {
	driver *driver
	ctx    context.Context //nolint:containedctx // a sweeper lives as long as one call
	c      *conn
	before time.Time // the last write to a leftover was before
	dry    bool

	found  []storagedrivers.Leftover
	failed []error  // of leftovers that could not be removed
	below  []string // folders
}

func (d *driver) sweeper(ctx context.Context, c *conn, opts storagedrivers.SweepOptions) *sweeper {
	return &sweeper{driver: d, ctx: ctx, c: c, before: opts.Before(d.now()), dry: opts.DryRun}
}

// folder sweeps one folder, without its subfolders.
func (s *sweeper) folder(prefix string) error {
	entries, err := s.driver.readFolder(s.ctx, s.c, prefix, s.hidden)
	for _, e := range entries {
		if strings.HasSuffix(e.key, "/") {
			s.below = append(s.below, e.key)
		}
	}
	return err
}

// hidden removes a name that is no valid key if it is a leftover. A file without a time (1970) is
// not a leftover.
func (s *sweeper) hidden(e entry) {
	name := path.Base(e.key)
	if !strings.HasPrefix(name, tempPrefix) || !strings.HasSuffix(name, tempSuffix) ||
		!e.stat.Mode().IsRegular() || e.stat.ModTime().Unix() == 0 || !e.stat.ModTime().Before(s.before) ||
		s.ctx.Err() != nil {
		return
	}
	if !s.dry {
		err := s.c.Remove(s.driver.path(e.key))
		if errors.Is(err, fs.ErrNotExist) {
			return // already removed
		}
		if err != nil {
			s.driver.log.Debug("a temporary file that was left behind could not be removed", "file", e.key, "error", err)
			s.failed = append(s.failed, fmt.Errorf("removing %q: %w", e.key, mapError(err)))
			return
		}
		s.driver.log.Info("removed a temporary file that was left behind", "file", e.key)
	}
	s.found = append(s.found, storagedrivers.Leftover{Name: e.key, Size: e.stat.Size(), ModTime: e.stat.ModTime()})
}
