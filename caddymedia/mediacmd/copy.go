package mediacmd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/storagecopy"
)

func copyCommand() *cobra.Command {
	var f copyFlags
	cmd := inSession(&cobra.Command{
		Use:   "copy <from> <to>",
		Short: "Copies items from one storage to another and verifies them",
		Long: `Copies items, variants of pictures included, from one storage of the
configuration to another, under the same keys, and verifies each copy.

An item that is in the destination already is compared: the same is left as it
is, and one that differs is a failure unless --overwrite is given. Nothing is
ever deleted. Items may be uploaded meanwhile: what comes too late is copied by
running the command again.

What was copied is written to a journal, so that the command may be stopped or
killed at any moment and be run again: it goes on where it was.

With --json every item that could not be copied is a line with "key" and
"error", and the last line is the report.`,
		Example: `  caddy media copy default bucket --dry-run
  caddy media copy default bucket --alias img/content --alias file/content`,
		Args: needs(2, 2, "<from> and <to>"),
	}, f.run)
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.check() }
	flags := cmd.Flags()
	flags.StringArrayVar(&f.aliases, "alias", nil, "Copy the items of this alias only, img/<name> or file/<name>; may be repeated")
	flags.BoolVar(&f.dryRun, "dry-run", false, "Compare the lists of the two storages by size and copy nothing")
	flags.IntVar(&f.parallel, "parallel", 4, "How many items are copied at once")
	flags.BoolVar(&f.overwrite, "overwrite", false, "Replace what is in the destination and differs")
	flags.StringVar((*string)(&f.verify), "verify", string(storagecopy.Checksum), "How to verify a copy: checksum (it is read back) or size")
	flags.StringVar(&f.state, "state", "", "File of the journal (default: one in Caddy's data folder for these storages and aliases)")
	return cmd
}

// maxParallel is the maximum of --parallel.
const maxParallel = 64

// copyFlags are the values of the command's flags.
type copyFlags struct {
	aliases   []string
	dryRun    bool
	parallel  int
	overwrite bool
	verify    storagecopy.Verify
	state     string
}

func (f *copyFlags) check() error {
	if f.verify != storagecopy.Checksum && f.verify != storagecopy.Size {
		return fmt.Errorf("--verify %q: it is checksum or size", f.verify)
	}
	if f.parallel < 1 || f.parallel > maxParallel {
		return fmt.Errorf("--parallel %d: it is 1 to %d", f.parallel, maxParallel)
	}
	return nil
}

// run runs `caddy media copy`.
func (f *copyFlags) run(ctx context.Context, s *session, args []string) (err error) {
	opts, err := s.copyOptions(ctx, f, args[0], args[1])
	if err != nil {
		return err
	}
	if opts.Journal, err = journal(f, opts); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opts.Journal.Close()) }()
	bars := s.copyBars(ctx, &opts)
	report, stopped := storagecopy.Run(ctx, opts)
	bars.close()
	return s.showCopy(opts, report, stopped, bars.total.Load())
}

// copyOptions returns the options of a copy. It checks that both storages can be used.
func (s *session) copyOptions(ctx context.Context, flags *copyFlags, from, to string) (storagecopy.Options, error) {
	opts := storagecopy.Options{
		Overwrite: flags.overwrite, Verify: flags.verify, DryRun: flags.dryRun,
		Now:    time.Now, //nolint:forbidigo // the clock's one default
		Failed: s.showFailed,
	}
	var err error
	if opts.From, err = s.storage(from); err != nil {
		return opts, err
	}
	if opts.To, err = s.storage(to); err != nil {
		return opts, err
	}
	opts.Parallel = s.parallel(flags.parallel, opts.From, opts.To)
	aliases, err := s.aliasesOf(from, to, flags.aliases)
	if err != nil {
		return opts, err
	}
	opts.Prefixes = prefixesOf(aliases, len(flags.aliases) == 0)
	s.describe(&opts, from, to)
	if err := differentBackends(opts.From, opts.To); err != nil {
		return opts, err
	}
	return opts, s.reachable(ctx, opts)
}

// showFailed prints an item that could not be copied.
func (s *session) showFailed(key string, err error) {
	s.failf("%s: %v", key, s.explain(err))
	_ = s.document(struct { // the standard output may be gone
		Key    string `json:"key"`
		Error  string `json:"error"`
		Reason string `json:"reason,omitempty"`
	}{key, s.text(err), s.reasonOf(err)})
}

// copyBars are the progress bars of a copy.
type copyBars struct {
	*progress
	total atomic.Int64 // items, 0 until they are counted
}

// copyBars starts the progress bars. It counts the items in the background.
func (s *session) copyBars(ctx context.Context, opts *storagecopy.Options) *copyBars {
	p := &copyBars{progress: s.progress()}
	if !s.bars || opts.DryRun {
		return p
	}
	items, bytes := p.items("items"), p.bytes("bytes")
	opts.Progress = func(n, size int64) {
		items.add(n)
		bytes.add(size)
	}
	go func() {
		total, err := storagecopy.Count(ctx, *opts)
		if err == nil {
			p.total.Store(total.Items)
			items.setTotal(total.Items)
			bytes.setTotal(total.Bytes)
		}
	}()
	return p
}

// showCopy prints the report. stopped is the error that ended the copy early, or nil. total is the
// number of items, or 0 if unknown.
func (s *session) showCopy(opts storagecopy.Options, report storagecopy.Report, stopped error, total int64) error {
	interrupted := errors.Is(stopped, context.Canceled)
	document := struct {
		From   string `json:"from"`
		To     string `json:"to"`
		DryRun bool   `json:"dry_run"`
		storagecopy.Report
		Seconds  float64 `json:"seconds"`
		Complete bool    `json:"complete"`
		Stopped  string  `json:"stopped,omitempty"`
	}{
		opts.From.Name(), opts.To.Name(), opts.DryRun, report, report.Took.Seconds(), stopped == nil, s.text(stopped),
	}
	if interrupted {
		document.Stopped = "interrupted"
	}
	if err := s.document(document); err != nil {
		return err
	}
	if err := s.table(copyTable(opts.DryRun, report)); err != nil {
		return err
	}
	if interrupted {
		s.failf("Interrupted. The same command goes on from here.")
	} else if stopped != nil {
		s.failf("Stopped: %v\nThe same command goes on from here.", s.explain(stopped))
	}
	if left := total - report.Seen(); stopped != nil && left > 0 {
		s.failf("%s of %s items are left.", humanize.Comma(left), humanize.Comma(total))
	}
	if stopped == nil && report.Failed.Items == 0 {
		return nil
	}
	return errReported
}

func copyTable(dryRun bool, report storagecopy.Report) [][]string {
	row := func(name string, t storagecopy.Tally) []string {
		return []string{name, humanize.Comma(t.Items) + " items", humanize.IBytes(uint64(max(0, t.Bytes)))}
	}
	if dryRun {
		return [][]string{
			row("would be copied", report.Copied), row("already there with the same size", report.Present),
			row("copied before, by the journal", report.Skipped), row("there with another size", report.Differing),
		}
	}
	rows := [][]string{
		row("copied and verified", report.Copied), row("already there", report.Present),
		row("copied before, by the journal", report.Skipped), row("failed", report.Failed),
	}
	if report.Gone > 0 {
		rows = append(rows, []string{"deleted meanwhile", humanize.Comma(report.Gone) + " items"})
	}
	return append(rows, []string{"time", report.Took.Round(time.Millisecond).String()})
}
