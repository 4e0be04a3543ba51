package service

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

var (
	// ErrCursor means that a cursor is not of an earlier page of the same list.
	ErrCursor = &item.Failure{Reason: item.BadRequest, Message: "the cursor is not from an earlier answer to the same request"}
	// ErrUnordered means that a list is too long for its order.
	ErrUnordered = &item.Failure{
		Reason: item.BadRequest, Message: "the list has more than 10,000 items or takes too long to read: only the order name is possible",
	}
)

// maxListings is the maximum number of listings of one folder for one page. Some may be empty.
const maxListings = 20

// ItemQuery selects a page of the items of an alias. Variants and unfinished uploads are not items.
type ItemQuery struct {
	Alias *item.Alias
	// Folder that is listed, relative to the alias; empty for its root.
	Folder string
	// Search is a part of the names, see [ItemFilter]. A search lists everything below the folder.
	Search string
	// Recursive lists everything below the folder.
	Recursive bool
	Order     Order
	// Limit is the maximum number of items and folders of a page.
	Limit int
	// MaxSize is the maximum sum of Size of the items of a page, but it has at least one item. A
	// nil Size means no maximum.
	MaxSize int
	Size    func(storagedrivers.Info) int
	// Cursor is the Next of the previous page; empty for the first page.
	Cursor string
	// MaxExamined and MaxTime bound a list of everything below a folder. A page ends early then.
	MaxExamined int
	MaxTime     time.Duration
}

// ItemPage is a page of a list of items.
type ItemPage struct {
	// Items with their keys, in the order of the query.
	Items []storagedrivers.Info
	// Variants are the keys of the variants that the page has seen.
	Variants map[string]bool
	// Folders relative to the alias.
	Folders []string
	// Next is the cursor of the next page; empty on the last.
	Next string
	// Examined is the number of objects and folders examined.
	Examined int
	// Incomplete means that the bounds of the query ended the page.
	Incomplete bool
	// Total is the number of items of all pages. It is nil in the order ByName, which does not read
	// the whole list.
	Total *int
}

// ItemFilter returns a function that reports whether a list of items shows an object, or a folder
// whose key ends with a slash: its name must contain search, without regard to case and accents.
// Variants, unfinished uploads and markers of folders are not items.
func ItemFilter(alias *item.Alias, search string) func(key string) bool {
	matches := nameFilter(search)
	return func(key string) bool {
		return !alias.IsVariant(key) && !naming.IsReserved(key) && matches(path.Base(key))
	}
}

// nameFilter returns a function that reports whether a name contains search, without regard to case
// and accents.
func nameFilter(search string) func(name string) bool {
	lower, plain := strings.ToLower(search), naming.Searchable(search)
	return func(name string) bool {
		return strings.Contains(strings.ToLower(name), lower) ||
			plain != "" && strings.Contains(naming.Searchable(name), plain)
	}
}

// ListItems returns a page of items. The error is ErrCursor, ErrUnordered or that of the storage.
func (s *Service) ListItems(ctx context.Context, q ItemQuery) (ItemPage, error) {
	f := &finder{ItemQuery: q, prefix: q.Alias.Below(q.Folder), wants: ItemFilter(q.Alias, q.Search), now: s.now()}
	f.page.Variants = map[string]bool{}
	at, err := f.start()
	if err != nil || naming.IsReserved(q.Folder) {
		return f.page, err
	}
	bounded := ctx
	if f.isDeep() && q.MaxTime > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, q.MaxTime)
		defer cancel()
	}
	if cmp.Or(q.Order, ByName) != ByName {
		page, err := f.ordered(bounded, at, s.process.ordered)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && bounded.Err() != nil {
			err = ErrUnordered
		}
		return page, err
	}
	next, err := f.find(ctx, bounded, at)
	f.page.Next = f.cursor(next)
	return f.page, err
}

// finder collects a page of items.
type finder struct {
	ItemQuery
	prefix string // of keys; it is empty or ends at a slash
	wants  func(key string) bool
	now    time.Time
	page   ItemPage
	size   int // of the items of the page
}

// isDeep reports whether the list has everything below its folder.
func (f *finder) isDeep() bool { return f.Search != "" || f.Recursive }

// position is the progress of a list: the page of the storage, and the last key of it that was
// examined. A storage's own cursors only separate its pages. In an order by time or size, Time and
// Size are those of the last item.
type position struct {
	Page  string `json:"p,omitempty"`
	After string `json:"a,omitempty"`
	Time  *int64 `json:"t,omitempty"` // in Unix nanoseconds; nil for a folder
	Size  int64  `json:"s,omitempty"` // in an order by size
}

// maxCursor is the largest cursor in bytes. A key has 1,024, and the token of a storage some
// hundred.
const maxCursor = 16 << 10

// cursor returns the position as a cursor. It is empty for the beginning and for the end.
func (f *finder) cursor(p position) string {
	if p == (position{}) {
		return ""
	}
	raw, _ := json.Marshal(p) // of texts and a number
	return base64.RawURLEncoding.EncodeToString(append(f.sum(raw), raw...))
}

// sum returns the head of a cursor: its version, and a hash of the list and the position. It
// detects cursors of other lists. It is no secret: a forged cursor reveals nothing beyond the list.
func (f *finder) sum(position []byte) []byte {
	const version = 1
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q %t %q %s", version, f.Alias.Path(), f.Folder, f.Search, f.Recursive, f.Order, position))
	return append([]byte{version}, sum[:8]...)
}

