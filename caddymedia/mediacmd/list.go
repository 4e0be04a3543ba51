package mediacmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/storagedrivers"
)

// target is all of a storage or of an alias, or a folder or an object in it.
type target struct {
	storage *storagedrivers.Storage
	// root is the storage ("default") or the alias ("img/content") as on the command line, and
	// prefix is the beginning of the keys of all its objects.
	root, prefix string
	// path is relative to root, without a slash at the end; empty for all of it.
	path string
}

// target returns the target of an argument, "img/content/26-11/21" for instance. An alias goes
// before a storage that is called img or file.
func (s *session) target(arg string) (target, error) {
	root, path, _ := strings.Cut(arg, "/")
	name, rest, _ := strings.Cut(path, "/")
	var t target
	if alias, ok := s.App.Service().Alias(aliases.Kind(root), name); ok {
		t = target{alias.Storage, root + "/" + name, alias.Key(""), rest}
	} else if storage, ok := s.App.Service().Storage(root); ok {
		t = target{storage, root, "", path}
	} else {
		return t, fmt.Errorf("there is no storage %q in the configuration, nor is %q an alias (img/<name> or file/<name>)", root, arg)
	}
	if t.path = strings.TrimSuffix(t.path, "/"); t.path == "" {
		return t, nil
	}
	if err := storagedrivers.ValidKey(t.key()); err != nil {
		return t, fmt.Errorf("%s: %w", arg, err)
	}
	return t, nil
}

// String returns the target as on the command line.
func (t target) String() string { return strings.TrimSuffix(t.root+"/"+t.path, "/") }

// key returns the key of the target as an object.
func (t target) key() string { return t.prefix + t.path }

// folder returns the beginning of the keys of the objects in the target.
func (t target) folder() string {
	if t.path == "" {
		return t.prefix
	}
	return t.key() + "/"
}

// shown returns a key, or the beginning of one, as on the command line.
func (t target) shown(key string) string { return t.root + "/" + strings.TrimPrefix(key, t.prefix) }

// entry is an object or a folder, a line of the JSON of ls.
type entry struct {
	// Path is an argument of the commands; that of a folder ends with a slash.
	Path     string    `json:"path"`
	Folder   bool      `json:"folder"`
	Size     int64     `json:"size"` // in bytes; 0 for a folder
	Modified time.Time `json:"modified,omitzero"`

	info storagedrivers.Info // of an object
	name string              // relative to the listed folder
}

var errNoTarget = errors.New("there is no such object or folder")

// walk calls f for every object of a target, in the byte order of the keys. A shallow walk calls it
// for folders instead of the objects in them. f returns an error to end the walk.
func (s *session) walk(ctx context.Context, t target, shallow bool, f func(entry) error) error {
	found := false
	opts := storagedrivers.ListOptions{Prefix: t.folder(), Shallow: shallow}
	for more := true; more; more = opts.Cursor != "" {
		page, err := t.storage.List(ctx, opts)
		if err != nil {
			return err
		}
		entries := make([]entry, 0, len(page.Objects)+len(page.Folders))
		for _, key := range page.Folders {
			entries = append(entries, entry{Path: t.shown(key), Folder: true, name: key[len(opts.Prefix):]})
		}
		for _, info := range page.Objects {
			entries = append(entries, t.entry(info, opts.Prefix))
		}
		slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
		for _, e := range entries {
			if err := f(e); err != nil {
				return err
			}
		}
		found = found || len(entries) > 0
		opts.Cursor = page.Next
	}
	if found || t.path == "" {
		return nil
	}
	info, err := t.storage.Stat(ctx, t.key())
	switch {
	case isMissing(err):
		return errNoTarget
	case err != nil:
		return err
	}
	folder, _ := path.Split(info.Key)
	return f(t.entry(info, folder))
}

func (t target) entry(info storagedrivers.Info, folder string) entry {
	return entry{
		Path: t.shown(info.Key), Size: info.Size, Modified: info.ModTime, info: info, name: strings.TrimPrefix(info.Key, folder),
	}
}

func lsCommand() *cobra.Command {
	var recursive bool
	cmd := inSession(&cobra.Command{
		Use:   "ls [<storage or alias>[/<folder>]]",
		Short: "List objects with their sizes and times",
		Long: `List the objects and folders in a storage or an alias, or in one of its folders.
An alias is img/<name> or file/<name>. Without an argument the command lists the
storages and the aliases. WebP variants are listed like other objects.

With --json there is one line for each, with the size in bytes.`,
		Example: `  caddy media ls
  caddy media ls img/content
  caddy media ls default/img/content/26-11 --recursive`,
		Args: needs(0, 1, "at most one <storage or alias>[/<folder>]"),
	}, func(ctx context.Context, s *session, args []string) error {
		if len(args) == 0 {
			return s.listRoots()
		}
		t, err := s.target(args[0])
		if err != nil {
			return err
		}
		return s.targetError(t, s.walk(ctx, t, !recursive, func(e entry) error {
			size, modified := "-", "-"
			if !e.Folder {
				size, modified = bytesText(e.Size), e.Modified.Local().Format(time.DateTime)
			}
			s.sayf("%8s  %-19s  %s", size, modified, e.name)
			return s.document(e)
		}))
	})
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "List the objects in all folders below")
	return cmd
}

