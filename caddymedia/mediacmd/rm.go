package mediacmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/storagedrivers"
)

func rmCommand() *cobra.Command {
	var r removing
	cmd := inSession(&cobra.Command{
		Use:   "rm <storage or alias>/<name>...",
		Short: "Remove items with their variants, or other objects",
		Long: `Remove items with their WebP variants and renditions, or other objects of a
storage. An alias is img/<name> or file/<name>. The command asks before it
removes anything, unless --yes is given, which is required without a terminal.
Removed items cannot be restored.

The running Caddy removes its items itself, as in the panel: with events and
lines in the audit log. With --config the command removes them, without events
and audit log.

With --json there is one line for each item, and a last one with the totals.`,
		Example: `  caddy media rm img/content/26-11/21/photo.jpg
  caddy media rm --recursive --dry-run img/content/26-11`,
		Args: needs(1, maxArguments, "at least one <storage or alias>/<name>"),
	}, r.run)
	flags := cmd.Flags()
	flags.BoolVarP(&r.recursive, "recursive", "r", false, "Remove folders with everything in them")
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
	Items   int64 `json:"items"` // variants are parts of their images
	Bytes   int64 `json:"bytes"` // with the variants
	Removed int64 `json:"removed"`
	Failed  int64 `json:"failed"`
}

// removeResult is a line of the JSON.
type removeResult struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	Removed bool   `json:"removed"`
	failure
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
		var group errgroup.Group
		group.SetLimit(s.parallel(removers, t.storage))
		err := r.each(ctx, t, func(found removable) error {
			group.Go(func() error { return r.remove(ctx, t, found) })
			return ctx.Err()
		})
		if failed := group.Wait(); failed != nil && ctx.Err() == nil {
			return failed
		}
		if err != nil && ctx.Err() == nil {
			err = r.add(removeResult{Path: t.String()}, err)
		}
		if err != nil {
			break
		}
	}
	return r.report(ctx)
}

// removable is an item, or an object that is none.
type removable struct {
	entry

	alias *aliases.Alias // nil: no item
	// variant reports that the object is a variant without an image.
	variant bool
	// paired reports that the object is the variant of an image that is removed as well.
	paired bool
}

// each calls f for every object of a target.
func (r *removing) each(ctx context.Context, t target, f func(removable) error) error {
	aliasOf := r.aliasOf(t.storage.Name(), t.storage.Name())
	// images are the preceding ones whose keys the current key begins with. All keys between an
	// image and its variant begin with the key of the image.
	var images []string
	each := func(e entry) error {
		key := e.info.Key
		if !r.recursive && key != t.key() {
			return errors.New("it is a folder: --recursive removes everything in it")
		}
		found := removable{entry: e, alias: aliasOf(key)}
		for len(images) > 0 && !strings.HasPrefix(key, images[len(images)-1]) {
			images = images[:len(images)-1]
		}
		if found.alias != nil && found.alias.IsVariant(found.alias.Filename(key)) {
			found.paired = slices.Contains(images, strings.TrimSuffix(key, render.Suffix))
			found.variant = !found.paired
		}
		images = append(images, key)
		return f(found)
	}
	if t.path != "" {
		info, err := t.storage.Stat(ctx, t.key())
		if err == nil {
			return each(t.entry(info, ""))
		}
		if !isMissing(err) {
			return err
		}
	}
	return r.walk(ctx, t, false, each)
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
			return r.targetError(t, err)
		}
	}
	if items == 0 {
		return nil
	}
	what := fmt.Sprintf("%s items (%s) of %s", humanize.Comma(items), bytesText(bytes), targets[0])
	if items == 1 {
		what = fmt.Sprintf("%s (%s)", targets[0], bytesText(bytes))
	}
	if len(targets) > 1 {
		what += fmt.Sprintf(" and %d more", len(targets)-1)
	}
	return r.confirm(ctx, "Remove "+what+"?")
}

// remove removes an object. It prints failures and returns an error only if printing fails, or if it
// is interrupted.
func (r *removing) remove(ctx context.Context, t target, found removable) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if found.paired {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.totals.Bytes += found.Size
		return nil
	}
	result := removeResult{Path: found.Path, Size: found.Size}
	switch {
	case r.totals.DryRun:
	case found.variant:
		result.Removed, err = r.App.Service().Uploader().Derived.RemoveOrphan(ctx, found.alias, found.info)
		if err == nil && !result.Removed {
			err = errors.New("it is the variant of an image: remove the image")
		}
	case found.alias != nil:
		err = r.removeItem(ctx, found.alias, found.alias.Filename(found.info.Key))
		result.Removed = err == nil
	default:
		err = t.storage.Delete(ctx, found.info.Key)
		result.Removed = err == nil
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return r.add(result, err)
}

// removeItem removes an item and its variant. If the configuration is that of a running Caddy, that
// process does it: it writes its audit log, emits its events and locks the name against its uploads.
func (r *removing) removeItem(ctx context.Context, alias *aliases.Alias, filename string) error {
	if r.running == "" {
		return r.App.Service().Uploader().Delete(ctx, alias, filename, aliases.Actor{Origin: aliases.OriginAdmin})
	}
	address := url.URL{Path: "/media/items/" + string(alias.Kind) + "/" + alias.Name + "/" + filename}
	return askRunning(r.running, http.MethodDelete, address.EscapedPath(), nil)
}

// askRunning asks the API for administrators of the running Caddy, and decodes its answer into a value,
// unless that is nil.
func askRunning(address, method, path string, into any) error {
	answer, err := caddycmd.AdminAPIRequest(address, method, path,
		http.Header{"Connection": {"close"}}, nil) // otherwise each request leaves a connection open
	if err == nil {
		if into != nil {
			err = json.NewDecoder(answer.Body).Decode(into)
		}
		return errors.Join(err, answer.Body.Close())
	}
	// The error ends with the answer, whose message is for users.
	var refusal struct{ Error string }
	if _, document, ok := strings.Cut(err.Error(), "{"); ok && json.Unmarshal([]byte("{"+document), &refusal) == nil && refusal.Error != "" {
		err = errors.New(refusal.Error)
	}
	return fmt.Errorf("asking the running Caddy: %w", err)
}

// add prints and counts a result, or a failure if err is not nil.
func (r *removing) add(result removeResult, err error) error {
	r.mu.Lock()
	r.totals.Items++
	r.totals.Bytes += result.Size
	if result.Removed {
		r.totals.Removed++
	}
	if err != nil {
		r.totals.Failed++
	}
	r.mu.Unlock()
	switch {
	case err != nil:
		result.failure = r.fail(result.Path, err)
	case result.Removed:
		r.sayf("%s: removed", result.Path)
	default:
		r.sayf("%s: would be removed, %s", result.Path, bytesText(result.Size))
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
		r.sayf("%s items, %s; nothing was removed", humanize.Comma(t.Items), bytesText(t.Bytes))
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
