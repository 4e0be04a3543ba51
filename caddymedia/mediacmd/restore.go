package mediacmd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

func restoreCommand() *cobra.Command {
	var r restoring
	cmd := inSession(&cobra.Command{
		Use:   "restore [<alias>]",
		Short: "Bring items back from the trash",
		Long: `Bring items of an alias, img/content for example, back from its trash. The flags
select them. Of several versions of an item it is the last removed one, unless
--id names another; caddy media trash shows the IDs.

The items pass the checks of an upload, and their variants and eager renditions
are made again. What is restored stays in the trash too, until its time. An item
whose name is taken by now fails, unless --rename or --replace allows it.
--as-it-was checks nothing: every item comes back with the name and the bytes
that it had, whatever the present options of the alias.

--at brings everything back to what it was at a time of the last days: what was
removed since is restored, what came later goes to the trash, and what was
replaced is exchanged. It needs no other flag; without the name of an alias it is
for all, and a folder may follow the name. Undo it by --at with the time that it
prints. --names compares with a list of filenames, that of a database for example.

The command works beside a running Caddy. After an interruption, run it again.

With --json there is one line for each item, and a last one with the totals.`,
		Example: `  caddy media restore img/content --folder summer --dry-run
  caddy media restore img/content --removed-within 1h
  caddy media restore --at "2026-11-29 14:30:00" --dry-run`,
		Args: needs(0, 1, "<alias>"),
	}, r.run)
	r.trashSelection.addFlags(cmd)
	cmd.Flags().BoolVar(&r.rename, "rename", false, "Give an item whose name is taken another one, with append_time")
	cmd.Flags().BoolVar(&r.replace, "replace", false, "Replace the item that has the name, with overwrite; that one goes to the trash")
	cmd.Flags().BoolVar(&r.totals.DryRun, "dry-run", false, "Only show what would be restored")
	cmd.Flags().BoolVar(&r.asItWas, "as-it-was", false, "Bring items back that the present options of the alias refuse")
	cmd.MarkFlagsMutuallyExclusive("rename", "replace")
	r.momentSelection.addFlags(cmd)
	cmd.MarkFlagsOneRequired("id", "folder", "filename", "search", "removed-within", "at")
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case r.at != "":
			return errors.Join(r.trashSelection.check(cmd), r.momentSelection.check(args))
		case r.names != "":
			return errors.New("--names needs --at")
		case len(args) == 0:
			return errors.New("restore needs <alias>; see caddy media restore --help")
		}
		return r.trashSelection.check(cmd)
	}
	return cmd
}

// restoring is a run of the command.
type restoring struct {
	*session
	trashSelection
	momentSelection
	rename, replace, asItWas bool

	alias  *item.Alias
	permit *op.Permit
	done   *bar

	mu     sync.Mutex
	totals restoreTotals
}

// restoreTotals is the last line of the JSON.
type restoreTotals struct {
	Alias  string `json:"alias"`
	DryRun bool   `json:"dry_run"`
	// Restored and Bytes are what would be restored in a dry run.
	Restored int   `json:"restored"`
	Bytes    int64 `json:"bytes"`
	Failed   int   `json:"failed"`
	// Complete reports that no item was left out; Stopped is the reason if some were.
	Complete bool   `json:"complete"`
	Stopped  string `json:"stopped,omitempty"`
}

// restoreResult is a line of the JSON.
type restoreResult struct {
	ID string `json:"id"`
	// Filename is that of the restored item, which may have another one than before.
	Filename string    `json:"filename"`
	Size     int64     `json:"size"`
	Removed  time.Time `json:"removed,omitzero"`
	Restored bool      `json:"restored"`
	// Taken means that another item has the name. Only a dry run says so.
	Taken bool `json:"taken,omitempty"`
	// Trash is the ID of the item that was replaced.
	Trash string `json:"trash,omitempty"`
	failure
}

// restorers is the number of items that are restored concurrently, if the encoders accept them.
const restorers = 8

// run runs `caddy media restore`.
func (r *restoring) run(ctx context.Context, s *session, args []string) error {
	if r.at != "" {
		return r.runAt(ctx, s, args)
	}
	alias, err := s.trashAlias(args[0])
	switch {
	case err != nil:
		return err
	case r.rename && alias.Overwrite:
		return fmt.Errorf("the items of %s are replaced: use --replace in place of --rename", args[0])
	case r.replace && !alias.Overwrite:
		return fmt.Errorf("the items of %s are never replaced: use --rename in place of --replace", args[0])
	}
	r.session, r.alias, r.permit, r.totals.Alias = s, alias, s.permit(), args[0]
	bars := s.progress()
	defer bars.close()
	r.done = bars.items("items")
	err = r.all(ctx)
	if ctx.Err() != nil {
		err = errInterrupted
	}
	bars.close()
	return r.report(err)
}

