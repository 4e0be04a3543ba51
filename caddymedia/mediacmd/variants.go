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

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/caddymedia/imaging/variant"
	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/storagedrivers"
)

func variantsCommand() *cobra.Command {
	var m makingVariants
	cmd := inSession(&cobra.Command{
		Use:   "variants <alias>",
		Short: "Makes WebP variants that are missing or stale",
		Long: `Makes WebP variants that are missing or stale, for the pictures of an alias that
has webp on: "content", or "img/content" as in its addresses. Stale is a variant
that is older than its picture.

It works beside a running Caddy, in the limits that the configuration sets for
pictures, and can be run again after an interruption.

With --json there is one line for each picture but those whose variants are
current, and a last one with the totals.`,
		Args: needs(1, 1, "<alias>"),
	}, m.run)
	cmd.Flags().BoolVar(&m.all, "all", false, "Make also the variants that are current, after a change of quality for instance")
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

// variantTotals is the last line of the JSON.
type variantTotals struct {
	Alias    string `json:"alias"`
	DryRun   bool   `json:"dry_run"`
	Pictures int    `json:"pictures"`
	Current  int    `json:"current"`
	// Made counts Larger as well; in a dry run both are what would be made.
	Made   int `json:"made"`
	Larger int `json:"larger"`
	None   int `json:"none"`
	Failed int `json:"failed"`
	// Complete reports that no picture was left out; Stopped is the reason if some were.
	Complete bool   `json:"complete"`
	Stopped  string `json:"stopped,omitempty"`
}

// variantResult is a line of the JSON.
type variantResult struct {
	Filename string              `json:"filename"`
	Before   ingest.VariantState `json:"before,omitempty"`
	// Result is "made", "larger", "none" or "failed"; empty in a dry run.
	Result  string `json:"result,omitempty"`
	Size    int64  `json:"size,omitempty"`
	Message string `json:"message,omitempty"`
	Reason  string `json:"reason,omitempty"` // in plain words, if it is known
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

// pictureAlias returns an image alias that has variants.
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
	case alias.WebP == nil:
		return nil, fmt.Errorf("the image alias %q has no variants: switch webp on in its configuration first", plain)
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
		if filename := m.alias.Filename(info.Key); m.alias.MayHaveVariant(filename) {
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

// one makes the variant of a picture if necessary. An error ends the run.
func (m *makingVariants) one(ctx context.Context, filename string) error {
	before, err := m.alias.VariantState(ctx, filename)
	done := ingest.Renewed{Before: before}
	if err == nil && (m.all || before != ingest.VariantCurrent) && !m.totals.DryRun {
		done, err = m.renew(ctx, filename)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, fs.ErrNotExist):
		return nil // deleted meanwhile
	case errors.Is(err, variant.ErrNone):
		return m.none(filename, done, err)
	case err != nil:
		return m.failed(ctx, filename, done, err)
	}
	return m.settled(filename, done)
}

func (m *makingVariants) renew(ctx context.Context, filename string) (ingest.Renewed, error) {
	if err := m.workers.Acquire(ctx, 1); err != nil {
		return ingest.Renewed{}, err
	}
	defer m.workers.Release(1)
	for {
		done, err := m.App.Service().Uploader().Renew(ctx, m.alias, filename, m.all)
		if !errors.Is(err, variant.ErrBusy) || ctx.Err() != nil {
			return done, err
		} // it has waited in vain for memory that the others take
	}
}

// tally updates the totals.
func (m *makingVariants) tally(change func(*variantTotals)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.totals.Pictures++
	change(&m.totals)
}

func (m *makingVariants) settled(filename string, done ingest.Renewed) error {
	wanted := m.totals.DryRun && (m.all || done.Before != ingest.VariantCurrent)
	m.tally(func(t *variantTotals) {
		switch {
		case done.Result == "" && !wanted:
			t.Current++
			return
		case done.Result == ingest.VariantLarger:
			t.Larger++
		}
		t.Made++
	})
	if wanted {
		m.sayf("%s: %s", filename, done.Before)
	}
	if done.Result == "" && !wanted {
		return nil
	}
	return m.document(variantResult{Filename: filename, Before: done.Before, Result: string(done.Result), Size: done.Size})
}

func (m *makingVariants) none(filename string, done ingest.Renewed, err error) error {
	m.tally(func(t *variantTotals) { t.None++ })
	m.sayf("%s: none can be made: %s", filename, m.text(err))
	return m.document(variantResult{Filename: filename, Before: done.Before, Result: string(done.Result), Message: m.text(err)})
}

// failed reports a picture whose variant could not be made. It returns an error, which ends the
// run, if the storage cannot be reached at all.
func (m *makingVariants) failed(ctx context.Context, filename string, done ingest.Renewed, err error) error {
	m.tally(func(t *variantTotals) { t.Failed++ })
	m.failf("%s: %v", filename, m.explain(err))
	document := m.document(variantResult{Filename: filename, Before: done.Before, Result: "failed", Message: m.text(err), Reason: m.reasonOf(err)})
	if errors.Is(err, storagedrivers.ErrUnavailable) {
		return errors.Join(document, m.alias.Storage.Check(ctx))
	}
	return document
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
		row("pictures", t.Pictures), row("variants "+verb, t.Made), row("of them larger than their pictures", t.Larger),
		row("current", t.Current), row("cannot be made", t.None), row("failed", t.Failed),
	})
	switch {
	case err != nil:
		return err
	case stopped != nil:
		m.failf("Stopped: %v\nThe same command goes on from here.", m.explain(stopped))
	case t.Failed == 0:
		return nil
	}
	return errReported
}
