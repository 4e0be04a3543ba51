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
	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

func variantsCommand() *cobra.Command {
	var m makingVariants
	cmd := inSession(&cobra.Command{
		Use:   "variants <alias>",
		Short: "Make missing WebP variants and renditions",
		Long: `Make missing or stale WebP variants, and missing eager renditions, for the
images of an alias: "content", or "img/content" as in its addresses. A variant
is stale if it is older than its image.

The command works beside a running Caddy, within the limits of the configuration
for images. After an interruption, run it again.

With --json there is one line for each image for which something is made, and a
last one with the totals.`,
		Args: needs(1, 1, "<alias>"),
	}, m.run)
	cmd.Flags().BoolVar(&m.all, "all", false, "Also make current variants anew, after a change of quality for example, and renditions that are not eager")
	cmd.Flags().BoolVar(&m.totals.DryRun, "dry-run", false, "Only show what would be made")
	return cmd
}

// makingVariants is a run of the command.
type makingVariants struct {
	*session
	alias *item.Alias
	all   bool
	// workers bounds the images in work to those that the encoders accept without a queue.
	workers *semaphore.Weighted
	done    *bar

	mu     sync.Mutex
	totals variantTotals
}

// lookers is the number of images that are examined concurrently.
const lookers = 16

// run runs `caddy media variants`.
func (m *makingVariants) run(ctx context.Context, s *session, args []string) error {
	alias, err := s.imageAlias(args[0])
	if err != nil {
		return err
	}
	m.session, m.alias = s, alias
	m.totals.Alias = fullName(alias)
	m.workers = semaphore.NewWeighted(int64(s.encoders()))
	bars := s.progress()
	defer bars.close()
	m.done = bars.items("images")
	err = m.walk(ctx)
	if ctx.Err() != nil {
		err = errInterrupted
	}
	bars.close()
	return m.report(err)
}

// imageAlias returns an image alias that has variants or renditions.
func (s *session) imageAlias(name string) (*item.Alias, error) {
	kind, plain, found := strings.Cut(name, "/")
	if !found {
		kind, plain = string(item.Image), name
	}
	alias, ok := s.App.Service().Alias(item.Kind(kind), plain)
	switch {
	case !ok && !found:
		return nil, fmt.Errorf("there is no image alias %q in the configuration", plain)
	case !ok:
		return nil, fmt.Errorf("there is no alias %q in the configuration", name)
	case alias.Kind != item.Image:
		return nil, fmt.Errorf("%s is an alias for files: only images have variants", name)
	case alias.WebP == nil && len(alias.Renditions) == 0:
		return nil, fmt.Errorf("the image alias %q has no variants and no renditions: add webp or rendition to its configuration first", plain)
	}
	return alias, nil
}

// walk processes all images of the alias. It returns the error that ended it early.
func (m *makingVariants) walk(ctx context.Context) error {
	group, ctx := guard.WithContext(ctx, lookers+1)
	if m.bars {
		group.Go(func() error { return m.count(ctx) })
	}
	err := m.each(ctx, func(filename string) {
		group.Go(func() error {
			defer m.done.add(1)
			return m.one(ctx, filename)
		})
	})
	if failed := group.Wait(); failed != nil {
		return failed
	}
	return err
}

func (m *makingVariants) each(ctx context.Context, f func(filename string)) error {
	for info, err := range m.alias.Storage.All(ctx, m.alias.Key("")) {
		if err != nil {
			return err
		}
		if filename := m.alias.Filename(info.Key); m.alias.IsRendered(filename) {
			f(filename)
		}
	}
	return nil
}

// count counts the images for the progress bar.
func (m *makingVariants) count(ctx context.Context) error {
	var n int64
	if err := m.each(ctx, func(string) { n++ }); err != nil {
		return err
	}
	m.done.setTotal(n)
	return nil
}

// outcome is what was made of an image, or would be.
type outcome struct {
	derived.Renewed
	renditions int // files
}

// one makes the variant and the renditions of an image if necessary. An error ends the run.
func (m *makingVariants) one(ctx context.Context, filename string) error {
	done, err := m.makeMissing(ctx, filename)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist):
		return nil // deleted meanwhile
	}
	printed := m.add(filename, done, err)
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		return errors.Join(printed, m.alias.Storage.Check(ctx))
	}
	return printed
}

