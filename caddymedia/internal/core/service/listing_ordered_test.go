package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestOrderOfManyItems: up to 10,000 items can have another order than by name.
func TestOrderOfManyItems(t *testing.T) {
	t.Parallel()
	names := make([]string, maxOrdered)
	for i := range names {
		names[i] = fmt.Sprintf("%05d.jpg", i)
	}
	s, driver := listed(t, names...)
	if _, err := driver.Put(t.Context(), "img/webp/00000.jpg.webp", strings.NewReader("x"), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	down := s.query(t, func(q *ItemQuery) { q.Order = ByNameDown })
	if page, err := s.ListItems(t.Context(), down); err != nil || len(page.Items) != 100 || page.Items[0].Key != "img/webp/09999.jpg" {
		t.Errorf("%d items, %v", len(page.Items), err)
	}
	if _, err := driver.Put(t.Context(), "img/webp/one-more.jpg", strings.NewReader("x"), storagedrivers.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, order := range Orders() {
		_, err := s.ListItems(t.Context(), s.query(t, func(q *ItemQuery) { q.Order = order }))
		if errors.Is(err, ErrUnordered) != (order != ByName) {
			t.Errorf("%s: %v", order, err)
		}
	}
	few := s.query(t, func(q *ItemQuery) { q.Order, q.Search = ByNameDown, "more" })
	if page, err := s.ListItems(t.Context(), few); err != nil || len(page.Items) != 1 {
		t.Errorf("a search: %+v, %v", page, err)
	}
}

// TestOrderOfTheEpoch: objects of the time 0 have a place in a list by time.
func TestOrderOfTheEpoch(t *testing.T) {
	t.Parallel()
	s := &Service{process: NewProcess(), now: time.Now}
	for _, order := range []Order{ByModified, ByModifiedDown, BySize, BySizeDown} {
		dated := ancient{memory.New()}
		storage := derivedtest.Closed(t, "ancient", dated, storagedrivers.Options{})
		for i := range 5 {
			derivedtest.Put(t, storage, fmt.Sprintf("p/%d.txt", i), "x")
		}
		alias := &item.Alias{Kind: item.File, Name: "a", Storage: storage, Prefix: "p"}
		names, n := s.pages(t, ItemQuery{Alias: alias, Order: order, Limit: 2})
		if len(names) != 5 || n != 3 {
			t.Errorf("%s: %q on %d pages, want 5 items on 3", order, names, n)
		}
	}
}

// TestOrderIsRead: all pages of a list in another order than by name read the folder once, also if
// other lists are read in turn, until a minute is over. The first page of a list reads it again.
func TestOrderIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, alias, lists := counted(t, 9)
		query := ItemQuery{Alias: alias, Order: ByModified, Limit: 2}
		if names, n := s.pages(t, query); len(names) != 9 || n != 5 || *lists != 1 {
			t.Errorf("%q on %d pages, read %d times", names, n, *lists)
		}
		next, other := query, query
		other.Order = ByModifiedDown
		first, err := s.ListItems(t.Context(), query)
		if err != nil || *lists != 2 {
			t.Errorf("the first page again: read %d times, %v", *lists, err)
		}
		if names, n := s.pages(t, other); len(names) != 9 || n != 5 || *lists != 3 {
			t.Errorf("another list: %q on %d pages, read %d times", names, n, *lists)
		}
		next.Cursor = first.Next
		if page, err := s.ListItems(t.Context(), next); err != nil || *lists != 3 || len(page.Items) != 2 || *page.Total != 9 {
			t.Errorf("after another list: read %d times, %+v, %v", *lists, page, err)
		}
		reloaded := next
		reloaded.Alias = new(*alias)
		if _, err := s.ListItems(t.Context(), reloaded); err != nil || *lists != 4 {
			t.Errorf("after a reload: read %d times, %v", *lists, err)
		}
		time.Sleep(orderedTime + 1)
		if page, err := s.ListItems(t.Context(), next); err != nil || *lists != 5 || len(page.Items) != 2 {
			t.Errorf("after a minute: read %d times, %v", *lists, err)
		}
		if _, err := s.ListItems(t.Context(), ItemQuery{Alias: alias, Order: ByModified, Limit: 9}); err != nil {
			t.Error(err)
		}
		if n := s.process.ordered.lists.Len(); n != 1 {
			t.Errorf("%d lists are kept, want 1: one had no other pages, others are a minute old", n)
		}
	})
}

