package service

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// Order is the order of a list of items. The folders of a list come first in an order by time or
// size.
type Order string

// The orders. The zero Order is ByName.
const (
	ByName         Order = "name" // in the byte order of their keys
	ByNameDown     Order = "-name"
	ByModified     Order = "modified"
	ByModifiedDown Order = "-modified"
	BySize         Order = "size"
	BySizeDown     Order = "-size"
)

// Orders returns all orders.
func Orders() []Order {
	return []Order{ByName, ByNameDown, ByModified, ByModifiedDown, BySize, BySizeDown}
}

const (
	// maxOrdered is the largest number of items in a list with another order than ByName, that of
	// its folders, and that of its variants.
	maxOrdered = 10_000
	// orderedTime is how long a list is kept for its next pages.
	orderedTime = time.Minute
	// maxOrderedNames is the largest number of names in all lists that are kept: two lists of the
	// largest kind, and six of items alone.
	maxOrderedNames = 6 * maxOrdered
	// maxOrderedLists is the largest number of lists that are kept.
	maxOrderedLists = 100
)

// ordered returns a page of a list in another order than that of the storage. It reads the whole
// list for the first page, and for others unless lists has it.
func (f *finder) ordered(ctx context.Context, at position, lists *orderedLists) (ItemPage, error) {
	key := orderedKey{f.Alias, string(f.sum(nil))}
	isFirst := at == position{}
	var list *orderedList
	if !isFirst {
		list = lists.get(key)
	}
	if list == nil {
		var err error
		if list, err = f.listAll(ctx); err != nil {
			return ItemPage{}, err
		}
		defer func() {
			if f.page.Next != "" {
				lists.keep(key, list)
			}
		}()
	}
	f.page.Variants, f.page.Total = list.variants, new(list.items)
	entries := list.entries
	if !isFirst {
		last := storagedrivers.Info{Key: at.After, Size: at.Size}
		if at.Time != nil {
			last.ModTime = time.Unix(0, *at.Time)
		}
		next, found := slices.BinarySearchFunc(entries, last, f.Order.compare())
		if found {
			next++
		}
		entries = entries[next:]
	}
	for i, entry := range entries {
		if f.add(entry) {
			continue
		}
		last := entries[i-1] // the first one fits
		next := position{After: last.Key}
		if !last.ModTime.IsZero() { // a folder has none
			next.Time = new(last.ModTime.UnixNano())
		}
		if f.Order == BySize || f.Order == BySizeDown {
			next.Size = last.Size
		}
		f.page.Next = f.cursor(next)
		break
	}
	return f.page, nil
}

// listAll reads the list.
func (f *finder) listAll(ctx context.Context) (*orderedList, error) {
	list := &orderedList{variants: f.page.Variants}
	for cursor := ""; ; {
		page, err := f.list(ctx, cursor, 0)
		if err != nil {
			return nil, err
		}
		for _, entry := range entriesOf(page) {
			f.note(entry)
			f.page.Examined++
			if !f.shows(entry) {
				continue
			}
			if list.entries = append(list.entries, entry); !isFolder(entry) {
				list.items++
			}
		}
		if max(list.items, len(list.entries)-list.items, len(list.variants)) > maxOrdered ||
			f.isDeep() && f.page.Examined > f.MaxExamined {
			return nil, ErrUnordered
		}
		if cursor = page.Next; cursor == "" {
			slices.SortFunc(list.entries, f.Order.compare())
			return list, nil
		}
	}
}

// orderedList is a list that was read. It must not be changed.
type orderedList struct {
	entries  []storagedrivers.Info // in the order of the list
	items    int                   // without folders
	variants map[string]bool
	expiry   *time.Timer
}

// names returns the number of names of the list.
func (l *orderedList) names() int { return len(l.entries) + len(l.variants) }

// orderedKey identifies a list: its alias, whose settings a reload may change, and its finder.sum.
type orderedKey struct {
	alias *item.Alias
	sum   string
}

// orderedLists keeps the lists that were used last, for their next pages.
type orderedLists struct {
	mu    sync.Mutex
	names int // of all lists
	lists *simplelru.LRU[orderedKey, *orderedList]
}

func newOrderedLists() *orderedLists {
	o := new(orderedLists)
	o.lists, _ = simplelru.NewLRU(maxOrderedLists, func(_ orderedKey, list *orderedList) { // fails for a size of 0 only
		o.names -= list.names()
		list.expiry.Stop()
	})
	return o
}

// get returns a list; nil if it is not kept.
func (o *orderedLists) get(key orderedKey) *orderedList {
	o.mu.Lock()
	defer o.mu.Unlock()
	list, _ := o.lists.Get(key)
	return list
}

// keep keeps a list for a while, in place of those that were not used for the longest time.
func (o *orderedLists) keep(key orderedKey, list *orderedList) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lists.Remove(key)
	list.expiry = time.AfterFunc(orderedTime, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		if now, _ := o.lists.Peek(key); now == list {
			o.lists.Remove(key)
		}
	})
	o.lists.Add(key, list)
	o.names += list.names()
	for o.names > maxOrderedNames {
		o.lists.RemoveOldest()
	}
}

func isFolder(entry storagedrivers.Info) bool { return strings.HasSuffix(entry.Key, "/") }

// compare returns the comparison of an order.
func (o Order) compare() func(a, b storagedrivers.Info) int {
	byName := func(a, b storagedrivers.Info) int { return strings.Compare(a.Key, b.Key) }
	bySize := func(a, b storagedrivers.Info) int {
		return cmp.Or(foldersFirst(a, b), cmp.Compare(a.Size, b.Size), byName(a, b))
	}
	byTime := func(a, b storagedrivers.Info) int {
		return cmp.Or(foldersFirst(a, b), a.ModTime.Compare(b.ModTime), byName(a, b))
	}
	switch o {
	case ByNameDown:
		return func(a, b storagedrivers.Info) int { return byName(b, a) }
	case ByModified:
		return byTime
	case ByModifiedDown:
		return func(a, b storagedrivers.Info) int { return cmp.Or(foldersFirst(a, b), byTime(b, a)) }
	case BySize:
		return bySize
	case BySizeDown:
		return func(a, b storagedrivers.Info) int { return cmp.Or(foldersFirst(a, b), bySize(b, a)) }
	default:
		return byName
	}
}

// foldersFirst compares entries by what they are. Folders have no time and no size.
func foldersFirst(a, b storagedrivers.Info) int {
	switch {
	case isFolder(a) == isFolder(b):
		return 0
	case isFolder(a):
		return -1
	default:
		return 1
	}
}
