package mediacmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers"
)

func rmCommand() *cobra.Command {
	var r removing
	cmd := inSession(&cobra.Command{
		Use:   "rm <storage or alias>/<name>...",
		Short: "Removes items with their variants, or other objects",
		Long: `Removes items with their WebP variants, or other objects of a storage. An alias
is img/<name> or file/<name>. It asks before it removes anything; --yes answers,
and is needed where there is no terminal. What is removed cannot be restored.

The running Caddy removes its items itself, as if they were removed in the
panel: with events and lines in the audit log. With --config the command does
it, without them.

With --json there is one line for each item, and a last one with the totals.`,
		Example: `  caddy media rm img/content/26-11/21/photo.jpg
  caddy media rm --recursive --dry-run img/content/26-11`,
		Args: needs(1, maxArguments, "at least one <storage or alias>/<name>"),
	}, r.run)
	flags := cmd.Flags()
	flags.BoolVarP(&r.recursive, "recursive", "r", false, "Remove everything in folders")
	flags.BoolVarP(&r.yes, "yes", "y", false, "Do not ask")
	flags.BoolVar(&r.totals.DryRun, "dry-run", false, "Only show what would be removed")
	return cmd
}

// removing is a run of the command.
type removing struct {
	*session
	recursive, yes bool

	mu     sync.Mutex
	totals removeTotals
}

// removeTotals is the last line of the JSON.
type removeTotals struct {
	DryRun  bool  `json:"dry_run"`
	Items   int64 `json:"items"` // variants are parts of their pictures
	Bytes   int64 `json:"bytes"` // with the variants
	Removed int64 `json:"removed"`
	Failed  int64 `json:"failed"`
}

// removeResult is a line of the JSON.
type removeResult struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	Removed bool   `json:"removed"`
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"` // in plain words, if it is known
}

// removers is the number of items that are removed concurrently.
const removers = 4

// run runs `caddy media rm`.
func (r *removing) run(ctx context.Context, s *session, args []string) error {
	r.session = s
	targets := make([]target, len(args))
	for i, arg := range args {
		var err error
		if targets[i], err = s.target(arg); err != nil {
			return err
		}
		if targets[i].path == "" && !r.recursive {
			return fmt.Errorf("%s is not an item: --recursive removes everything in it", targets[i])
		}
	}
	if !r.yes && !r.totals.DryRun {
		if err := r.ask(ctx, targets); err != nil {
			return err
		}
	}
	for _, t := range targets {
		group := new(errgroup.Group)
		group.SetLimit(s.parallel(removers, t.storage))
		err := r.each(ctx, t, func(found removable) error {
			group.Go(func() error { return r.remove(ctx, t, found) })
			return ctx.Err()
		})
		failed := group.Wait()
		switch {
		case ctx.Err() != nil:
			return r.report(ctx)
		case failed != nil:
			return failed
		}
		if err != nil {
			if err := r.add(removeResult{Path: t.String()}, err); err != nil {
				return err
			}
		}
	}
	return r.report(ctx)
}

// removable is an item, or an object that is none.
type removable struct {
	storagedrivers.Info

	alias *ingest.Alias // nil: no item
	// variant reports that the object is a variant without a picture.
	variant bool
	// paired reports that the object is the variant of a picture that is removed as well.
	paired bool
}

// each calls f for every object of a target.
func (r *removing) each(ctx context.Context, t target, f func(removable) error) error {
	aliasOf := r.aliasOf(t.storage.Name(), t.storage.Name())
	// pictures are the preceding ones whose keys the current key begins with. All keys between a
	// picture and its variant begin with the key of the picture.
	var pictures []string
	each := func(info storagedrivers.Info) error {
		found := removable{Info: info, alias: aliasOf(info.Key)}
		for len(pictures) > 0 && !strings.HasPrefix(info.Key, pictures[len(pictures)-1]) {
			pictures = pictures[:len(pictures)-1]
		}
		if found.alias != nil && found.alias.IsVariant(found.alias.Filename(info.Key)) {
			picture := strings.TrimSuffix(info.Key, render.Suffix)
			for _, before := range pictures {
				found.paired = found.paired || before == picture
			}
			found.variant = !found.paired
		}
		pictures = append(pictures, info.Key)
		return f(found)
	}
	if t.path != "" {
		info, err := t.storage.Stat(ctx, t.key())
		switch {
		case err == nil:
			return each(info)
		case !isMissing(err):
			return err
		}
	}
	any := false
	for info, err := range t.storage.All(ctx, t.folder()) {
		if err != nil {
			return err
		}
		if !r.recursive {
			return errors.New("it is a folder: --recursive removes everything in it")
		}
		any = true
		if err := each(info); err != nil {
			return err
		}
	}
	if !any && t.path != "" {
		return errors.New("there is no such item or folder")
	}
	return nil
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, storagedrivers.ErrInvalidKey)
}

