package mediacmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/ingest"
)

func variantsCommand() *cobra.Command {
	var m makingVariants
	cmd := inSession(&cobra.Command{
		Use:   "variants <alias>",
		Short: "Makes WebP variants and renditions that are missing",
		Long: `Makes WebP variants that are missing or stale, and eager renditions that are
missing, for the pictures of an alias: "content", or "img/content" as in its
addresses. Stale is a variant that is older than its picture.

It works beside a running Caddy, in the limits that the configuration sets for
pictures, and can be run again after an interruption.

With --json there is one line for each picture of which something is made, and a
last one with the totals.`,
		Args: needs(1, 1, "<alias>"),
	}, m.run)
	cmd.Flags().BoolVar(&m.all, "all", false, "Make all missing renditions, also those that are not eager, and again the variants that are current, after a change of quality for instance")
	cmd.Flags().BoolVar(&m.totals.DryRun, "dry-run", false, "Only show what would be made")
	return cmd
}

// makingVariants is a run of the command.
type makingVariants struct {
	*session
	alias *ingest.Alias
	all   bool
	// workers bounds the pictures in work to those that the encoders accept without a queue.
	workers *semaphore.Weighted
	done    *bar

	mu     sync.Mutex
	totals variantTotals
}

// lookers is the number of pictures that are examined concurrently.
const lookers = 16

// run runs `caddy media variants`.
func (m *makingVariants) run(ctx context.Context, s *session, args []string) error {
	alias, err := s.pictureAlias(args[0])
	if err != nil {
		return err
	}
	m.session, m.alias = s, alias
	m.totals.Alias = string(alias.Kind) + "/" + alias.Name
	m.workers = semaphore.NewWeighted(int64(cmp.Or(max(s.App.Limits.ImageWorkers, 0), runtime.GOMAXPROCS(0))))
	bars := s.progress()
	defer bars.close()
	m.done = bars.items("pictures")
	err = m.walk(ctx)
	if ctx.Err() != nil {
		err = errInterrupted
	}
	bars.close()
	return m.report(err)
}

// pictureAlias returns an image alias that has variants or renditions.
func (s *session) pictureAlias(name string) (*ingest.Alias, error) {
	kind, plain, found := strings.Cut(name, "/")
	if !found {
		kind, plain = string(ingest.Image), name
	}
	alias, ok := s.App.Service().Alias(ingest.Kind(kind), plain)
	switch {
	case !ok && !found:
		return nil, fmt.Errorf("there is no image alias %q in the configuration", plain)
	case !ok:
		return nil, fmt.Errorf("there is no alias %q in the configuration", name)
	case alias.Kind != ingest.Image:
		return nil, fmt.Errorf("%s is an alias for files: only pictures have variants", name)
	case alias.WebP == nil && len(alias.Renditions) == 0:
		return nil, fmt.Errorf("the image alias %q has no variants and no renditions: add webp or rendition to its configuration first", plain)
	}
	return alias, nil
}

// walk processes all pictures of the alias. It returns the error that ended it early.
func (m *makingVariants) walk(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(lookers + 1)
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

// count counts the pictures for the progress bar.
func (m *makingVariants) count(ctx context.Context) error {
	var n int64
	if err := m.each(ctx, func(string) { n++ }); err != nil {
		return err
	}
	m.done.setTotal(n)
	return nil
}

// outcome is what was made of a picture, or would be.
type outcome struct {
	ingest.Renewed
	renditions int // files
}

// one makes the variant and the renditions of a picture if necessary. An error ends the run.
func (m *makingVariants) one(ctx context.Context, filename string) error {
	done, err := m.makeMissing(ctx, filename)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist):
		return nil // deleted meanwhile
	case errors.Is(err, render.ErrNone):
		return m.none(filename, done, err)
	case err != nil:
		return m.failed(ctx, filename, done, err)
	}
	return m.settled(filename, done)
}

// makeMissing makes the variant and the renditions of a picture if necessary. Of two errors it
// returns the one that is not about the picture itself.
func (m *makingVariants) makeMissing(ctx context.Context, filename string) (done outcome, err error) {
	if m.alias.WebP != nil && m.alias.MayHaveVariant(filename) {
		done.Before, err = m.alias.VariantState(ctx, filename)
		if err == nil && (m.all || done.Before != ingest.VariantCurrent) && !m.totals.DryRun {
			done.Renewed, err = retried(ctx, m, func() (ingest.Renewed, error) {
				return m.App.Service().Uploader().Renew(ctx, m.alias, filename, m.all)
			})
		}
		if err != nil && !errors.Is(err, render.ErrNone) {
			return done, err
		}
	}
	none := err
	if m.totals.DryRun {
		done.renditions, err = m.alias.MissingRenditions(ctx, filename, m.all)
	} else {
		done.renditions, err = retried(ctx, m, func() (int, error) {
			return m.App.Service().Uploader().RenewRenditions(ctx, m.alias, filename, m.all)
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