// makeMissing makes the variant and the renditions of an image if necessary. Of two errors it
// returns the one that is not about the image itself.
func (m *makingVariants) makeMissing(ctx context.Context, filename string) (done outcome, err error) {
	if m.alias.WebP != nil && m.alias.MayHaveVariant(filename) {
		done.Before, err = m.alias.VariantState(ctx, filename)
		if err == nil && (m.all || done.Before != item.VariantCurrent) && !m.totals.DryRun {
			done.Renewed, err = retried(ctx, m, func() (derived.Renewed, error) {
				return m.App.Service().Uploader().Derived.Renew(ctx, m.alias, filename, m.all)
			})
		}
		if err != nil && !errors.Is(err, render.ErrNone) {
			return done, err
		}
	}
	none := err
	if m.totals.DryRun {
		var missing []item.RenditionFile
		missing, err = derived.MissingRenditions(ctx, m.alias, filename, m.all)
		done.renditions = len(missing)
	} else {
		done.renditions, err = retried(ctx, m, func() (int, error) {
			return m.App.Service().Uploader().Derived.RenewRenditions(ctx, m.alias, filename, m.all)
		})
	}
	if err == nil {
		err = none
	}
	return done, err
}

// retried calls f when a worker is free, again if it has waited in vain for memory that the others
// take.
func retried[T any](ctx context.Context, m *makingVariants, f func() (T, error)) (result T, err error) {
	if err := m.workers.Acquire(ctx, 1); err != nil {
		return result, err
	}
	defer m.workers.Release(1)
	for {
		result, err = f()
		if !errors.Is(err, render.ErrBusy) || ctx.Err() != nil {
			return result, err
		}
	}
}

// variantTotals is the last line of the JSON.
type variantTotals struct {
	Alias   string `json:"alias"`
	DryRun  bool   `json:"dry_run"`
	Images  int    `json:"images"`
	Current int    `json:"current"`
	// Made counts Larger as well; in a dry run both are what would be made.
	Made   int `json:"made"`
	Larger int `json:"larger"`
	// None counts images of which a variant or a rendition cannot be made.
	None   int `json:"none"`
	Failed int `json:"failed"`
	// Renditions counts files: a rendition may have one more as WebP.
	Renditions int `json:"renditions"`
	// Complete reports that no image was left out; Stopped is the reason if some were.
	Complete bool   `json:"complete"`
	Stopped  string `json:"stopped,omitempty"`
}

// variantResult is a line of the JSON.
type variantResult struct {
	Filename string            `json:"filename"`
	Before   item.VariantState `json:"before,omitempty"`
	// Result is "made", "larger", "none" or "failed"; empty in a dry run, or if only renditions were
	// made.
	Result string `json:"result,omitempty"`
	Size   int64  `json:"size,omitempty"`
	// Renditions is the number of files of renditions that were made, or would be.
	Renditions int `json:"renditions,omitempty"`
	failure
}

// add counts and prints the outcome of an image. It returns an error only if printing fails.
func (m *makingVariants) add(filename string, done outcome, err error) error {
	wouldMake := err == nil && m.totals.DryRun && m.alias.WebP != nil && (m.all || done.Before != item.VariantCurrent)
	result := variantResult{
		Filename: filename, Before: done.Before, Result: string(done.Result), Size: done.Size, Renditions: done.renditions,
	}
	m.mu.Lock()
	m.totals.Images++
	m.totals.Renditions += done.renditions
	switch {
	case errors.Is(err, render.ErrNone):
		m.totals.None++
	case err != nil:
		m.totals.Failed++
	case done.Result != "" || wouldMake:
		m.totals.Made++
	case done.renditions == 0:
		m.totals.Current++
	}
	if err == nil && done.Result == item.VariantLarger {
		m.totals.Larger++
	}
	m.mu.Unlock()
	switch {
	case errors.Is(err, render.ErrNone):
		m.sayf("%s: %s", filename, m.text(err))
		result.Result, result.Message = string(item.VariantNone), m.text(err)
	case err != nil:
		result.Result, result.failure = "failed", m.fail(filename, err)
	case wouldMake:
		m.sayf("%s: %s", filename, done.Before)
	}
	if err == nil && m.totals.DryRun && done.renditions > 0 {
		m.sayf("%s: %d renditions missing", filename, done.renditions)
	}
	if err == nil && done.Result == "" && !wouldMake && done.renditions == 0 {
		return nil // it is current
	}
	return m.document(result)
}

// report prints the totals. stopped is the error that ended the run early, or nil.
func (m *makingVariants) report(stopped error) error {
	t := &m.totals
	t.Complete, t.Stopped = stopped == nil, m.text(stopped)
	if err := m.document(t); err != nil {
		return err
	}
	verb := "made"
	if t.DryRun {
		verb = "would be made"
	}
	row := func(name string, n int) []string { return []string{name, humanize.Comma(int64(n))} }
	err := m.table([][]string{
		row("images", t.Images), row("variants "+verb, t.Made), row("of them larger than their images", t.Larger),
		row("renditions "+verb, t.Renditions), row("current", t.Current), row("cannot be made", t.None), row("failed", t.Failed),
	})
	switch {
	case err != nil:
		return err
	case stopped != nil:
		m.failf("Stopped: %v\nRun the same command again to continue.", m.explain(stopped))
	case t.Failed == 0:
		return nil
	}
	return errReported
}
