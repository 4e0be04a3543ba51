package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/caddymedia/media/storagedrivers/locks"
)

const (
	// keepFrom is the number of names from which a folder is kept. Smaller ones are read again.
	keepFrom = 1000
	// keepNames is the largest number of names in memory, about 50 MiB. A larger folder is listed in
	// parts of at least half as many.
	keepNames = 1 << 20
	// keepFolders is the largest number of folders that are kept.
	keepFolders = 16
	// keepCursors is the largest number of cursors that are kept.
	keepCursors = 1000
	// keepTime is how long names are kept after their last use.
	keepTime = 30 * time.Second
	// settleTime is longer than the steps of the clock of any file system.
	settleTime = 3 * time.Second
)

// names are the names of a folder in the order of the keys, from one name on.
type names struct {
	prefix  string      // of the keys
	folder  fs.FileInfo // when its names were read
	changed time.Time   // of the folder; zero if its names may change without it
	from    string      // the least possible name
	to      string      // the greatest possible name; empty if there is no limit
	sorted  []string    // those of folders end with a slash, so that "a-b" sorts before "a/"
}

// read reads the names of a folder from n.from on. It keeps the smallest ones if there are more than
// limit.
func (n *names) read(ctx context.Context, dir *os.File, limit int) error {
	for {
		entries, err := dir.ReadDir(keepFrom)
		for _, entry := range entries {
			name := entry.Name()
			if entry.IsDir() {
				name += "/"
			}
			if name >= n.from && (n.to == "" || name <= n.to) {
				n.sorted = append(n.sorted, name)
			}
		}
		last := errors.Is(err, io.EOF)
		if last || len(n.sorted) >= limit {
			slices.Sort(n.sorted)
			n.sorted = slices.Compact(n.sorted) // some file systems repeat names that change meanwhile
		}
		if len(n.sorted) >= limit {
			n.sorted = slices.Delete(n.sorted, limit/2, len(n.sorted))
			n.to = n.sorted[len(n.sorted)-1]
		}
		if last {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
}

// has reports whether n has the names of a folder from one name on.
func (n *names) has(prefix, from string) bool {
	return n.prefix == prefix && n.from <= from && (n.to == "" || from <= n.to)
}

// nameCache keeps the names of the large folders that were listed last.
type nameCache struct {
	least, most int         // [keepFrom] and [keepNames]; tests have others
	reading     locks.Names // of a folder, by prefix

	mu      sync.Mutex
	names   []*names        // the last used first
	cursors map[string]bool // at which listings go on
	timer   *time.Timer
}

// takeCursor reports whether a listing goes on at a cursor. Each cursor is good for one call, so that
// a page that is listed again has the latest names.
func (c *nameCache) takeCursor(cursor string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	goesOn := c.cursors[cursor]
	delete(c.cursors, cursor)
	return goesOn
}

// addCursor records where a listing goes on that has read the folders of the cursor.
func (c *nameCache) addCursor(cursor string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cursor == "" || len(c.names) == 0 {
		return
	}
	if len(c.cursors) >= keepCursors || c.cursors == nil {
		c.cursors = map[string]bool{}
	}
	c.cursors[cursor] = true
}

// find returns the names of a folder from one name on; nil if they are not kept.
func (c *nameCache) find(prefix, from string) *names {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.names, func(n *names) bool { return n.has(prefix, from) })
	if i < 0 {
		return nil
	}
	found := c.names[i]
	c.insert(slices.Delete(c.names, i, i+1), found)
	return found
}

// add keeps names in place of earlier ones of their folder.
func (c *nameCache) add(n *names) {
	c.mu.Lock()
	defer c.mu.Unlock()
	others := slices.DeleteFunc(c.names, func(o *names) bool { return o.prefix == n.prefix })
	if c.names = others; len(n.sorted) >= c.least {
		c.insert(others, n)
	}
}

// insert keeps n before others, and as many of these as the limits allow. c.mu must be held.
func (c *nameCache) insert(others []*names, n *names) {
	c.names = slices.Insert(others, 0, n)
	total := 0
	for i, kept := range c.names {
		if total += len(kept.sorted); i == keepFolders || i > 0 && total > c.most {
			c.names = slices.Delete(c.names, i, len(c.names))
			break
		}
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(keepTime, c.clear)
	}
	c.timer.Reset(keepTime)
}

// clear releases all names.
func (c *nameCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names, c.cursors = nil, nil
}

// close releases all names for good.
func (c *nameCache) close() {
	if c.clear(); c.timer != nil {
		c.timer.Stop()
	}
}
