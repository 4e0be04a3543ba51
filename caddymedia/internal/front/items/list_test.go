package items_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestItems: the answer has one level of a folder, or everything below it.
func TestItems(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	for query, want := range map[string]struct{ names, folders []string }{
		"":                                 {[]string{"a.txt", "b.txt"}, []string{"sub"}},
		"?folder=":                         {[]string{"a.txt", "b.txt"}, []string{"sub"}},
		"?folder=sub":                      {[]string{"sub/c.txt"}, []string{"sub/deep"}},
		"?folder=sub%2Fdeep":               {[]string{"sub/deep/d.txt"}, []string{}},
		"?folder=none":                     {nil, []string{}},
		"?folder=@uploads":                 {nil, []string{}},
		"?recursive=1":                     {[]string{"a.txt", "b.txt", "sub/c.txt", "sub/deep/d.txt"}, []string{}},
		"?recursive=0":                     {[]string{"a.txt", "b.txt"}, []string{"sub"}},
		"?search=TXT&folder=sub":           {[]string{"sub/c.txt", "sub/deep/d.txt"}, []string{}},
		"?search=nothing":                  {nil, []string{}},
		"?order=name":                      {[]string{"a.txt", "b.txt"}, []string{"sub"}},
		"?order=-name":                     {[]string{"b.txt", "a.txt"}, []string{"sub"}},
		"?order=modified":                  {[]string{"a.txt", "b.txt"}, []string{"sub"}},
		"?order=size":                      {[]string{"a.txt", "b.txt"}, []string{"sub"}},
		"?order=-modified&limit=200":       {[]string{"b.txt", "a.txt"}, []string{"sub"}},
		"?recursive=1&order=-name&other=1": {[]string{"sub/deep/d.txt", "sub/c.txt", "b.txt", "a.txt"}, []string{}},
		"?limit=&order=&search=&cursor=":   {[]string{"a.txt", "b.txt"}, []string{"sub"}},
	} {
		list, names := s.Do(t, http.MethodGet, itemsPath+"file/one"+query, bearer, "").Listed(t)
		if !slices.Equal(names, want.names) || !slices.Equal(list.Folders, want.folders) || list.Folders == nil || list.Result == nil ||
			!list.Success || list.Next != "" || list.Complete != nil {
			t.Errorf("%s: %+v, want %+v", query, list, want)
		}
	}
}

// TestItemsTotal: each page of a list in another order than by name has the number of items of all
// pages.
func TestItemsTotal(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	for query, want := range map[string]int{
		"limit=1": -1, "limit=1&order=name": -1, "limit=1&order=-modified": 2, "limit=1&order=-name&recursive=1": 4,
		"limit=1&order=size&search=sub": 0, "limit=1&order=size&search=c": 1,
	} {
		for cursor := ""; ; {
			list, _ := s.Do(t, http.MethodGet, itemsPath+"file/one?"+query+"&cursor="+cursor, bearer, "").Listed(t)
			if got := list.Total; (got == nil) != (want < 0) || got != nil && *got != want {
				t.Errorf("%s: %+v, want the total %d", query, list, want)
			}
			if cursor = list.Next; cursor == "" {
				break
			}
		}
	}
}

// TestItemFields: an element has the fields of the item, and its entity tag is that of a GET, also
// on a backend that lists no tags.
func TestItemFields(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]storagedrivers.Driver{"tags": memory.New(), "no tags": untagged{memory.New()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withItemsOn(t, backend)
			list, names := s.Do(t, http.MethodGet, itemsPath+"image/sized", bearer, "").Listed(t)
			if !slices.Equal(names, []string{"a.png", "b.png"}) {
				t.Fatalf("%q", names)
			}
			for i, filename := range names {
				address := origin + "/static/img/sized/" + filename
				want := testservice.ListedItem{
					FullPath: address, Filename: filename, Size: int64(len("content of img/sized/a.png")), ContentType: "image/png",
					ETag: s.Do(t, http.MethodHead, address, "", "").Header.Get("ETag"), Modified: list.Result[i].Modified,
					Renditions: list.Result[i].Renditions,
				}
				if filename == "a.png" {
					want.WebP = address + ".webp"
				}
				one, _ := s.Do(t, http.MethodGet, itemsPath+"image/sized/"+filename, bearer, "").Listed(t)
				for _, got := range []testservice.ListedItem{list.Result[i], one.Result[0]} {
					if a, b := asText(t, got), asText(t, want); a != b || want.ETag == "" || want.Modified.IsZero() {
						t.Errorf("got %s, want %s", a, b)
					}
				}
				if got := list.Result[i].Renditions["thumb"]; got != strings.Replace(address, "sized", "sized@thumb", 1) {
					t.Errorf("rendition %s", got)
				}
			}
		})
	}
}