// TestOrderedListsAreBounded: the lists that were not used for the longest time make room for
// others.
func TestOrderedListsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, alias, lists := counted(t, maxOrdered)
		first, err := s.ListItems(t.Context(), ItemQuery{Alias: alias, Order: BySize, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		once := *lists // of the pages of the storage
		second := ItemQuery{Alias: alias, Order: BySize, Limit: 1, Cursor: first.Next}
		for range maxOrderedNames/maxOrdered + 1 {
			if _, err := s.ListItems(t.Context(), second); err != nil {
				t.Fatal(err)
			}
			if _, err := s.ListItems(t.Context(), ItemQuery{Alias: new(*alias), Order: BySize, Limit: 1}); err != nil {
				t.Fatal(err)
			}
		}
		kept := s.process.ordered
		if kept.names > maxOrderedNames || kept.names != kept.lists.Len()*maxOrdered {
			t.Errorf("%d names in %d lists, want at most %d", kept.names, kept.lists.Len(), maxOrderedNames)
		}
		if want := maxOrderedNames/maxOrdered + 2; *lists != want*once {
			t.Errorf("%d listings, want %d: the list that is used stays", *lists, want*once)
		}
	})
}

// counted returns a service without storages, an alias with n items, and the count of the listings
// of their folder.
func counted(t *testing.T, n int) (*Service, *item.Alias, *int) {
	t.Helper()
	d, lists := memory.New(), new(int)
	storage := derivedtest.Closed(t, "counted", d, storagedrivers.Options{})
	for i := range n {
		derivedtest.Put(t, storage, fmt.Sprintf("p/%d.txt", i), "x")
	}
	d.Fail = func(op, _ string) error {
		if op == "list" {
			*lists++
		}
		return nil
	}
	alias := &item.Alias{Kind: item.File, Name: "a", Storage: storage, Prefix: "p"}
	return &Service{process: NewProcess(), now: time.Now}, alias, lists
}

// ancient lists objects of the time 0.
type ancient struct{ *memory.Driver }

func (a ancient) List(ctx context.Context, o storagedrivers.ListOptions) (storagedrivers.Page, error) {
	page, err := a.Driver.List(ctx, o)
	for i := range page.Objects {
		page.Objects[i].ModTime = time.Unix(0, 0)
	}
	return page, err
}

// TestOrderTakesTooLong: a list of everything in another order than by name is refused at the end
// of its time.
func TestOrderTakesTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage := derivedtest.Closed(t, "endless", endless{memory.New()}, storagedrivers.Options{})
		alias := &item.Alias{Kind: item.File, Name: "a", Storage: storage, Prefix: "p"}
		s := &Service{process: NewProcess(), now: time.Now}
		_, err := s.ListItems(t.Context(), ItemQuery{
			Alias: alias, Order: ByModified, Limit: 2, Recursive: true, MaxExamined: 100, MaxTime: time.Second,
		})
		if !errors.Is(err, ErrUnordered) {
			t.Errorf("error %v, want %v", err, ErrUnordered)
		}
	})
}

// endless lists empty pages without end.
type endless struct{ *memory.Driver }

func (endless) List(ctx context.Context, o storagedrivers.ListOptions) (storagedrivers.Page, error) {
	select {
	case <-ctx.Done():
		return storagedrivers.Page{}, ctx.Err()
	case <-time.After(50 * time.Millisecond):
		return storagedrivers.Page{Next: o.Cursor + "x"}, nil
	}
}
