package service

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// listed returns a service with objects below the folder of the image alias "webp".
func listed(t *testing.T, names ...string) (*Service, *memory.Driver) {
	t.Helper()
	parts, driver := partsOf(t), memory.New()
	parts.Storages[0].Driver = driver
	s := start(t, parts)
	for _, name := range names {
		if _, err := driver.Put(t.Context(), "img/webp/"+name, strings.NewReader(name), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return s, driver
}

// query returns a query of the image alias "webp" with the bounds of clients.
func (s *Service) query(t *testing.T, change func(*ItemQuery)) ItemQuery {
	t.Helper()
	alias, ok := s.Alias(item.Image, "webp")
	if !ok {
		t.Fatal("no alias")
	}
	q := ItemQuery{Alias: alias, Limit: 100, MaxExamined: 100_000, MaxTime: 5 * time.Second}
	if change != nil {
		change(&q)
	}
	return q
}

// pages returns the folders and items of all pages, in their order.
func (s *Service) pages(t *testing.T, q ItemQuery) (names []string, n int) {
	t.Helper()
	for n < 1000 {
		page, err := s.ListItems(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range page.Folders {
			names = append(names, folder+"/")
		}
		for _, info := range page.Items {
			names = append(names, q.Alias.Filename(info.Key))
		}
		if n++; page.Next == "" {
			return names, n
		}
		q.Cursor = page.Next
	}
	t.Fatal("the pages have no end")
	return nil, 0
}

// TestListItems: the pages of any size add up to one level of a folder, or to everything below it,
// without variants and unfinished uploads.
func TestListItems(t *testing.T) {
	t.Parallel()
	s, _ := listed(t, "c.jpg", "a.jpg", "a.jpg.webp", "a/x.jpg", "a/x.jpg.webp", "a/b/y.jpg", "b.svg", "z.jpg.webp", "@uploads/data/a.jpg", "a/@Uploads/x.jpg")
	for _, c := range []struct {
		name   string
		change func(*ItemQuery)
		want   []string
	}{
		{"root", nil, []string{"a.jpg", "a/", "b.svg", "c.jpg"}},
		{"folder", func(q *ItemQuery) { q.Folder = "a" }, []string{"a/b/", "a/x.jpg"}},
		{"deep folder", func(q *ItemQuery) { q.Folder = "a/b" }, []string{"a/b/y.jpg"}},
		{"no folder", func(q *ItemQuery) { q.Folder = "none" }, nil},
		{"item as a folder", func(q *ItemQuery) { q.Folder = "a.jpg" }, nil},
		{"uploads", func(q *ItemQuery) { q.Folder = "@uploads/data" }, nil},
		{"recursive", func(q *ItemQuery) { q.Recursive = true }, []string{"a.jpg", "a/b/y.jpg", "a/x.jpg", "b.svg", "c.jpg"}},
		{"recursive folder", func(q *ItemQuery) { q.Folder, q.Recursive = "a", true }, []string{"a/b/y.jpg", "a/x.jpg"}},
		{"search", func(q *ItemQuery) { q.Search = "X" }, []string{"a/x.jpg"}},
		{"search in a folder", func(q *ItemQuery) { q.Folder, q.Search = "a", "jpg" }, []string{"a/b/y.jpg", "a/x.jpg"}},
		{"search without a match", func(q *ItemQuery) { q.Search = "none" }, nil},
		{"down", func(q *ItemQuery) { q.Order = ByNameDown }, []string{"c.jpg", "b.svg", "a/", "a.jpg"}},
		{"recursive down", func(q *ItemQuery) { q.Recursive, q.Order = true, ByNameDown }, []string{"c.jpg", "b.svg", "a/x.jpg", "a/b/y.jpg", "a.jpg"}},
		{"oldest first", func(q *ItemQuery) { q.Order = ByModified }, []string{"a/", "c.jpg", "a.jpg", "b.svg"}},
		{"newest first", func(q *ItemQuery) { q.Order = ByModifiedDown }, []string{"a/", "b.svg", "a.jpg", "c.jpg"}},
		{"smallest first", func(q *ItemQuery) { q.Order = BySize }, []string{"a/", "a.jpg", "b.svg", "c.jpg"}},
		{"largest first", func(q *ItemQuery) { q.Order = BySizeDown }, []string{"a/", "c.jpg", "b.svg", "a.jpg"}},
		{"largest found", func(q *ItemQuery) { q.Search, q.Order = "jpg", BySizeDown }, []string{"a/b/y.jpg", "a/x.jpg", "c.jpg", "a.jpg"}},
		{"newest found", func(q *ItemQuery) { q.Search, q.Order = "jpg", ByModifiedDown }, []string{"a/b/y.jpg", "a/x.jpg", "a.jpg", "c.jpg"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, limit := range []int{1, 2, 3, 200} {
				q := s.query(t, c.change)
				q.Limit = limit
				got, n := s.pages(t, q)
				if q.Order == "" { // folders come before items on each page
					slices.Sort(got)
				}
				if q.Order == ByNameDown && limit > 1 {
					slices.Sort(got)
					slices.Reverse(got)
				}
				if !slices.Equal(got, c.want) || limit >= 200 && n != 1 {
					t.Errorf("limit %d: %d pages with %q, want %q", limit, n, got, c.want)
				}
			}
		})
	}
}

// TestItemFilter: a search finds an item by its submitted name and by its stored one, with and
// without accents.
func TestItemFilter(t *testing.T) {
	t.Parallel()
	names := []string{"Letní dovolená v1.2.jpg", "letni-dovolena-v1-2.jpg", "zima.jpg"}
	for search, want := range map[string]int{ // the first ones, or all but them
		"Letní": 2, "LETNI": 2, "í dov": 2, "Letní - dovolená": 2, "v1.2": 2, "dovolená v1.2.jpg": 2, "letni-dov": 2, "zíma": -2, ".jpg": 3,
		"jaro": 0, "🎉": 0, "---": 0,
	} {
		filter := ItemFilter(&item.Alias{Kind: item.Image}, search)
		for i, name := range names {
			if got := filter("img/" + name); got != (i < want || want < 0 && i >= -want) {
				t.Errorf("%s: %s is found: %t", search, name, got)
			}
		}
	}
}

// TestListItemsOnce: a page of images with their variants takes one listing.
func TestListItemsOnce(t *testing.T) {
	t.Parallel()
	names := make([]string, 0, 200)
	for i := range 100 {
		names = append(names, fmt.Sprintf("%03d.jpg", i), fmt.Sprintf("%03d.jpg.webp", i))
	}
	s, driver := listed(t, names...)
	listings := 0
	driver.Fail = func(op, _ string) error {
		if op == "list" {
			listings++
		}
		return nil
	}
	page, err := s.ListItems(t.Context(), s.query(t, func(q *ItemQuery) { q.Limit = 60 }))
	if len(page.Items) != 60 || page.Next == "" || listings != 1 || err != nil {
		t.Errorf("%d items by %d listings, next %q, %v", len(page.Items), listings, page.Next, err)
	}
}

// TestListItemsMeanwhile: a page continues after the last item, also if that is deleted.
func TestListItemsMeanwhile(t *testing.T) {
	t.Parallel()
	for _, order := range Orders() {
		s, driver := listed(t, "a.jpg", "b.jpg", "c.jpg", "d.jpg")
		q := s.query(t, func(q *ItemQuery) { q.Order, q.Limit = order, 2 })
		first, err := s.ListItems(t.Context(), q)
		if err != nil || len(first.Items) != 2 {
			t.Fatal(err, first)
		}
		for _, info := range first.Items {
			if err := driver.Delete(t.Context(), info.Key, storagedrivers.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		q.Cursor = first.Next
		if second, err := s.ListItems(t.Context(), q); err != nil || len(second.Items) != 2 || second.Next != "" {
			t.Errorf("%s: %+v, %v", order, second, err)
		}
	}
}

// groups are pages of a storage whose names are not in one order, as those of a service that puts
// the folders first.
type groups struct {
	*memory.Driver
	pages []storagedrivers.Page
}

func (g groups) List(_ context.Context, o storagedrivers.ListOptions) (storagedrivers.Page, error) {
	n, _ := strconv.Atoi(o.Cursor)
	page := g.pages[n]
	if n++; n < len(g.pages) {
		page.Next = strconv.Itoa(n)
	}
	return page, nil
}

// TestListItemsOfUnorderedPages: nothing is left out, and nothing is listed twice.
func TestListItemsOfUnorderedPages(t *testing.T) {
	t.Parallel()
	const root = "img/webp/"
	of := func(names ...string) (objects []storagedrivers.Info) {
		for _, name := range names {
			objects = append(objects, storagedrivers.Info{Key: root + name, Size: 1})
		}
		return objects
	}
	parts := partsOf(t)
	parts.Storages[0].Driver = groups{memory.New(), []storagedrivers.Page{
		{Objects: of("a.png", "m.png"), Folders: []string{root + "sub/"}}, {Objects: of("b.png", "z.png")}, {Objects: of("c.png")},
	}}
	s := start(t, parts)
	for _, limit := range []int{1, 2, 3, 100} {
		names, _ := s.pages(t, s.query(t, func(q *ItemQuery) { q.Limit = limit }))
		slices.Sort(names)
		if want := []string{"a.png", "b.png", "c.png", "m.png", "sub/", "z.png"}; !slices.Equal(names, want) {
			t.Errorf("pages of %d have %v, want %v", limit, names, want)
		}
	}
}

// TestCursors: a cursor that is not of the same list is refused, and is not passed to the storage.
func TestCursors(t *testing.T) {
	t.Parallel()
	s, driver := listed(t, "a.jpg", "b.jpg", "c.jpg", "a/x.jpg", "a/y.jpg")
	one := func(q *ItemQuery) { q.Limit = 1 }
	page, err := s.ListItems(t.Context(), s.query(t, one))
	if err != nil || page.Next == "" {
		t.Fatal(err, page)
	}
	raw, _ := base64.RawURLEncoding.DecodeString(page.Next)
	made := func(p position, change func(*ItemQuery)) string {
		f := &finder{ItemQuery: s.query(t, change)}
		return f.cursor(p)
	}
	flipped := slices.Clone(raw)
	flipped[len(flipped)-2] ^= 1
	other := slices.Clone(raw)
	other[0]++
	bare, _ := json.Marshal(position{After: "img/webp/a.jpg"})
	encode := base64.RawURLEncoding.EncodeToString
	lists := 0
	driver.Fail = func(string, string) error { lists++; return nil }
	for name, cursor := range map[string]string{
		"text": "x", "no base64": "!!!", "empty JSON": encode([]byte("{}")), "no sum": encode(bare), "padding": page.Next + "=",
		"a bit": encode(flipped), "another version": encode(other), "longer": page.Next + "AA", "cut": page.Next[:len(page.Next)-4],
		"long": strings.Repeat("A", 1<<20), "a sum alone": encode(raw[:9]), "NUL": "\x00",
		"key of another alias":      made(position{After: "img/content/a.jpg"}, one),
		"key of another folder":     made(position{After: "img/webp/b/a.jpg"}, func(q *ItemQuery) { q.Folder = "a" }),
		"key that leaves":           made(position{After: "img/webp/../a.jpg"}, one),
		"key with a control":        made(position{After: "img/webp/a\x00"}, one),
		"cursor of another folder":  made(position{After: "img/webp/a/x.jpg"}, func(q *ItemQuery) { q.Folder = "a" }),
		"cursor of a search":        made(position{After: "img/webp/a.jpg"}, func(q *ItemQuery) { q.Search = "a" }),
		"cursor of another order":   made(position{After: "img/webp/a.jpg"}, func(q *ItemQuery) { q.Order = ByNameDown }),
		"cursor of everything":      made(position{After: "img/webp/a.jpg"}, func(q *ItemQuery) { q.Recursive = true }),
		"cursor with a wrong field": encode([]byte(`{"p":1}`)),
	} {
		q := s.query(t, one)
		if name == "key of another folder" {
			q.Folder = "a"
		}
		q.Cursor = cursor
		if page, err := s.ListItems(t.Context(), q); !errors.Is(err, ErrCursor) {
			t.Errorf("%s: %v, %v", name, page, err)
		}
	}
	if lists > 0 {
		t.Errorf("%d listings", lists)
	}
}

// TestCursorOfStorage: a storage that refuses its part of a cursor makes the cursor invalid. Other
// errors are those of the storage.
func TestCursorOfStorage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err     error
		refused bool
	}{
		{errors.New("InvalidArgument"), true},
		{storagedrivers.ErrUnavailable, false},
		{fs.ErrPermission, false},
	} {
		s, driver := listed(t)
		driver.Fail = func(string, string) error { return c.err }
		q := s.query(t, nil)
		if _, err := s.ListItems(t.Context(), q); errors.Is(err, ErrCursor) || !errors.Is(err, c.err) {
			t.Errorf("without a cursor: %v", err)
		}
		q.Cursor = (&finder{ItemQuery: q}).cursor(position{Page: "made up"})
		if _, err := s.ListItems(t.Context(), q); errors.Is(err, ErrCursor) != c.refused {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}

// TestSearchObjects: a search that has looked at its number of objects is incomplete, and goes on.
func TestSearchObjects(t *testing.T) {
	t.Parallel()
	names := make([]string, 5000)
	for i := range names {
		names[i] = fmt.Sprintf("%05d.jpg", i)
	}
	s, _ := listed(t, names...)
	q := s.query(t, func(q *ItemQuery) { q.Search, q.MaxExamined = "4999", 2000 })
	var examined []int
	for {
		page, err := s.ListItems(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		examined = append(examined, page.Examined)
		if page.Incomplete != (page.Next != "") {
			t.Errorf("incomplete %t, next %q", page.Incomplete, page.Next)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			if len(page.Items) != 1 {
				t.Errorf("found %v", page.Items)
			}
			break
		}
	}
	if !slices.Equal(examined, []int{2000, 2000, 1000}) {
		t.Errorf("examined %v", examined)
	}
	q = s.query(t, func(q *ItemQuery) { q.Search, q.MaxExamined, q.Limit = "jpg", 2000, 200 })
	if page, err := s.ListItems(t.Context(), q); err != nil || page.Incomplete || len(page.Items) != 200 || page.Next == "" {
		t.Errorf("a full page: %d items, incomplete %t, %v", len(page.Items), page.Incomplete, err)
	}
}

// TestSearchTime: a search that has taken its time is incomplete, and each page makes progress.
func TestSearchTime(t *testing.T) {
	t.Parallel()
	names := make([]string, 3500)
	for i := range names {
		names[i] = fmt.Sprintf("%05d.jpg", i)
	}
	for _, c := range []struct {
		listing time.Duration
		pages   int
	}{{time.Second, 1}, {3 * time.Second, 2}, {7 * time.Second, 4}} {
		s, driver := listed(t, names...)
		synctest.Test(t, func(t *testing.T) {
			driver.Fail = func(string, string) error { time.Sleep(c.listing); return nil }
			q := s.query(t, func(q *ItemQuery) { q.Search = "03499" })
			for n := 1; ; n++ {
				begin := time.Now()
				page, err := s.ListItems(t.Context(), q)
				if took := time.Since(begin); err != nil || took > max(2*5*time.Second, c.listing) {
					t.Fatalf("%v after %v", err, took)
				}
				if page.Incomplete != (page.Next != "") {
					t.Errorf("incomplete %t, next %q", page.Incomplete, page.Next)
				}
				if q.Cursor = page.Next; q.Cursor == "" {
					if n != c.pages || len(page.Items) != 1 {
						t.Errorf("listings of %v: %d pages, %d items", c.listing, n, len(page.Items))
					}
					return
				}
			}
		})
	}
}

// TestListItemsAborted: a list ends with its request.
func TestListItemsAborted(t *testing.T) {
	t.Parallel()
	s, _ := listed(t, "a.jpg")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, search := range []string{"", "a"} {
		if page, err := s.ListItems(ctx, s.query(t, func(q *ItemQuery) { q.Search = search })); !errors.Is(err, context.Canceled) {
			t.Errorf("%+v, %v", page, err)
		}
	}
}

// TestForgedCursor: a cursor is no secret, so a user may make one. None leads out of the folder.
func TestForgedCursor(t *testing.T) {
	t.Parallel()
	s, _ := listed(t, "users/alice/a.png", "users/alice/b.png", "users/bob/a.png", "a.png")
	for _, order := range Orders() {
		for _, search := range []string{"", "png"} {
			q := s.query(t, func(q *ItemQuery) { q.Folder, q.Search, q.Order = "users/alice", search, order })
			f := &finder{ItemQuery: q, prefix: q.Alias.Key(q.Folder) + "/"}
			for _, page := range []string{"", "img/webp/users/", "img/webp/users/b", "img/webp/users/bob/", "a", "\xff"} {
				for _, after := range []string{"", "img/webp/users/alice/a.png", "img/webp/users/bob/a.png", "img/webp/a.png"} {
					if q.Cursor = f.cursor(position{Page: page, After: after}); q.Cursor == "" {
						continue
					}
					found, err := s.ListItems(t.Context(), q)
					if err != nil && !errors.Is(err, ErrCursor) {
						t.Errorf("%q %q: %v", page, after, err)
					}
					for _, info := range found.Items {
						if !strings.HasPrefix(info.Key, f.prefix) {
							t.Errorf("%q %q: the list has %s", page, after, info.Key)
						}
					}
				}
			}
		}
	}
}