func asText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestItemsListedOnly: where lists have the times of which entity tags are made, no item is asked
// for.
func TestItemsListedOnly(t *testing.T) {
	t.Parallel()
	d := &timed{untagged{memory.New()}}
	s := withItemsOn(t, d)
	d.Fail = func(op, key string) error {
		if op == "stat" {
			t.Errorf("asked for %s", key)
		}
		return nil
	}
	list, names := s.Do(t, http.MethodGet, itemsPath+"file/one", bearer, "").Listed(t)
	d.Fail = nil
	for i, name := range names {
		if want := s.Do(t, http.MethodHead, origin+"/static/file/one/"+name, "", "").Header.Get("ETag"); want == "" || list.Result[i].ETag != want {
			t.Errorf("%s: listed tag %s, want %s", name, list.Result[i].ETag, want)
		}
	}
	if len(names) != 2 {
		t.Errorf("%q", names)
	}
}

// timed is a backend without entity tags that lists times as they are.
type timed struct{ untagged }

func (d *timed) Features() storagedrivers.Features {
	f := d.untagged.Features()
	f.ListTimes = true
	return f
}

func (d *timed) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	page, err := d.Driver.List(ctx, opts)
	for i := range page.Objects {
		page.Objects[i].ETag = ""
	}
	return page, err
}

// TestOneItem: the filename is decoded once. Variants, renditions and unfinished uploads are no
// items.
func TestOneItem(t *testing.T) {
	t.Parallel()
	one := func(name string, status int, has string) httpCase {
		return httpCase{Name: name, Target: itemsPath + name, Header: bearer, Status: status, Has: has}
	}
	missing := `{"success":false,"errors":[{"message":"there is no such item"`
	cases := []httpCase{
		one("file/one/a.txt", 200, `"filename":"a.txt"`),
		one("file/one/sub/deep/d.txt", 200, `"filename":"sub/deep/d.txt"`),
		one("file/one/%61.txt", 200, `"filename":"a.txt"`),
		one("file/exact/a%20b%252F%3F%23.txt", 200, `"full_path":"http://example.com/static/file/exact/a%20b%252F%3F%23.txt"`),
		one("file/exact/a%20b%2F%3F%23.txt", 400, "%2F"),
		one("file/one/none.txt", 404, missing),
		one("image/sized/a.png.webp", 404, missing),
		one("file/one/@uploads/x.txt", 404, missing),
		one("image/sized@renditions/1/a.png/thumb.x.png", 404, "unknown alias"),
		one("image/one/a.txt", 404, `unknown alias \"one\"`),
		one("file/one/", 400, "empty segment"),
		one("file", 400, "/api/items/file/<alias>"),
		one("file/one/%2e%2e/a.txt", 400, "segment"),
		one("file/one/sub%2Fc.txt", 400, "%2F"),
		one("file/one/a.txt%00", 404, missing),
		one("file/one/.hidden", 404, missing),
		one("file/one/"+strings.Repeat("a/", 5000)+"b", 404, missing),
		{Name: "HEAD", Method: http.MethodHead, Target: itemsPath + "file/one/a.txt", Header: bearer, Status: 200, Want: "Content-Type: application/json"},
		{Name: "HEAD of none", Method: http.MethodHead, Target: itemsPath + "file/one/none", Header: bearer, Status: 404},
		{Name: "encoded start", Target: "/api/%69tems/file/one/a.txt", Header: bearer, Status: 200, Has: `"a.txt"`},
		{Name: "encoded separator", Target: "/api%2Fitems/file/one/a.txt", Header: bearer, Status: 400},
	}
	run(t, withItems, cases)
}

