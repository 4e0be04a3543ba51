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
	"github.com/caddymedia/media/storagedrivers"
)

const (
	// The most objects that one answer to a search looks at.
	maxLooked = 5000
	// The most listings that one answer takes, some of which may be empty.
	maxListings = 20
)

// position is how far a listing has come: to a page of the storage, and to the last key
// that was looked at. A storage's own cursors only stand between its pages.
type position struct {
	Page  string `json:"p,omitempty"`
	After string `json:"a,omitempty"`
}

// String gives the position as a cursor; that of the end is empty, as is that of the
// beginning.
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
	limit  int    // of folders and items together

	folders []string
	items   []itemAnswer
	looked  int
}

func newFinder(alias *ingest.Alias, folder, search string, limit int) *finder {
	f := &finder{
		alias: alias, search: strings.ToLower(search), limit: limit,
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

// find collects from a position on, and gives that of the next page; the zero one where
// there is none.
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

// ask gives how many objects to list: as many as are wanted, and twice as many where every
// other is a variant.
func (f *finder) ask() int {
	if f.search != "" {
		return min(storagedrivers.PageSize, max(maxLooked-f.looked, 1))
	}
	wanted := f.limit - len(f.folders) - len(f.items)
	if f.alias.WebP != nil {
		wanted *= 2
	}
	return wanted
}

// take collects what is on a page behind the key after. full tells that there is more on it
// than is wanted; last is then the last key that was looked at.
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

// entriesOf gives the objects and folders of a page in the byte order of their keys.
func entriesOf(page storagedrivers.Page) []storagedrivers.Info {
	entries := slices.Clone(page.Objects)
	for _, folder := range page.Folders {
		entries = append(entries, storagedrivers.Info{Key: folder})
	}
	slices.SortFunc(entries, func(a, b storagedrivers.Info) int { return strings.Compare(a.Key, b.Key) })
	return entries
}

// wants tells whether an object, or a folder that ends at a slash, is to be shown.
func (f *finder) wants(key string) bool {
	return !f.alias.IsVariant(key) && strings.Contains(strings.ToLower(path.Base(key)), f.search)
}

func (f *finder) add(entry storagedrivers.Info) {
	if folder, ok := strings.CutSuffix(entry.Key, "/"); ok {
		f.folders = append(f.folders, strings.TrimPrefix(folder, f.prefix))
		return
	}
	f.items = append(f.items, describeItem(f.alias, strings.TrimPrefix(entry.Key, f.root), entry))
}
