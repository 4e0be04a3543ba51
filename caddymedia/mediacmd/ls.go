package mediacmd

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/mediaapp"
	"github.com/caddymedia/media/storagedrivers"
)

func lsCommand() *cobra.Command {
	var l listing
	cmd := inSession(&cobra.Command{
		Use:   "ls [<storage or alias>[/<folder>]]",
		Short: "Lists objects with their sizes and times",
		Long: `Lists the objects and folders in a storage or an alias, or in a folder of it. An
alias is img/<name> or file/<name>. Without an argument it lists the storages
and the aliases. WebP variants are objects of their own here.

With --json there is one line for each, with its size in bytes.`,
		Example: `  caddy media ls
  caddy media ls img/content
  caddy media ls default/img/content/26-11 --recursive`,
		Args: needs(0, 1, "at most one <storage or alias>[/<folder>]"),
	}, l.run)
	cmd.Flags().BoolVarP(&l.recursive, "recursive", "r", false, "List the objects in all folders below")
	return cmd
}

// listing is a run of the command.
type listing struct {
	*session
	recursive bool
}

// listed is an object or a folder, a line of the JSON.
type listed struct {
	// Path is an argument of this command and of others; that of a folder ends with a slash.
	Path     string    `json:"path"`
	Folder   bool      `json:"folder"`
	Size     int64     `json:"size"` // in bytes; 0 for a folder
	Modified time.Time `json:"modified,omitzero"`
}

// run runs `caddy media ls`.
func (l *listing) run(ctx context.Context, s *session, args []string) error {
	l.session = s
	if len(args) == 0 {
		return l.roots()
	}
	t, err := s.target(args[0])
	if err != nil {
		return err
	}
	found := false
	opts := storagedrivers.ListOptions{Prefix: t.folder(), Shallow: !l.recursive}
	for {
		page, err := t.storage.List(ctx, opts)
		if err != nil {
			return s.explain(err)
		}
		found = found || len(page.Objects)+len(page.Folders) > 0
		if err := l.show(t, t.folder(), page); err != nil {
			return err
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			break
		}
	}
	if found || t.path == "" {
		return nil
	}
	info, err := s.object(ctx, t)
	if err != nil {
		return err
	}
	folder, _ := path.Split(info.Key)
	return l.show(t, folder, storagedrivers.Page{Objects: []storagedrivers.Info{info}})
}

// object returns the object that a target is.
func (s *session) object(ctx context.Context, t target) (storagedrivers.Info, error) {
	info, err := t.storage.Stat(ctx, t.key())
	if isMissing(err) {
		err = fmt.Errorf("there is no object or folder %s: %w", t, fs.ErrNotExist)
	}
	return info, s.explain(err)
}

// show prints a page, in the byte order of keys. The names are relative to folder.
func (l *listing) show(t target, folder string, page storagedrivers.Page) error {
	entries := make([]listed, 0, len(page.Objects)+len(page.Folders))
	for _, key := range page.Folders {
		entries = append(entries, listed{Path: key, Folder: true})
	}
	for _, info := range page.Objects {
		entries = append(entries, listed{Path: info.Key, Size: info.Size, Modified: info.ModTime})
	}
	slices.SortFunc(entries, func(a, b listed) int { return strings.Compare(a.Path, b.Path) })
	var lines strings.Builder
	for _, entry := range entries {
		size, modified := "-", "-"
		if !entry.Folder {
			size, modified = humanize.IBytes(uint64(max(0, entry.Size))), entry.Modified.Local().Format(time.DateTime)
		}
		fmt.Fprintf(&lines, "%8s  %-19s  %s\n", size, modified, strings.TrimPrefix(entry.Path, folder))
		entry.Path = t.shown(entry.Path)
		if err := l.document(entry); err != nil {
			return err
		}
	}
	if lines.Len() > 0 {
		l.sayf("%s", strings.TrimSuffix(lines.String(), "\n"))
	}
	return nil
}

// roots lists the storages and the aliases.
func (l *listing) roots() error {
	type root struct {
		Path    string `json:"path"`
		Driver  string `json:"driver,omitempty"`  // of a storage
		Storage string `json:"storage,omitempty"` // of an alias
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(l.App.Storages)) {
		r := root{Path: name, Driver: mediaapp.DriverName(l.App.Driver(name))}
		rows = append(rows, []string{r.Path, "storage (" + r.Driver + ")"})
		if err := l.document(r); err != nil {
			return err
		}
	}
	for _, alias := range l.App.Service().Aliases() {
		r := root{Path: string(alias.Kind) + "/" + alias.Name, Storage: alias.Storage.Name()}
		rows = append(rows, []string{r.Path, "alias in " + r.Storage})
		if err := l.document(r); err != nil {
			return err
		}
	}
	return l.table(rows)
}
