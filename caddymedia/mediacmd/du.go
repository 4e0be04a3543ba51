package mediacmd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

func duCommand() *cobra.Command {
	u := usage{depth: 1}
	cmd := inSession(&cobra.Command{
		Use:   "du <storage or alias>[/<folder>]",
		Short: "Counts objects and their bytes by folder",
		Long: `Counts the objects in a storage or an alias, or in a folder of it, and their
bytes: for each folder, and in total. An alias is img/<name> or file/<name>.

With --json there is one line for each folder, and a last one with the total.`,
		Example: `  caddy media du default
  caddy media du img/content --depth 2`,
		Args: needs(1, 1, "<storage or alias>[/<folder>]"),
	}, u.run)
	cmd.Flags().IntVarP(&u.depth, "depth", "d", u.depth, "How many levels of folders are shown; 0 shows the total only")
	return cmd
}

// usage is a run of the command.
type usage struct {
	*session
	depth  int
	target target
	// open are the total and the folders of the present object. All objects of a folder follow each
	// other.
	open []usedFolder
}

// usedFolder is a line of the JSON.
type usedFolder struct {
	Path    string `json:"path"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"`
	Total   bool   `json:"total,omitempty"`

	prefix string // of its keys
}

// run runs `caddy media du`.
func (u *usage) run(ctx context.Context, s *session, args []string) error {
	u.session = s
	if u.depth < 0 {
		return errors.New("--depth is 0 or more")
	}
	var err error
	if u.target, err = s.target(args[0]); err != nil {
		return err
	}
	folder := u.target.folder()
	u.open = []usedFolder{{Path: u.target.String(), Total: true, prefix: folder}}
	bars := s.progress()
	defer bars.close()
	counted := bars.items("objects")
	for info, err := range u.target.storage.All(ctx, folder) {
		if err != nil {
			return s.explain(err)
		}
		if err := u.add(info.Key, info.Size); err != nil {
			return err
		}
		counted.add(1)
	}
	if u.open[0].Objects == 0 && u.target.path != "" {
		info, err := s.object(ctx, u.target)
		if err != nil {
			return err
		}
		u.open[0].Objects, u.open[0].Bytes = 1, info.Size
	}
	bars.close()
	return u.close("")
}

// add counts an object, and prints the folders that end before it.
func (u *usage) add(key string, size int64) error {
	if err := u.close(key); err != nil {
		return err
	}
	for len(u.open) <= u.depth {
		prefix := u.open[len(u.open)-1].prefix
		name, _, below := strings.Cut(key[len(prefix):], "/")
		if !below {
			break
		}
		prefix += name + "/"
		u.open = append(u.open, usedFolder{Path: u.target.shown(prefix), prefix: prefix})
	}
	for i := range u.open {
		u.open[i].Objects++
		u.open[i].Bytes += size
	}
	return nil
}

// close prints the folders that do not contain key. Without a key these are all, with the total.
func (u *usage) close(key string) error {
	for n, folder := range slices.Backward(u.open) {
		if key != "" && strings.HasPrefix(key, folder.prefix) {
			return nil
		}
		u.open = u.open[:n]
		name := strings.TrimPrefix(folder.prefix, u.target.folder())
		if folder.Total {
			name = "total of " + folder.Path
		}
		u.sayf("%9s objects  %8s  %s", humanize.Comma(folder.Objects), humanize.IBytes(uint64(max(0, folder.Bytes))), name)
		if err := u.document(folder); err != nil {
			return err
		}
	}
	return nil
}