// targetError returns an error with the name of its target and its reason, and nil for nil.
func (s *session) targetError(t target, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", t, s.explain(err))
}

// listRoots lists the storages and the aliases.
func (s *session) listRoots() error {
	type root struct {
		Path    string `json:"path"`
		Driver  string `json:"driver,omitempty"`  // of a storage
		Storage string `json:"storage,omitempty"` // of an alias
	}
	var rows [][]string
	show := func(r root, what string) error {
		rows = append(rows, []string{r.Path, what})
		return s.document(r)
	}
	for _, name := range slices.Sorted(maps.Keys(s.App.Storages)) {
		driver := s.App.Driver(name).Name()
		if err := show(root{Path: name, Driver: driver}, "storage ("+driver+")"); err != nil {
			return err
		}
	}
	for _, alias := range s.App.Service().Aliases() {
		storage := alias.Storage.Name()
		if err := show(root{Path: string(alias.Kind) + "/" + alias.Name, Storage: storage}, "alias in "+storage); err != nil {
			return err
		}
	}
	return s.table(rows)
}

func duCommand() *cobra.Command {
	depth := 1
	cmd := inSession(&cobra.Command{
		Use:   "du <storage or alias>[/<folder>]",
		Short: "Count objects and their bytes by folder",
		Long: `Count the objects in a storage or an alias, or in one of its folders, and their
bytes: for each folder, and in total. An alias is img/<name> or file/<name>.

With --json there is one line for each folder, and a last one with the total.`,
		Example: `  caddy media du default
  caddy media du img/content --depth 2`,
		Args: needs(1, 1, "<storage or alias>[/<folder>]"),
	}, func(ctx context.Context, s *session, args []string) error {
		if depth < 0 {
			return errors.New("--depth must be 0 or more")
		}
		t, err := s.target(args[0])
		if err != nil {
			return err
		}
		u := usage{session: s, depth: depth, target: t, open: []usedFolder{{Path: t.String(), Total: true}}}
		return u.run(ctx)
	})
	cmd.Flags().IntVarP(&depth, "depth", "d", depth, "Number of levels of folders to show; 0 for the total only")
	return cmd
}

// usage is a run of du.
type usage struct {
	*session
	depth  int
	target target
	// open are the total and the folders of the current object. All objects of a folder follow each
	// other.
	open []usedFolder
}

// usedFolder is a line of the JSON.
type usedFolder struct {
	Path    string `json:"path"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
	Total   bool   `json:"total,omitempty"`

	name string // relative to the target, with a slash at the end; empty for the total
}

func (u *usage) run(ctx context.Context) error {
	bars := u.progress()
	defer bars.close()
	counted := bars.items("objects")
	err := u.walk(ctx, u.target, false, func(e entry) error {
		counted.add(1)
		return u.add(e.name, e.Size)
	})
	if err != nil {
		return u.targetError(u.target, err)
	}
	bars.close()
	return u.close("")
}

// add counts an object, and prints the folders that end before it.
func (u *usage) add(name string, size int64) error {
	if err := u.close(name); err != nil {
		return err
	}
	for len(u.open) <= u.depth {
		folder := u.open[len(u.open)-1].name
		next, _, below := strings.Cut(name[len(folder):], "/")
		if !below {
			break
		}
		folder += next + "/"
		u.open = append(u.open, usedFolder{Path: u.target.shown(u.target.folder() + folder), name: folder})
	}
	for i := range u.open {
		u.open[i].Objects++
		u.open[i].Bytes += size
	}
	return nil
}

// close prints the folders that do not contain an object. Without a name these are all, with the
// total.
func (u *usage) close(name string) error {
	for n, folder := range slices.Backward(u.open) {
		if name != "" && strings.HasPrefix(name, folder.name) {
			return nil
		}
		u.open = u.open[:n]
		shown := folder.name
		if folder.Total {
			shown = "total of " + folder.Path
		}
		u.sayf("%9s objects  %8s  %s", humanize.Comma(folder.Objects), bytesText(folder.Bytes), shown)
		if err := u.document(folder); err != nil {
			return err
		}
	}
	return nil
}
