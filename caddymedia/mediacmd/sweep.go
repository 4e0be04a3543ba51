package mediacmd

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/core/resumable"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

func sweepCommand() *cobra.Command {
	var w sweeping
	cmd := inSession(&cobra.Command{
		Use:   "sweep [<storage>...]",
		Short: "Find and remove variants without images, outdated renditions and leftovers of uploads",
		Long: `Find leftovers in all storages, or in the named ones: WebP variants without
images, renditions of earlier settings or images, resumable uploads that have
expired, and leftovers of aborted uploads. The command only shows them; --delete
removes them.

Objects younger than --older-than are ignored, because an upload may be in
progress. If only the age identifies a leftover, it must be at least a day old.

With --json there is one line for each, and a last one with the totals.`,
	}, w.run)
	cmd.Flags().BoolVar(&w.remove, "delete", false, "Remove the leftovers")
	cmd.Flags().DurationVar(&w.olderThan, "older-than", 24*time.Hour, "Minimum age")
	return cmd
}

// sweeping is a run of the command.
type sweeping struct {
	*session
	remove    bool
	olderThan time.Duration
	before    time.Time

	rows   rows
	totals sweepTotals
}

// sweepTotals is the last line of the JSON.
type sweepTotals struct {
	DryRun     bool  `json:"dry_run"`
	Variants   int   `json:"variants"`
	Renditions int   `json:"renditions"`
	Uploads    int   `json:"uploads"`
	Leftovers  int   `json:"leftovers"`
	Bytes      int64 `json:"bytes"` // as far as they are known
	Removed    int   `json:"removed"`
	Failed     int   `json:"failed"` // storages that could not be listed included
}

// sweepResult is a line of the JSON.
type sweepResult struct {
	Storage string `json:"storage"`
	// Kind is "variant", "rendition", "upload" or "leftover"; empty for the storage itself.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Size in bytes; -1 if the storage does not know it.
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified,omitzero"`
	Removed  bool      `json:"removed"`
	failure
}

// run runs `caddy media sweep`.
func (w *sweeping) run(ctx context.Context, s *session, names []string) error {
	w.session = s
	if w.olderThan < 0 {
		return errors.New("--older-than must not be negative")
	}
	w.before = time.Now().Add(-w.olderThan) //nolint:forbidigo // a command runs once
	w.totals.DryRun = !w.remove
	storages, err := s.storages(names)
	if err != nil {
		return err
	}
	for _, storage := range storages {
		if err := errors.Join(w.storage(ctx, storage), ctx.Err()); err != nil {
			return err
		}
	}
	return w.report()
}

// storage sweeps one storage. It prints failures and returns an error only if printing fails.
func (w *sweeping) storage(ctx context.Context, s *storagedrivers.Storage) error {
	// Leftovers come first. From its first Sweep on, a driver starts no sweep by itself, so that
	// listing the variants afterwards removes nothing.
	if err := errors.Join(w.leftovers(ctx, s), w.uploads(ctx, s)); err != nil {
		return err
	}
	for _, alias := range w.App.Service().Aliases() {
		if alias.Kind != item.Image || alias.Storage != s {
			continue
		}
		if err := errors.Join(w.variants(ctx, alias), w.renditions(ctx, alias)); err != nil {
			return err
		}
	}
	return w.rows.flush(w.output)
}

// variants sweeps the variants of an alias without images.
func (w *sweeping) variants(ctx context.Context, alias *item.Alias) error {
	return w.objects(ctx, alias, "variant", derived.Orphans(ctx, alias, w.before), func(orphan storagedrivers.Info) (bool, error) {
		return w.App.Service().Uploader().Derived.RemoveOrphan(ctx, alias, orphan)
	})
}

// renditions sweeps the renditions of an alias that no address uses.
func (w *sweeping) renditions(ctx context.Context, alias *item.Alias) error {
	return w.objects(ctx, alias, "rendition", derived.OutdatedRenditions(ctx, alias, w.before), func(outdated storagedrivers.Info) (bool, error) {
		return true, item.Remove(ctx, alias.Storage, outdated.Key)
	})
}

