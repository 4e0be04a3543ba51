package mediacmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/moment"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// momentSelection are the flags of `caddy media restore --at`.
type momentSelection struct {
	at, names string
	time      time.Time
	filenames []string // of the file names
}

func (q *momentSelection) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&q.at, "at", "", "Bring everything back to what it was at this time: 2026-11-29T14:30:00Z, or local time")
	cmd.Flags().StringVar(&q.names, "names", "", "With --at, say which items of this file, a filename in a line, will not be there")
	for _, other := range []string{"id", "filename", "search", "removed-within", "older-than", "rename", "replace"} {
		cmd.MarkFlagsMutuallyExclusive("at", other)
	}
}

// check reads the time and the file.
func (q *momentSelection) check(args []string) (err error) {
	for _, layout := range []string{time.RFC3339, time.DateTime} {
		if q.time, err = time.ParseInLocation(layout, q.at, time.Local); err == nil {
			break
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf(`--at %q is no time: write 2026-11-29T14:30:00Z, or "2026-11-29 14:30:00" for local time`, q.at)
	case q.names == "":
		return nil
	case len(args) == 0:
		return errors.New("--names needs the name of an alias")
	}
	text, err := os.ReadFile(q.names)
	if err != nil {
		return fmt.Errorf("reading --names: %w", err)
	}
	for name := range strings.Lines(string(text)) {
		if name = strings.TrimRight(name, "\r\n"); name != "" {
			q.filenames = append(q.filenames, name)
		}
	}
	return nil
}

// momentRun brings an alias back to a time.
type momentRun struct {
	*session
	momentSelection
	alias   *item.Alias
	permit  *op.Permit
	asItWas bool
	done    *bar
	totals  momentTotals
	// isThere are names of items that will be there, or not, because of what is done.
	isThere map[string]bool
}

// momentTotals is the last line of the JSON for an alias.
type momentTotals struct {
	Alias  string    `json:"alias"`
	Folder string    `json:"folder,omitempty"`
	DryRun bool      `json:"dry_run"`
	At     time.Time `json:"at"`
	// Began is when bringing back began: --at of it undoes all.
	Began time.Time `json:"began"`
	// Tally is of what was done, or would be in a dry run.
	moment.Tally
	Failed int `json:"failed"`
	// Missing are the names of --names that are no items afterwards.
	Missing []string `json:"missing,omitempty"`
	// Complete reports that no name was left out; Stopped is the reason if some were.
	Complete bool   `json:"complete"`
	Stopped  string `json:"stopped,omitempty"`
}

// momentResult is a line of the JSON.
type momentResult struct {
	Filename string `json:"filename"`
	// Action is restored, removed, replaced, or doubtful for an item that is left as it is.
	Action string `json:"action"`
	Size   int64  `json:"size"`
	failure
}

// momentNames is the number of names that are compared at a time.
const momentNames = 10_000

// runAt runs `caddy media restore --at` for the named alias, or for all that have a trash. A folder
// may follow the name.
func (r *restoring) runAt(ctx context.Context, s *session, names []string) error {
	folder := r.query.Folder
	if len(names) > 0 {
		if parts := strings.SplitN(strings.Trim(names[0], "/"), "/", 3); len(parts) == 3 {
			names, folder = []string{parts[0] + "/" + parts[1]}, parts[2]
		}
	}
	aliases, err := s.trashAliases(names)
	for _, alias := range aliases {
		run := momentRun{session: s, momentSelection: r.momentSelection, alias: alias, permit: s.permit(), asItWas: r.asItWas, isThere: map[string]bool{}}
		run.totals = momentTotals{Alias: fullName(alias), Folder: folder, DryRun: r.totals.DryRun, At: run.time.UTC()}
		if failed := run.run(ctx); failed != nil {
			err = failed
		}
	}
	return err
}

// run brings the alias back, and prints what was done.
func (r *momentRun) run(ctx context.Context) error {
	r.sayf("%s at %s", path.Join(r.totals.Alias, r.totals.Folder), r.totals.At.Format(time.RFC3339Nano))
	bars := r.progress()
	defer bars.close()
	r.done = bars.items("items")
	err := r.pages(ctx)
	if err == nil {
		err = r.findMissing(ctx)
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	bars.close()
	return r.report(err)
}

// pages does, or only shows, what there is to do.
func (r *momentRun) pages(ctx context.Context) error {
	past := op.Past{Alias: r.alias, Folder: r.totals.Folder, At: r.time, DryRun: r.totals.DryRun, AsItWas: r.asItWas, Limit: momentNames}
	for {
		page, failure := r.permit.RestorePast(ctx, past)
		if !page.Began.IsZero() {
			r.totals.Began = page.Began.UTC()
		}
		for _, step := range page.Steps {
			if err := r.add(step); err != nil {
				return err
			}
		}
		r.done.add(int64(len(page.Steps)))
		if failure != nil {
			return failure
		}
		if past.Cursor = page.Cursor; past.Cursor == "" {
			return nil
		}
	}
}

// add counts and prints what was done with a name. It returns an error only if printing fails.
func (r *momentRun) add(step op.PastStep) error {
	result := momentResult{Filename: step.Filename, Size: step.Size()}
	if step.Failure != nil {
		r.totals.Failed++
		result.failure = r.fail(step.Filename, step.Failure)
		return r.document(result)
	}
	result.Action = r.totals.Add(step.Action, step.Filename, result.Size, 0)
	if step.Action != moment.Doubt {
		r.isThere[step.Filename] = step.Action != moment.TakeAway
	}
	if r.totals.DryRun || step.Action == moment.Doubt {
		r.sayf("%s: %s, %s", step.Filename, result.Action, bytesText(result.Size))
	}
	return r.document(result)
}

// findMissing finds the names of --names that are no items afterwards.
func (r *momentRun) findMissing(ctx context.Context) error {
	missing := make([]bool, len(r.filenames))
	errs := guard.Each(len(missing), r.parallel(lookers, r.alias.Storage), func(i int) error {
		isThere, isKnown := r.isThere[r.filenames[i]]
		if isKnown || !r.alias.MayBeItem(r.filenames[i]) {
			missing[i] = !isThere
			return nil
		}
		info, err := item.Stat(ctx, r.alias.Storage, r.alias.Key(r.filenames[i]))
		missing[i] = info.Key == ""
		return err
	})
	for i, isMissing := range missing {
		if isMissing {
			r.totals.Missing = append(r.totals.Missing, r.filenames[i])
			r.sayf("%s: missing", r.filenames[i])
		}
	}
	return errors.Join(errs...)
}

// report prints the totals. stopped is the error that ended the run early, or nil.
func (r *momentRun) report(stopped error) error {
	t := &r.totals
	if !t.DryRun && t.Restored.Items+t.Replaced.Items+t.Removed.Items > 0 {
		defer func() { r.sayf("To undo it: --at %s", t.Began.Format(time.RFC3339Nano)) }()
	}
	t.Complete, t.Stopped = stopped == nil, r.text(stopped)
	if err := r.document(t); err != nil {
		return err
	}
	row := func(what string, of moment.Items) []string {
		return []string{what, humanize.Comma(int64(of.Items)) + " items", bytesText(of.Bytes)}
	}
	err := r.table([][]string{
		row("restored", t.Restored), row("replaced", t.Replaced), row("removed", t.Removed), row("doubtful", t.Doubtful),
		{"failed", humanize.Comma(int64(t.Failed)) + " items"},
	})
	switch {
	case err != nil:
		return err
	case stopped != nil:
		advice := "\nRun the same command again to continue."
		if failure, ok := errors.AsType[*item.Failure](stopped); ok && failure.Reason == item.BadRequest {
			advice = "" // the time
		}
		r.failf("Stopped: %v%s", r.explain(stopped), advice)
	case t.Failed+t.Doubtful.Items+len(t.Missing) == 0:
		return nil
	}
	return errReported
}
