package mediacmd

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// filesIn returns the paths of the files below root.
func filesIn(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRenditionFolders: a sweep removes, and a copy leaves out, what lies in the folder of renditions
// of an alias. Items of other aliases may have similar keys.
func TestRenditionFolders(t *testing.T) { // not parallel: Caddy has globals
	for _, c := range []struct {
		name          string
		aliases       map[string][2]string // storage and prefix
		keys          []string             // in storage a
		swept, copied []string
	}{
		{
			name:    "of the aliases",
			aliases: map[string][2]string{"here": {"a", "img/here"}, "switched": {"b", "img/switched"}, "far": {"c", "img/far"}},
			keys: []string{
				"img/far@renditions/1/x.png/y.webp", "img/here/z.png", "img/here@renditions/1/x.png/y.webp",
				"img/other@renditions/1/x.png/y.webp", "img/switched@renditions/1/x.png/y.webp",
			},
			swept:  []string{"img/here@renditions/1/x.png/y.webp"},
			copied: []string{"img/far@renditions/1/x.png/y.webp", "img/here/z.png", "img/other@renditions/1/x.png/y.webp"},
		},
		{
			name:    "items at the root",
			aliases: map[string][2]string{"root": {"a", "/"}, "switched": {"b", "img"}},
			keys:    []string{"@renditions/1/x/a.png", "img@renditions/1/x/a.png"},
			copied:  []string{"@renditions/1/x/a.png", "img@renditions/1/x/a.png"},
		},
		{
			name:    "items in a folder",
			aliases: map[string][2]string{"outer": {"a", "img"}, "switched": {"b", "img/x"}},
			keys:    []string{"img/x@renditions/1/x/a.png", "img@renditions/1/x/a.png"},
			swept:   []string{"img@renditions/1/x/a.png"},
			copied:  []string{"img/x@renditions/1/x/a.png"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			images := map[string]any{}
			for name, alias := range c.aliases {
				images[name] = map[string]string{"storage": alias[0], "prefix": alias[1]}
			}
			config := configFile(t, folder, []string{"a", "b", "c"}, map[string]any{"image_aliases": images})
			a, b := filepath.Join(folder, "a"), filepath.Join(folder, "b")
			stored(t, a, c.keys...)
			if _, messages, err := run(t, copyCommand(), "a", "b", "--config", config); err != nil {
				t.Fatal(err, messages)
			}
			if got := filesIn(t, b); !slices.Equal(got, c.copied) {
				t.Errorf("copied %q, want %q", got, c.copied)
			}
			out, messages, err := run(t, sweepCommand(), "a", "--delete", "--older-than", "0s", "--config", config)
			if err != nil {
				t.Fatal(err, messages)
			}
			kept := slices.DeleteFunc(slices.Clone(c.keys), func(key string) bool { return slices.Contains(c.swept, key) })
			if got := filesIn(t, a); !slices.Equal(got, kept) || strings.Count(out, "  removed") != len(c.swept) {
				t.Errorf("the sweep leaves %q, want %q; it printed %q", got, kept, out)
			}
		})
	}
}