// ask asks on the terminal. It returns an error unless the answer is yes.
func (r *removing) ask(ctx context.Context, targets []target) error {
	var items, bytes int64
	for _, t := range targets {
		err := r.each(ctx, t, func(found removable) error {
			if bytes += found.Size; !found.paired {
				items++
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", t, r.explain(err))
		}
	}
	if items == 0 {
		return nil
	}
	what := fmt.Sprintf("%s items (%s) of %s", humanize.Comma(items), humanize.IBytes(uint64(bytes)), targets[0])
	if items == 1 {
		what = fmt.Sprintf("%s (%s)", targets[0], humanize.IBytes(uint64(bytes)))
	}
	if len(targets) > 1 {
		what += fmt.Sprintf(" and %d more", len(targets)-1)
	}
	return r.confirm(ctx, "Remove "+what+"?")
}

// remove removes an object. It prints failures and returns an error only if printing fails, or if it
// is interrupted.
func (r *removing) remove(ctx context.Context, t target, found removable) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if found.paired {
		r.tally(func(totals *removeTotals) { totals.Bytes += found.Size })
		return nil
	}
	result := removeResult{Path: t.shown(found.Key), Size: found.Size}
	var err error
	if !r.totals.DryRun {
		result.Removed, err = r.removeObject(ctx, t, found)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return r.add(result, err)
}

func (r *removing) removeObject(ctx context.Context, t target, found removable) (bool, error) {
	switch {
	case found.variant:
		removed, err := r.App.Service().Uploader().RemoveOrphan(ctx, found.alias, found.Info)
		if err == nil && !removed {
			err = errors.New("it is the variant of a picture: remove the picture")
		}
		return removed, err
	case found.alias != nil:
		err := r.removeItem(ctx, found.alias, found.alias.Filename(found.Key))
		return err == nil, err
	default:
		err := t.storage.Delete(ctx, found.Key)
		return err == nil, err
	}
}

// tally updates the totals.
func (r *removing) tally(change func(*removeTotals)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.totals)
}

// add prints and counts a result, or a failure if err is not nil.
func (r *removing) add(result removeResult, err error) error {
	r.tally(func(totals *removeTotals) {
		totals.Items++
		totals.Bytes += result.Size
		if result.Removed {
			totals.Removed++
		}
		if err != nil {
			totals.Failed++
		}
	})
	switch {
	case err != nil:
		result.Message, result.Reason = r.text(err), r.reasonOf(err)
		r.failf("%s: %v", result.Path, r.explain(err))
	case result.Removed:
		r.sayf("%s: removed", result.Path)
	default:
		r.sayf("%s: would be removed, %s", result.Path, humanize.IBytes(uint64(result.Size)))
	}
	return r.document(result)
}

// report prints the totals. It returns errReported if anything failed.
func (r *removing) report(ctx context.Context) error {
	t := r.totals
	if err := r.document(t); err != nil {
		return err
	}
	if t.DryRun {
		r.sayf("%s items, %s; nothing was removed", humanize.Comma(t.Items), humanize.IBytes(uint64(t.Bytes)))
	} else if t.Items > 1 {
		r.sayf("%s removed, %s failed", humanize.Comma(t.Removed), humanize.Comma(t.Failed))
	}
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case t.Failed > 0:
		return errReported
	}
	return nil
}
