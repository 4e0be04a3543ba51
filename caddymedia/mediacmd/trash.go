package mediacmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers/guard"
)

func trashCommand() *cobra.Command {
	var w trashing
	cmd := inSession(&cobra.Command{
		Use:   "trash [<alias>...]",
		Short: "Show and empty the trash of aliases",
		Long: `Show what is in the trash of all aliases, or of the named ones: img/content for
example. There is a line for each version of an item, with its alias, filename,
size, time of removal and ID; the last removed comes first. The flags select
versions. --size shows only how many there are in each alias.

--purge removes the selected versions of the named aliases for good.
caddy media restore brings items back.

With --json there is one line for each version, or for each alias with --size,
and a last one with the totals.`,
		Example: `  caddy media trash img/content --folder summer
  caddy media trash img/content --older-than 240h --purge`,
		Args: needs(0, maxArguments, "names of aliases"),
	}, w.run)
	w.addFlags(cmd)
	cmd.Flags().BoolVar(&w.size, "size", false, "Show only the number and size for each alias")
	cmd.Flags().BoolVar(&w.purge, "purge", false, "Remove the selected versions for good")
	cmd.MarkFlagsMutuallyExclusive("size", "purge")
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case w.ids != nil && len(args) != 1:
			return errors.New("--id needs the name of one alias")
		case w.purge && len(args) == 0:
			return errors.New("--purge needs the names of aliases")
		}
		return w.check(cmd)
	}
	return cmd
}

// trashSelection selects entries of the trash by flags.
type trashSelection struct {
	ids               []string
	query             service.TrashQuery
	within, olderThan time.Duration
}

func (q *trashSelection) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&q.ids, "id", nil, "Only the version of this ID (may be repeated)")
	flags.StringVar(&q.query.Folder, "folder", "", "Only items that were below this folder of the alias, / for all")
	flags.StringVar(&q.query.Filename, "filename", "", "Only versions of this item")
	flags.StringVar(&q.query.Search, "search", "", "Only items with this part of a name")
	flags.DurationVar(&q.within, "removed-within", 0, "Only items that were removed within this time, 1h for example")
	flags.DurationVar(&q.olderThan, "older-than", 0, "Only items that were removed longer ago")
	for _, other := range []string{"folder", "filename", "search", "removed-within", "older-than"} {
		cmd.MarkFlagsMutuallyExclusive("id", other)
	}
	cmd.MarkFlagsMutuallyExclusive("filename", "folder")
	cmd.MarkFlagsMutuallyExclusive("filename", "search")
}

func (q *trashSelection) check(cmd *cobra.Command) error {
	for _, id := range q.ids {
		if _, ok := item.KeptOf(id); !ok {
			return fmt.Errorf("--id %q is not the ID of an item in the trash", id)
		}
	}
	q.query.Folder = strings.Trim(q.query.Folder, "/")
	switch {
	case cmd.Flags().Changed("removed-within") && q.within <= 0:
		return errors.New("--removed-within must be longer than 0")
	case q.olderThan < 0:
		return errors.New("--older-than must not be negative")
	}
	return nil
}

// trashPage is the number of entries that are listed at a time.
const trashPage = 1000

// entries returns the selected entries of an alias, the last removed first; those of IDs in their
// order. The error of an entry is that of its ID. Any other error is the last.
func (q *trashSelection) entries(ctx context.Context, p *op.Permit, alias *item.Alias) iter.Seq2[service.InTrash, error] {
	query, now := q.query, p.Service.Uploader().Now()
	query.Alias, query.Limit = alias, trashPage
	return func(yield func(service.InTrash, error) bool) {
		for _, id := range q.ids {
			if !yield(entryOf(ctx, p, alias, id)) {
				return
			}
		}
		for more := q.ids == nil; more; more = query.Cursor != "" {
			page, err := p.ListTrash(ctx, query)
			if err != nil {
				yield(service.InTrash{}, err)
				return
			}
			for _, entry := range page.Entries {
				age := now.Sub(entry.Removed)
				if q.within > 0 && age > q.within {
					return
				}
				if (q.olderThan == 0 || age >= q.olderThan) && !yield(entry, nil) {
					return
				}
			}
			query.Cursor = page.Next
		}
	}
}

// entryOf returns the entry of an ID, which is well-formed.
func entryOf(ctx context.Context, p *op.Permit, alias *item.Alias, id string) (service.InTrash, error) {
	kept, _ := item.KeptOf(id)
	if _, failure := p.Kept(alias, id); failure != nil {
		return service.InTrash{Kept: kept}, failure
	}
	info, err := item.Stat(ctx, alias.Storage, alias.TrashKey(kept))
	if err == nil && info.Key == "" {
		err = fs.ErrNotExist
	}
	if err != nil {
		err = item.OperationFailure("find the item", err)
	}
	return service.InTrash{Kept: kept, Size: info.Size}, err
}

// permit returns the permit of the command, which may do everything.
func (s *session) permit() *op.Permit {
	all, running := access.Caller{Account: access.Account{Rights: access.Rights()}}, s.App.Service()
	return &op.Permit{
		Caller: all, Service: running, Actor: item.Actor{Origin: item.OriginGo}, Log: slog.New(slog.DiscardHandler),
		Authenticate: func(context.Context, *service.Service) (access.Caller, *item.Failure) { return all, nil },
		Next:         func() (*service.Service, func()) { return running, func() {} },
	}
}

// trashAlias returns an alias that has a trash.
func (s *session) trashAlias(full string) (*item.Alias, error) {
	alias, err := s.alias(full)
	if err == nil && alias.Trash == 0 {
		err = fmt.Errorf("the alias %s has no trash: add trash to its configuration first", full)
	}
	return alias, err
}

