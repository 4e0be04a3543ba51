package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/caddymedia/media/caddymedia/ingest"
	"github.com/caddymedia/media/caddymedia/naming"
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// The maximum number of objects examined for one answer to a search.
	maxLooked = 5000
	// The maximum number of listings for one answer. Some may be empty.
	maxListings = 20
)

// position is the progress of a listing: the page of the storage, and the last key examined. A
// storage's own cursors only separate its pages.
type position struct {
	Page  string `json:"p,omitempty"`
	After string `json:"a,omitempty"`
}

// String returns the position as a cursor. It is empty for the beginning and for the end.
func (p position) String() string {
	if p == (position{}) {
		return ""
	}
	raw, _ := json.Marshal(p) // of two texts
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parsePosition(cursor string) (position, error) {
	var p position
	if cursor == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		return p, failf(http.StatusBadRequest, "The cursor is not one that an earlier answer had.")
	}
	return p, nil
}

// finder collects a page of items.
type finder struct {
	alias  *ingest.Alias
	prefix string // of keys; it is empty or ends at a slash
	root   string // the same of the alias
	search string // in lower case; empty lists the folder alone
	plain  string // search as [naming.Searchable] returns it
	limit  int    // of folders and items together

	folders []string
	items   []itemAnswer
	looked  int
}

func newFinder(alias *ingest.Alias, folder, search string, limit int) *finder {
	f := &finder{
		alias: alias, search: strings.ToLower(search), plain: naming.Searchable(search), limit: limit,
		folders: []string{}, items: []itemAnswer{},
	}
	if alias.Prefix != "" {
		f.root = alias.Prefix + "/"
	}
	f.prefix = f.root
	if folder != "" {
		f.prefix += folder + "/"
	}
	return f
}

// find collects items from a position on. It returns the position of the next page, or the zero
// position after the last page.
func (f *finder) find(ctx context.Context, at position) (position, error) {
	for range maxListings {
		page, err := f.alias.Storage.List(ctx, storagedrivers.ListOptions{
			Prefix: f.prefix, Cursor: at.Page, Limit: f.ask(), Shallow: f.search == "",
		})
		if err != nil {
			return position{}, err
		}
		var full bool
		if at.After, full = f.take(page, at.After); full {
			return at, nil
		}
		if page.Next == "" {
			return position{}, nil
		}
		at.Page = page.Next
		if len(f.folders)+len(f.items) >= f.limit || f.looked >= maxLooked {
			break
		}
	}
	return at, nil
}

// ask returns the number of objects to list. It is doubled where every second object may be a
// variant.
func (f *finder) ask() int {
	if f.search != "" {
		return max(maxLooked-f.looked, 1) // the storage bounds a page
	}
	wanted := f.limit - len(f.folders) - len(f.items)
	if f.alias.WebP != nil {
		wanted *= 2
	}
	return wanted
}

// take collects the entries of a page after the key after. It returns the last key examined, and
// whether the page has more entries than fit.
func (f *finder) take(page storagedrivers.Page, after string) (last string, full bool) {
	last = after
	for _, entry := range entriesOf(page) {
		if entry.Key <= after {
			continue
		}
		if f.wants(entry.Key) {
			if len(f.folders)+len(f.items) == f.limit {
				return last, true
			}
			f.add(entry)
		}
		f.looked++
		last = entry.Key
	}
	return last, false
}

// entriesOf returns the objects and folders of a page in the byte order of their keys.
func entriesOf(page storagedrivers.Page) []storagedrivers.Info {
	entries := slices.Clone(page.Objects)
	for _, folder := range page.Folders {
		entries = append(entries, storagedrivers.Info{Key: folder})
	}
	slices.SortFunc(entries, func(a, b storagedrivers.Info) int { return strings.Compare(a.Key, b.Key) })
	return entries
}

// wants reports whether to show an object, or a folder whose key ends with a slash.
func (f *finder) wants(key string) bool {
	if f.alias.IsVariant(key) || naming.InUploadsFolder(key) {
		return false
	}
	name := path.Base(key)
	return strings.Contains(strings.ToLower(name), f.search) ||
		f.plain != "" && strings.Contains(naming.Searchable(name), f.plain)
}

func (f *finder) add(entry storagedrivers.Info) {
	if folder, ok := strings.CutSuffix(entry.Key, "/"); ok {
		f.folders = append(f.folders, strings.TrimPrefix(folder, f.prefix))
		return
	}
	f.items = append(f.items, describeItem(f.alias, strings.TrimPrefix(entry.Key, f.root), entry))
}
