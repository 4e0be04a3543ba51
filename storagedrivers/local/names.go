package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/listing"
)

const (
	// keepNames is the largest number of names in memory, about 50 MiB. A larger folder is listed in
	// parts of at least half as many.
	keepNames = 1 << 20
	// firstNames is the largest number of names in memory for the first page of a folder. It needs few, and
	// sorting a million takes longer than reading them.
	firstNames = 1 << 12
	// settleTime is longer than the steps of the clock of any file system.
	settleTime = 3 * time.Second
)

// names are the names of a folder.
type names = listing.Folder[string, state]

// state is that of a folder when its names were read.
type state struct {
	folder  fs.FileInfo
	changed time.Time // zero if its names may change without it
}

// isSame reports whether the names of a folder are the same in two states.
func (s state) isSame(other state) bool {
	return os.SameFile(s.folder, other.folder) && !s.changed.IsZero() && s.changed.Equal(other.changed)
}

// readNames reads the names of a folder from n.From on. It keeps the smallest ones if there are more
// than limit.
func readNames(ctx context.Context, dir *os.File, n *names, limit int) error {
	for {
		entries, err := dir.ReadDir(listing.KeepFrom)
		for _, entry := range entries {
			name := entry.Name()
			if entry.IsDir() {
				name += "/"
			}
			if name >= n.From && (n.To == "" || name <= n.To) {
				n.Sorted = append(n.Sorted, name)
			}
		}
		last := errors.Is(err, io.EOF)
		if last || len(n.Sorted) >= limit {
			slices.Sort(n.Sorted)
			n.Sorted = slices.Compact(n.Sorted) // some file systems repeat names that change meanwhile
		}
		if len(n.Sorted) >= limit {
			n.Sorted = slices.Delete(n.Sorted, limit/2, len(n.Sorted))
			n.To = n.Sorted[len(n.Sorted)-1]
		}
		if last {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
}