// all restores the selected entries. It returns the error that ended it early.
func (r *restoring) all(ctx context.Context) error {
	chosen, err := r.choose(ctx)
	if err != nil {
		return err
	}
	r.done.setTotal(int64(len(chosen)))
	most := restorers
	if r.alias.Kind == item.Image {
		most = min(most, r.encoders())
	}
	group, ctx := guard.WithContext(ctx, r.parallel(most, r.alias.Storage))
	for _, entry := range chosen {
		group.Go(func() error {
			defer r.done.add(1)
			return r.one(ctx, entry)
		})
	}
	return group.Wait()
}

// choose returns the selected entries: for each item the last removed one, unless IDs name them.
func (r *restoring) choose(ctx context.Context) (chosen []service.InTrash, err error) {
	known := map[string]bool{}
	for entry, err := range r.entries(ctx, r.permit, r.alias) {
		switch {
		case err != nil && (r.ids == nil || ctx.Err() != nil):
			return nil, err
		case err != nil:
			err = r.add(entry, restoreResult{Filename: entry.Filename}, err)
		case r.ids != nil || !known[entry.Filename]:
			known[entry.Filename] = true
			chosen = append(chosen, entry)
		}
		if err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// one restores an entry. An error ends the run.
func (r *restoring) one(ctx context.Context, entry service.InTrash) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	result, err := r.restore(ctx, entry)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	printed := r.add(entry, result, err)
	if errors.Is(err, storagedrivers.ErrNoSpace) || errors.Is(err, storagedrivers.ErrUnavailable) { // so will the others
		return errors.Join(printed, err)
	}
	return printed
}

// restore restores an entry, again if it has waited in vain for memory that the others take. In a
// dry run it only finds out whether the name is taken.
func (r *restoring) restore(ctx context.Context, entry service.InTrash) (result restoreResult, err error) {
	result.Filename = entry.Filename
	if r.totals.DryRun {
		there, err := item.Stat(ctx, r.alias.Storage, r.alias.Key(entry.Filename))
		result.Taken = there.Key != ""
		return result, err
	}
	for {
		outcomes, failure := r.permit.Restore(ctx, op.Restoration{
			Alias: r.alias, IDs: []string{entry.ID()}, Rename: r.rename, Replace: r.replace, AsItWas: r.asItWas,
		})
		if failure == nil {
			failure = outcomes[0].Failure
		}
		switch {
		case failure == nil:
			result.Restored, result.Filename, result.Trash = true, outcomes[0].Item.Filename, outcomes[0].Item.Trash
			return result, nil
		case failure.Reason != item.Busy || ctx.Err() != nil:
			return result, failure
		}
	}
}

// add counts and prints the outcome of an entry. It returns an error only if printing fails.
func (r *restoring) add(entry service.InTrash, result restoreResult, err error) error {
	result.ID, result.Size, result.Removed = entry.ID(), entry.Size, entry.Removed
	r.mu.Lock()
	if err != nil {
		r.totals.Failed++
	} else {
		r.totals.Restored++
		r.totals.Bytes += max(0, entry.Size)
	}
	r.mu.Unlock()
	switch taken := ""; {
	case err != nil:
		result.failure = r.fail(entry.Filename, err)
	case r.totals.DryRun:
		if result.Taken {
			taken = ", its name is taken"
		}
		r.sayf("%s: %s, removed %s%s", entry.Filename, bytesText(entry.Size), entry.Removed.Local().Format(time.DateTime), taken)
	case result.Filename != entry.Filename:
		r.sayf("%s: restored as %s", entry.Filename, result.Filename)
	}
	return r.document(result)
}

// report prints the totals. stopped is the error that ended the run early, or nil.
func (r *restoring) report(stopped error) error {
	t := &r.totals
	t.Complete, t.Stopped = stopped == nil, r.text(stopped)
	if err := r.document(t); err != nil {
		return err
	}
	verb := "restored"
	if t.DryRun {
		verb = "would be restored"
	}
	err := r.table([][]string{
		{verb, humanize.Comma(int64(t.Restored)) + " items", bytesText(t.Bytes)}, {"failed", humanize.Comma(int64(t.Failed)) + " items"},
	})
	switch {
	case err != nil:
		return err
	case stopped != nil:
		r.failf("Stopped: %v\nRun the same command again to continue.", r.explain(stopped))
	case t.Failed == 0:
		return nil
	}
	return errReported
}
