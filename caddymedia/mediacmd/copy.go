package mediacmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/caddy/storagecopy"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

func copyCommand() *cobra.Command {
	var f copyFlags
	cmd := inSession(&cobra.Command{
		Use:   "copy <from> <to>",
		Short: "Copy items from one storage to another and verify them",
		Long: `Copy items and the variants of images from one storage of the configuration to
another, under the same keys, and verify each copy.

An item that is already in the destination, with the same size and a later time,
is done. Otherwise the bytes are compared. An item that differs fails, unless
--overwrite replaces it. With --checksum the bytes of all items are compared.
Nothing is ever deleted.

To continue after an interruption, or to copy items that were uploaded in the
meantime, run the command again.

With --json each failed item is a line with "key" and "error", and the last line
is the report.`,
		Example: `  caddy media copy default bucket --dry-run
  caddy media copy default bucket --alias img/content --alias file/content`,
		Args: needs(2, 2, "<from> and <to>"),
	}, f.run)
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.check() }
	flags := cmd.Flags()
	flags.StringArrayVar(&f.aliases, "alias", nil, "Copy only the items of this alias, img/<name> or file/<name> (may be repeated)")
	flags.BoolVar(&f.opts.DryRun, "dry-run", false, "Compare the two lists by size and copy nothing")
	flags.IntVar(&f.opts.Parallel, "parallel", 4, "Number of items to copy at a time")
	flags.BoolVar(&f.opts.Overwrite, "overwrite", false, "Replace items in the destination that differ")
	flags.BoolVar(&f.opts.Checksum, "checksum", false, "Compare the bytes of all items that are already in the destination")
	flags.StringVar(&f.verify, "verify", verifyChecksum, "How to verify a copy: checksum (read it back) or size")
	flags.BoolVar(&f.trash, "trash", false, "Copy what is in the trash too")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "checksum")
	return cmd
}

// maxParallel is the maximum of --parallel.
const maxParallel = 64

// Values of --verify.
const (
	verifyChecksum = "checksum"
	verifySize     = "size"
)

// copyFlags are the values of the command's flags.
type copyFlags struct {
	aliases []string
	verify  string
	trash   bool
	opts    storagecopy.Options
}

func (f *copyFlags) check() error {
	if f.verify != verifyChecksum && f.verify != verifySize {
		return fmt.Errorf("--verify %q: use checksum or size", f.verify)
	}
	if f.opts.Parallel < 1 || f.opts.Parallel > maxParallel {
		return fmt.Errorf("--parallel %d: use 1 to %d", f.opts.Parallel, maxParallel)
	}
	return nil
}

// run runs `caddy media copy`.
func (f *copyFlags) run(ctx context.Context, s *session, args []string) error {
	opts, err := s.copyOptions(f, args[0], args[1])
	if err != nil {
		return err
	}
	if err := s.checkStorages(ctx, opts); err != nil {
		return err
	}
	bars := s.copyBars(ctx, &opts)
	report, stopped := storagecopy.Run(ctx, opts)
	bars.close()
	return s.showCopy(opts, report, stopped, bars.total.Load())
}

// copyOptions returns the options of a copy.
func (s *session) copyOptions(flags *copyFlags, from, to string) (storagecopy.Options, error) {
	opts := flags.opts
	opts.ReadBack = flags.verify == verifyChecksum
	opts.Now = time.Now //nolint:forbidigo // the clock's one default
	opts.Failed = s.showFailed
	var err error
	if opts.From, err = s.storage(from); err != nil {
		return opts, err
	}
	if opts.To, err = s.storage(to); err != nil {
		return opts, err
	}
	if opts.From.Location().Overlaps(opts.To.Location()) {
		return opts, fmt.Errorf("%q and %q are the same backend, or one lies within the other", from, to)
	}
	opts.Parallel = s.parallel(opts.Parallel, opts.From, opts.To)
	aliases, err := s.aliasesOf(from, to, flags.aliases)
	if err != nil {
		return opts, err
	}
	opts.Prefixes = prefixesOf(aliases, len(flags.aliases) == 0, flags.trash)
	s.describe(&opts, from, to, flags.trash)
	return opts, nil
}

// showFailed prints an item that could not be copied.
func (s *session) showFailed(key string, err error) {
	failed := s.fail(key, err)
	_ = s.document(struct { // the standard output may be gone
		Key    string `json:"key"`
		Error  string `json:"error"`
		Reason string `json:"reason,omitempty"`
	}{key, failed.Message, failed.Reason})
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
	items, bytes := p.items("objects"), p.bytes("bytes")
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
		s.failf("Interrupted. Run the same command again to continue.")
	} else if stopped != nil {
		s.failf("Stopped: %v\nRun the same command again to continue.", s.explain(stopped))
	}
	if left := total - report.Seen(); stopped != nil && left > 0 {
		s.failf("%s of %s objects remain.", humanize.Comma(left), humanize.Comma(total))
	}
	if stopped == nil && report.Failed.Items == 0 {
		return nil
	}
	return errReported
}

func copyTable(dryRun bool, report storagecopy.Report) [][]string {
	row := func(name string, t storagecopy.Tally) []string {
		return []string{name, humanize.Comma(t.Items) + " objects", bytesText(t.Bytes)}
	}
	if dryRun {
		return [][]string{
			row("would be copied", report.Copied), row("already there with the same size", report.Present),
			row("there with another size", report.Differing),
		}
	}
	rows := [][]string{
		row("copied and verified", report.Copied), row("already there", report.Present), row("failed", report.Failed),
	}
	if report.Gone > 0 {
		rows = append(rows, []string{"deleted meanwhile", humanize.Comma(report.Gone) + " objects"})
	}
	return append(rows, []string{"time", report.Took.Round(time.Millisecond).String()})
}