// start returns the position of the cursor, after the checks of all its fields.
func (f *finder) start() (position, error) {
	var p position
	if f.Cursor == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(f.Cursor)
	head := len(f.sum(nil))
	if err != nil || len(f.Cursor) > maxCursor || len(raw) < head || !bytes.Equal(raw[:head], f.sum(raw[head:])) {
		return p, ErrCursor
	}
	if err := json.Unmarshal(raw[head:], &p); err != nil {
		return p, ErrCursor
	}
	key := strings.TrimSuffix(p.After, "/")
	if p.After != "" && (!strings.HasPrefix(key, f.prefix) || storagedrivers.ValidKey(key) != nil) {
		return position{}, ErrCursor
	}
	return p, nil
}

// find collects items from a position on. It returns the position of the next page, or the zero
// position after the last page. bounded ends with the time of the query; the first listing may take
// longer, so that each page makes progress.
func (f *finder) find(ctx, bounded context.Context, at position) (position, error) {
	for n := 0; f.isDeep() || n < maxListings; n++ {
		page, err := f.list(ctx, at.Page, f.ask())
		switch {
		case err != nil && n > 0 && bounded.Err() != nil && errors.Is(err, context.DeadlineExceeded):
			f.page.Incomplete = true
			return at, nil
		case err != nil && n == 0 && at.Page != "" && IsOfCursor(err):
			return position{}, fmt.Errorf("%w: %w", ErrCursor, err)
		case err != nil:
			return position{}, err
		}
		ctx = bounded
		var full bool
		if at.After, full = f.take(page, at.After); full {
			return at, nil
		}
		if page.Next == "" {
			return position{}, nil
		}
		at = position{Page: page.Next} // whose names may be before those of this page
		f.page.Incomplete = f.isDeep() && (f.page.Examined >= f.MaxExamined || bounded.Err() != nil)
		if f.page.Incomplete || f.found() >= f.Limit {
			f.page.Incomplete = f.page.Incomplete && f.found() < f.Limit
			break
		}
	}
	return at, nil
}

// IsOfCursor reports whether a storage may have refused a cursor: it has answered, and access is
// not the cause.
func IsOfCursor(err error) bool {
	for _, other := range []error{
		storagedrivers.ErrUnavailable, storagedrivers.ErrClosed, storagedrivers.ErrBusy, fs.ErrPermission,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

func (f *finder) found() int { return len(f.page.Folders) + len(f.page.Items) }

func (f *finder) list(ctx context.Context, cursor string, limit int) (storagedrivers.Page, error) {
	return f.Alias.Storage.List(ctx, storagedrivers.ListOptions{
		Prefix: f.prefix, Cursor: cursor, Limit: limit, Shallow: !f.isDeep(),
	})
}

// leastPage is the least number of objects that a list of everything asks for at once, because the
// storage may be far away.
const leastPage = 100

// ask returns the number of objects to list. It is doubled where every second object may be a
// variant.
func (f *finder) ask() int {
	if f.Search != "" {
		return max(f.MaxExamined-f.page.Examined, 1) // the storage bounds a page
	}
	wanted := f.Limit - f.found()
	if f.Alias.WebP != nil {
		wanted *= 2
	}
	if f.isDeep() {
		return max(wanted, leastPage)
	}
	return wanted
}

// take collects the objects and folders of a page after the key after, in the byte order of their
// keys. It returns the last key examined, and whether the page has more entries than fit.
func (f *finder) take(page storagedrivers.Page, after string) (last string, full bool) {
	last = after
	entries := entriesOf(page)
	for _, entry := range entries {
		f.note(entry)
	}
	for _, entry := range entries {
		if entry.Key <= after {
			continue
		}
		if f.shows(entry) {
			if !f.add(entry) {
				return last, true
			}
		}
		f.page.Examined++
		last = entry.Key
	}
	return last, false
}

// entriesOf returns the objects and folders of a page, in the byte order of their keys.
func entriesOf(page storagedrivers.Page) []storagedrivers.Info {
	entries := slices.Clone(page.Objects)
	for _, folder := range page.Folders {
		entries = append(entries, storagedrivers.Info{Key: folder})
	}
	slices.SortFunc(entries, func(a, b storagedrivers.Info) int { return strings.Compare(a.Key, b.Key) })
	return entries
}

// shows reports whether the list shows an entry.
func (f *finder) shows(entry storagedrivers.Info) bool {
	return f.wants(entry.Key) && !f.Alias.HasExpired(entry, f.now)
}

// note records a variant, whose image may be on the page.
func (f *finder) note(entry storagedrivers.Info) {
	if f.Alias.IsVariant(entry.Key) {
		f.page.Variants[entry.Key] = true
	}
}

// add adds an entry to the page, and returns false if the page is full.
func (f *finder) add(entry storagedrivers.Info) bool {
	folder, ok := strings.CutSuffix(entry.Key, "/")
	switch {
	case f.found() == f.Limit:
		return false
	case ok:
		f.page.Folders = append(f.page.Folders, f.Alias.Filename(folder))
		return true
	case f.Size != nil:
		f.size += f.Size(entry)
		if f.size > f.MaxSize && len(f.page.Items) > 0 {
			return false
		}
	}
	f.page.Items = append(f.page.Items, entry)
	return true
}