// TestItemsRefused: the parameters of a list, and aliases that are not there.
func TestItemsRefused(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	for has, queries := range map[string][]string{
		"order":     {"order=owner", "order=Name"},
		"recursive": {"recursive=yes", "recursive=2"},
		"folder":    {"folder=/", "folder=sub/", "folder=/sub", "folder=a//b", "folder=sub/../..", "folder=%00", "folder=a%5Cb", "folder=%ff", "folder=.git"},
		"search":    {"search=" + strings.Repeat("a", 1025)},
		"cursor":    {"cursor=x", "cursor=%00", "cursor=" + strings.Repeat("A", 100_000)},
		"malformed": {"a=%zz", "a=1;b=2"},
		"limit":     {"limit=0", "limit=201", "limit=-1", "limit=x", "limit=1.5", "limit=%2B1", "limit=0x10", "limit=99999999999999999999", "limit=%201"},
	} {
		for _, query := range queries {
			httpCase{Target: itemsPath + "file/one?" + query, Header: bearer, Status: 400, Has: has}.Check(t, s)
		}
	}
	for _, name := range []string{"folder", "search", "recursive", "order", "limit", "cursor"} {
		httpCase{Target: itemsPath + "file/one?" + name + "=&" + name + "=", Header: bearer, Status: 400, Has: name + " is sent twice"}.Check(t, s)
	}
	for _, c := range []httpCase{
		{Target: itemsPath + "file/one//", Status: 401},
		{Target: itemsPath + "file/none", Header: "Authorization: Bearer $OTHER", Status: 403, Has: "may not use the alias"},
		{Target: itemsPath + "file/none", Header: bearer, Status: 404, Has: "unknown alias"},
		{Method: http.MethodPut, Target: itemsPath + "file/one", Header: bearer, Status: 405},
		{Method: http.MethodPatch, Target: itemsPath + "file/one/a.txt", Header: bearer, Status: 405},
		{Target: itemsPath + "file/broken", Header: bearer, Status: 503, Want: "Retry-After: 1"},
		{Target: itemsPath + "file/broken/a.txt", Header: bearer, Status: 503, Has: "cannot be reached"},
	} {
		c.Check(t, s)
	}
}

// TestItemsOfFailingStorage: an error of the storage is 502, without its words, and the token store
// may fail too.
func TestItemsOfFailingStorage(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	header := strings.ReplaceAll(bearer, "$TOKEN", s.Token(t))
	s.Known = append(s.Known, "secret")
	for _, op := range []string{"list", "stat"} {
		s.Failing(errors.New("10.1.2.3: secret"), op, "file/one")
		target := map[string]string{"list": "file/one", "stat": "file/one/a.txt"}[op]
		r := s.Request(t, http.MethodGet, itemsPath+target, header, "")
		s.Unread(t, r, 502)
	}
	s.Driver.Fail = nil
	s.Store.Fails.Store(true)
	httpCase{Target: itemsPath + "file/one", Header: header, Status: 503}.Check(t, s)
}

// TestManyItems: a list of more than 10,000 items has only the order name.
func TestManyItems(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Accounts[someKey].May = []string{"list"} })
	for i := range 10_001 {
		s.Put(t, "file/one/"+strings.Repeat("x", i%7)+string(rune('a'+i%26))+asText(t, i)+".txt", "")
	}
	header := strings.ReplaceAll(bearer, "$TOKEN", s.Token(t))
	for order, status := range map[string]int{"name": 200, "-name": 400, "modified": 400, "-modified": 400, "-size": 400} {
		w := s.Request(t, http.MethodGet, itemsPath+"file/one?order="+order, header, "")
		s.Unread(t, w, status)
	}
	list, _ := s.Do(t, http.MethodGet, itemsPath+"file/one", header, "").Listed(t)
	if len(list.Result) != 100 || list.Next == "" {
		t.Errorf("%d items, next %q", len(list.Result), list.Next)
	}
}

// untagged is a backend without entity tags, whose lists have times in whole minutes.
type untagged struct{ *memory.Driver }

func (d untagged) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := d.Driver.Stat(ctx, key)
	info.ETag = ""
	return info, err
}

func (d untagged) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	r, info, err := d.Driver.Open(ctx, key, rng)
	info.ETag = ""
	return r, info, err
}

func (d untagged) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	page, err := d.Driver.List(ctx, opts)
	for i := range page.Objects {
		page.Objects[i].ETag, page.Objects[i].ModTime = "", page.Objects[i].ModTime.Truncate(time.Minute)
	}
	return page, err
}