// checkStorages checks that both storages can be used. Before a real run it also stores a small
// object in the destination and removes it again. This shows early whether the destination is
// writable, and whether the source is the same backend under another name.
func (s *session) checkStorages(ctx context.Context, opts storagecopy.Options) error {
	for _, storage := range []*storagedrivers.Storage{opts.From, opts.To} {
		if err := storage.Check(ctx); err != nil {
			return fmt.Errorf("storage %q cannot be used: %w", storage.Name(), s.explain(err))
		}
	}
	if opts.DryRun {
		return nil
	}
	key := "media-probe-" + rand.Text() + ".txt"
	_, err := opts.To.Put(ctx, key, strings.NewReader(key), storagedrivers.PutOptions{})
	if err != nil {
		_ = opts.To.Delete(context.WithoutCancel(ctx), key) // if its answer was lost
		return fmt.Errorf("storage %q cannot be written to: %w", opts.To.Name(), s.explain(err))
	}
	_, err = opts.From.Stat(ctx, key)
	switch {
	case err == nil:
		err = fmt.Errorf("%q and %q are the same backend", opts.From.Name(), opts.To.Name())
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	return errors.Join(err, opts.To.Delete(context.WithoutCancel(ctx), key))
}

// aliasesOf returns the aliases of names such as "img/content". Each must use one of the two
// storages: from, or to if it has been switched already.
func (s *session) aliasesOf(from, to string, names []string) ([]*item.Alias, error) {
	chosen := make([]*item.Alias, 0, len(names))
	for _, full := range names {
		alias, err := s.alias(full)
		if err != nil {
			return nil, err
		}
		if kept := alias.Storage.Name(); kept != from && kept != to {
			return nil, fmt.Errorf("the alias %s uses storage %q, not %q", full, kept, from)
		}
		chosen = append(chosen, alias)
	}
	return chosen, nil
}

// prefixesOf returns the prefixes of the keys to copy, in their order.
func prefixesOf(chosen []*item.Alias, everything, trash bool) []string {
	prefixes := make([]string, 0, len(chosen))
	for _, alias := range chosen {
		if alias.Prefix == "" {
			everything = true
		}
		prefixes = append(prefixes, alias.Prefix+"/")
		if trash && alias.HasTrashFolder() {
			prefixes = append(prefixes, alias.TrashRoot()+"/")
		}
	}
	if everything {
		return []string{""}
	}
	slices.Sort(prefixes)
	// The prefix of an alias in one storage may lie within that of an alias in the other.
	last := "\xff"
	return slices.DeleteFunc(slices.Compact(prefixes), func(prefix string) bool {
		if strings.HasPrefix(prefix, last) {
			return true
		}
		last = prefix
		return false
	})
}

// isNoItem returns a function that reports whether an object of the storage from is a part of an
// unfinished upload, or a rendition of an alias that uses one of the two storages, or in its trash
// unless that is wanted. Keys of items never are, although an alias that has been switched to the
// other storage may have its folder of renditions among them.
func (s *session) isNoItem(from, to string, trash bool) func(key string) bool {
	var items, others []string // prefixes of keys
	for _, alias := range s.App.Service().Aliases() {
		kept := alias.Storage.Name()
		if kept == from {
			items = append(items, alias.Key(""))
		}
		if kept != from && kept != to {
			continue
		}
		if alias.HasRenditionFolder() {
			others = append(others, alias.RenditionRoot()+"/")
		}
		if alias.HasTrashFolder() && !trash {
			others = append(others, alias.TrashRoot()+"/")
		}
	}
	return func(key string) bool {
		begins := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
		return naming.InUploadsFolder(key) || slices.ContainsFunc(others, begins) && !slices.ContainsFunc(items, begins)
	}
}

// describe sets the options that depend on aliases: the Cache-Control header of a key, the image of
// a variant, and the objects that are not copied: renditions are made again. It keeps what is
// replaced in the trash.
func (s *session) describe(opts *storagecopy.Options, from, to string, trash bool) {
	aliasOf := s.aliasOf(from, to)
	opts.CacheControl = func(key string) string {
		if alias := aliasOf(key); alias != nil {
			return alias.CacheControl
		}
		return ""
	}
	opts.Omits = s.isNoItem(from, to, trash)
	opts.Keep = func(ctx context.Context, there storagedrivers.Info) error {
		alias := aliasOf(there.Key)
		if alias == nil || alias.Trash == 0 || alias.IsVariant(alias.Filename(there.Key)) {
			return nil
		}
		staged, err := opts.To.StageKept(ctx, there)
		if err != nil {
			return err
		}
		_, err = opts.To.Commit(ctx, storagedrivers.Change{
			Staged: staged, Key: alias.TrashKey(alias.NewKept(there, opts.Now())), Options: storagedrivers.PutOptions{CacheControl: "no-store"},
		})
		return errors.Join(err, staged.Close())
	}
	opts.ImageOf = func(key string) string {
		if alias := aliasOf(key); alias == nil || !alias.IsVariant(alias.Filename(key)) {
			return ""
		}
		return strings.TrimSuffix(key, render.Suffix)
	}
}