// trashAliases returns the aliases of these names, or all that have a trash if there are no names.
func (s *session) trashAliases(names []string) ([]*item.Alias, error) {
	if len(names) == 0 {
		hasNone := func(alias *item.Alias) bool { return alias.Trash == 0 }
		return slices.DeleteFunc(s.App.Service().Aliases(), hasNone), nil
	}
	aliases := make([]*item.Alias, len(names))
	for i, name := range names {
		var err error
		if aliases[i], err = s.trashAlias(name); err != nil {
			return nil, err
		}
	}
	return aliases, nil
}

// trashing is a run of the command.
type trashing struct {
	*session
	trashSelection
	size, purge bool
	permit      *op.Permit

	mu     sync.Mutex
	rows   rows
	totals trashTotals
}

// trashTotals is the last line of the JSON, and that of an alias with --size.
type trashTotals struct {
	Alias  string `json:"alias,omitempty"`
	Number int    `json:"number"`
	Bytes  int64  `json:"bytes"`
	Purged int    `json:"purged"`
	Failed int    `json:"failed"` // aliases that could not be listed included
}

// trashResult is a line of the JSON.
type trashResult struct {
	Alias string `json:"alias"`
	// ID is empty for the alias itself.
	ID        string    `json:"id,omitempty"`
	Filename  string    `json:"filename,omitempty"`
	Size      int64     `json:"size"`
	Stored    time.Time `json:"stored,omitzero"`
	Removed   time.Time `json:"removed,omitzero"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Purged    bool      `json:"purged"`
	failure
}

// run runs `caddy media trash`.
func (w *trashing) run(ctx context.Context, s *session, names []string) error {
	w.session, w.permit = s, s.permit()
	w.query.All = w.size || w.purge
	aliases, err := s.trashAliases(names)
	if err != nil {
		return err
	}
	if len(aliases) == 0 {
		s.sayf("no alias has a trash")
	}
	for _, alias := range aliases {
		if err := errors.Join(w.alias(ctx, alias), ctx.Err()); err != nil {
			return err
		}
	}
	return w.report()
}

// alias shows or purges the entries of one alias. It prints failures and returns an error only if
// printing fails.
func (w *trashing) alias(ctx context.Context, alias *item.Alias) error {
	before := w.totals
	work := guard.NewGroup(w.parallel(lookers, alias.Storage))
	for entry, err := range w.entries(ctx, w.permit, alias) {
		if ctx.Err() != nil {
			break
		}
		if err == nil && w.purge {
			work.Go(func() error { return w.remove(ctx, alias, entry) })
		} else if err := w.add(alias, entry, err); err != nil {
			return errors.Join(err, work.Wait())
		}
	}
	if err := work.Wait(); err != nil {
		return err
	}
	if w.size {
		return w.sizeOf(alias, before)
	}
	return w.rows.flush(w.output)
}

// remove purges an entry. One that another process has removed is no failure.
func (w *trashing) remove(ctx context.Context, alias *item.Alias, entry service.InTrash) error {
	failures, failure := w.permit.Purge(ctx, alias, []string{entry.ID()})
	if failure == nil {
		failure = failures[0]
	}
	switch {
	case failure == nil:
		return w.add(alias, entry, nil)
	case failure.Reason == item.Missing, ctx.Err() != nil:
		return nil //nolint:nilerr // another process was faster, or the command is interrupted
	}
	return w.add(alias, entry, failure)
}

// add counts and prints an entry, or a failure if err is not nil. It returns an error only if
// printing fails.
func (w *trashing) add(alias *item.Alias, entry service.InTrash, err error) error {
	found := trashResult{
		Alias: fullName(alias), Size: entry.Size, Stored: entry.Stored, Removed: entry.Removed, Purged: w.purge && err == nil,
	}
	if entry.Filename != "" {
		found.ID, found.Filename, found.ExpiresAt = entry.ID(), entry.Filename, alias.EndOf(entry.Kept)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.totals.Failed++
		found.failure = w.fail(strings.TrimSpace(found.Alias+" "+found.ID), err)
		return w.document(found)
	}
	w.totals.Number++
	w.totals.Bytes += max(0, entry.Size)
	if w.size {
		return nil
	}
	row := []string{found.Alias, found.Filename, bytesText(found.Size), found.Removed.Local().Format(time.DateTime), found.ID}
	if found.Purged {
		w.totals.Purged++
		row = append(row, "purged")
	}
	return errors.Join(w.rows.add(w.output, row...), w.document(found))
}

// sizeOf prints the number and size of what an alias has added to the totals.
func (w *trashing) sizeOf(alias *item.Alias, before trashTotals) error {
	of := trashTotals{
		Alias: fullName(alias), Number: w.totals.Number - before.Number, Bytes: w.totals.Bytes - before.Bytes, Failed: w.totals.Failed - before.Failed,
	}
	return errors.Join(w.rows.add(w.output, of.Alias, humanize.Comma(int64(of.Number)), bytesText(of.Bytes)), w.document(of))
}

// report prints the totals. It returns errReported if anything failed.
func (w *trashing) report() error {
	t := w.totals
	if err := errors.Join(w.rows.flush(w.output), w.document(t)); err != nil {
		return err
	}
	w.sayf("%s versions, %s", humanize.Comma(int64(t.Number)), bytesText(t.Bytes))
	if w.purge {
		w.sayf("%d purged, %d failed", t.Purged, t.Failed)
	}
	if t.Failed > 0 {
		return errReported
	}
	return nil
}