// objects sweeps objects of an alias. remove reports whether it removed the object, which may be
// needed again.
func (w *sweeping) objects(
	ctx context.Context, alias *item.Alias, kind string,
	unneeded iter.Seq2[storagedrivers.Info, error], remove func(storagedrivers.Info) (bool, error),
) error {
	for object, err := range unneeded {
		found := sweepResult{
			Storage: alias.Storage.Name(), Kind: kind, Name: object.Key, Size: object.Size, Modified: object.ModTime,
		}
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			found = sweepResult{Storage: alias.Storage.Name()}
		} else if w.remove {
			removed, failed := remove(object)
			if failed == nil && !removed {
				continue // it is needed by now
			}
			found.Removed, err = failed == nil, failed
		}
		if err := w.add(found, err); err != nil {
			return err
		}
	}
	return nil
}

// leftovers sweeps the leftovers of uploads.
func (w *sweeping) leftovers(ctx context.Context, s *storagedrivers.Storage) error {
	const least = time.Nanosecond // 0 stands for the default
	found, err := s.Sweep(ctx, storagedrivers.SweepOptions{OlderThan: max(w.olderThan, least), DryRun: !w.remove})
	for _, one := range found {
		result := sweepResult{
			Storage: s.Name(), Kind: "leftover", Name: one.Name, Size: one.Size, Modified: one.ModTime, Removed: w.remove,
		}
		if err := w.add(result, nil); err != nil {
			return err
		}
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, errors.ErrUnsupported) {
		return w.add(sweepResult{Storage: s.Name()}, err)
	}
	return nil
}

// uploads sweeps the resumable uploads that have expired, and their data without a record. A
// service does that too, as long as it runs.
func (w *sweeping) uploads(ctx context.Context, s *storagedrivers.Storage) error {
	var printErr error
	err := w.App.Service().SweepUploads(ctx, s, resumable.SweepOptions{
		DryRun: !w.remove, OlderThan: w.olderThan,
		Found: func(kind resumable.Leftover, info storagedrivers.Info, err error) {
			found := sweepResult{
				Storage: s.Name(), Kind: "upload", Name: info.Key, Size: info.Size, Modified: info.ModTime, Removed: w.remove && err == nil,
			}
			if kind == resumable.DataWithoutRecord {
				found.Kind = "leftover"
			}
			printErr = errors.Join(printErr, w.add(found, err))
		},
	})
	if err != nil && ctx.Err() == nil {
		printErr = errors.Join(printErr, w.add(sweepResult{Storage: s.Name()}, err))
	}
	return printErr
}

// add prints and counts a result, or a failure if err is not nil. It returns an error only if
// printing fails.
func (w *sweeping) add(found sweepResult, err error) error {
	w.count(found, err)
	if err != nil {
		found.failure = w.fail(strings.TrimSpace(found.Storage+" "+found.Name), err)
	} else if err := w.row(found); err != nil {
		return err
	}
	return w.document(found)
}

func (w *sweeping) count(found sweepResult, err error) {
	switch found.Kind {
	case "variant":
		w.totals.Variants++
	case "rendition":
		w.totals.Renditions++
	case "upload":
		w.totals.Uploads++
	case "leftover":
		w.totals.Leftovers++
	}
	if found.Kind != "" {
		w.totals.Bytes += max(0, found.Size)
	}
	if found.Removed {
		w.totals.Removed++
	}
	if err != nil {
		w.totals.Failed++
	}
}

func (w *sweeping) row(found sweepResult) error {
	size := "?"
	if found.Size >= 0 {
		size = bytesText(found.Size)
	}
	row := []string{found.Storage, found.Kind, found.Name, size, found.Modified.Local().Format(time.DateTime)}
	if found.Removed {
		row = append(row, "removed")
	}
	return w.rows.add(w.output, row...)
}

// report prints the totals. It returns errReported if anything failed.
func (w *sweeping) report() error {
	t := w.totals
	w.sayf("%d variants without images, %d outdated renditions, %d expired uploads and %d leftovers of uploads, %s",
		t.Variants, t.Renditions, t.Uploads, t.Leftovers, bytesText(t.Bytes))
	switch {
	case w.remove:
		w.sayf("%d removed, %d failed", t.Removed, t.Failed)
	case t.Variants+t.Renditions+t.Uploads+t.Leftovers > 0:
		w.sayf("nothing was removed; use --delete to remove them")
	}
	if err := w.document(t); err != nil {
		return err
	}
	if t.Failed > 0 {
		return errReported
	}
	return nil
}
