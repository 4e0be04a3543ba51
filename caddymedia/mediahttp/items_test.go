package mediahttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// listedItem is an element of a list of items.
type listedItem struct {
	FullPath    string            `json:"full_path"`
	Filename    string            `json:"filename"`
	Size        int64             `json:"size"`
	Modified    time.Time         `json:"modified"`
	ContentType string            `json:"content_type"`
	ETag        string            `json:"etag"`
	WebP        string            `json:"webp"`
	Renditions  map[string]string `json:"renditions"`
}

// itemList is the response to a request for a list, or for one item.
type itemList struct {
	Success  bool         `json:"success"`
	Result   []listedItem `json:"result"`
	Folders  []string     `json:"folders"`
	Next     string       `json:"next"`
	Complete *bool        `json:"complete"`
}

// listed returns the names in the response to a request for items.
func listed(t *testing.T, r *reply) (list itemList, names []string) {
	t.Helper()
	if r.Status != http.StatusOK {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	r.Decode(t, &list)
	for _, item := range list.Result {
		names = append(names, item.Filename)
	}
	return list, names
}

// withItems returns a site whose accounts may do everything, with some items: that of otherKey only
// in the alias "two".
func withItems(t *testing.T) *site {
	t.Helper()
	return withItemsOn(t, memory.New())
}

func withItemsOn(t *testing.T, backend storagedrivers.Driver) *site {
	t.Helper()
	s := newSiteOn(t, backend, media.Limits{}, func(c *media.Config) {
		for _, account := range c.Accounts {
			account.May = []string{"upload", "list", "delete", "replace", "move", "copy", "import"}
		}
		c.ImageAliases["sized"] = &media.ImageAlias{AliasOptions: on("main"), Renditions: sizes, WebP: &media.WebP{}}
	})
	for _, key := range []string{
		"file/one/a.txt", "file/one/b.txt", "file/one/sub/c.txt", "file/one/sub/deep/d.txt", "file/exact/a b%2F?#.txt", "file/two/a.txt",
		"img/sized/a.png", "img/sized/a.png.webp", "img/sized/b.png", "img/sized@renditions/1/a.png/thumb.x.png", "file/replacing/a.txt",
		"file/one/@uploads/x.txt",
	} {
		if _, err := backend.Put(t.Context(), key, strings.NewReader("content of "+key), storagedrivers.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestItems: the answer has one level of a folder, or everything below it.
func TestItems(t *testing.T) {
	t.Parallel()
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
		"?order=-modified&limit=200":       {[]string{"b.txt", "a.txt"}, []string{"sub"}},
		"?recursive=1&order=-name&other=1": {[]string{"sub/deep/d.txt", "sub/c.txt", "b.txt", "a.txt"}, []string{}},
		"?limit=&order=&search=&cursor=":   {[]string{"a.txt", "b.txt"}, []string{"sub"}},
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			s := withItems(t)
			list, names := listed(t, s.Do(t, http.MethodGet, itemsPath+"file/one"+query, bearer, ""))
			if !slices.Equal(names, want.names) || !slices.Equal(list.Folders, want.folders) || list.Folders == nil || list.Result == nil ||
				!list.Success || list.Next != "" || list.Complete != nil {
				t.Errorf("%+v, want %+v", list, want)
			}
		})
	}
}

// TestItemsPages: the pages add up to the list, and a cursor is only good for its list.
func TestItemsPages(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	const list = itemsPath + "file/one?recursive=1&limit=1"
	var got []string
	for cursor := ""; ; {
		page, names := listed(t, s.Do(t, http.MethodGet, list+"&cursor="+cursor, bearer, ""))
		if got = append(got, names...); page.Next == "" {
			break
		}
		if cursor = page.Next; url.QueryEscape(cursor) != cursor {
			t.Fatalf("the cursor %s must be escaped", cursor)
		}
		httpCase{Target: itemsPath + "file/one?cursor=" + cursor, Header: bearer, Status: 400, Has: "cursor"}.Check(t, s)
		httpCase{Target: itemsPath + "file/two?recursive=1&cursor=" + cursor, Header: bearer, Status: 400, Has: "cursor"}.Check(t, s)
	}
	if want := []string{"a.txt", "b.txt", "sub/c.txt", "sub/deep/d.txt"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
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
			list, names := listed(t, s.Do(t, http.MethodGet, itemsPath+"image/sized", bearer, ""))
			if !slices.Equal(names, []string{"a.png", "b.png"}) {
				t.Fatalf("%q", names)
			}
			for i, filename := range names {
				address := origin + "/static/img/sized/" + filename
				want := listedItem{
					FullPath: address, Filename: filename, Size: int64(len("content of img/sized/a.png")), ContentType: "image/png",
					ETag: s.Do(t, http.MethodHead, address, "", "").Header.Get("ETag"), Modified: list.Result[i].Modified,
					Renditions: list.Result[i].Renditions,
				}
				if filename == "a.png" {
					want.WebP = address + ".webp"
				}
				one, _ := listed(t, s.Do(t, http.MethodGet, itemsPath+"image/sized/"+filename, bearer, ""))
				for _, got := range []listedItem{list.Result[i], one.Result[0]} {
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

// TestItemsListedOnly: where lists have the times of which entity tags are made, no item is asked for.
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
	list, names := listed(t, s.Do(t, http.MethodGet, itemsPath+"file/one", bearer, ""))
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

// TestOneItem: the filename is decoded once. Variants, renditions and unfinished uploads are no items.
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
		one("file/one/sub", 404, missing),
		one("image/sized/a.png.webp", 404, missing),
		one("file/one/@uploads/x.txt", 404, missing),
		one("image/sized@renditions/1/a.png/thumb.x.png", 404, "unknown alias"),
		one("image/sized@thumb/a.png", 404, "unknown alias"),
		one("image/one/a.txt", 404, `unknown alias \"one\"`),
		one("file/one/", 400, "empty segment"),
		one("file/one//a.txt", 400, "empty segment"),
		one("file//a.txt", 400, "empty segment"),
		one("file/", 400, "empty segment"),
		one("file", 400, "/api/items/file/<alias>"),
		one("file/one/./a.txt", 400, "segment"),
		one("file/one/sub/../a.txt", 400, "segment"),
		one("file/one/%2e%2e/a.txt", 400, "segment"),
		one("file/one/%2E/a.txt", 400, "segment"),
		one("file/one/sub%2Fc.txt", 400, "%2F"),
		one("file%2fone/a.txt", 400, "%2F"),
		one("file/one/a.txt%00", 404, missing),
		one("file/one/%0d%0aX:y", 404, missing),
		one("file/one/.hidden", 404, missing),
		one("file/one/a%5Cb", 404, missing),
		one("file/one/%ff", 404, missing),
		one("file/one/"+strings.Repeat("a", 256), 404, missing),
		one("file/one/"+strings.Repeat("a/", 5000)+"b", 404, missing),
		one("file/"+strings.Repeat("a", 5000), 404, "unknown alias"),
		one("file/%22%00", 404, "unknown alias"),
		{Name: "HEAD", Method: http.MethodHead, Target: itemsPath + "file/one/a.txt", Header: bearer, Status: 200, Want: "Content-Type: application/json"},
		{Name: "HEAD of none", Method: http.MethodHead, Target: itemsPath + "file/one/none", Header: bearer, Status: 404},
		{Name: "encoded start", Target: "/api/%69tems/file/one/a.txt", Header: bearer, Status: 200, Has: `"a.txt"`},
		{Name: "encoded separator", Target: "/api%2Fitems/file/one/a.txt", Header: bearer, Status: 400},
	}
	run(t, withItems, cases)
}

// TestItemsRefused: the parameters of a list, and the rights to it.
func TestItemsRefused(t *testing.T) {
	t.Parallel()
	bad := func(query, has string) httpCase {
		return httpCase{Name: query[:min(len(query), 60)], Target: itemsPath + "file/one" + query, Header: bearer, Status: 400, Has: has}
	}
	cases := make([]httpCase, 0, 64)
	cases = append(
		cases,
		bad("?order=size", "order"), bad("?order=Name", "order"), bad("?recursive=yes", "recursive"), bad("?recursive=2", "recursive"),
		bad("?folder=/", "folder"), bad("?folder=sub/", "folder"), bad("?folder=/sub", "folder"), bad("?folder=a//b", "folder"),
		bad("?folder=..", "folder"), bad("?folder=sub/../..", "folder"), bad("?folder=%00", "folder"), bad("?folder=a%5Cb", "folder"), bad("?folder=%ff", "folder"),
		bad("?folder=.git", "folder"), bad("?folder="+strings.Repeat("a/", 600)+"a", "folder"), bad("?search="+strings.Repeat("a", 1025), "search"),
		bad("?cursor=x", "cursor"), bad("?cursor=%00", "cursor"), bad("?cursor="+strings.Repeat("A", 100_000), "cursor"), bad("?a=%zz", "malformed"),
		bad("?a=1;b=2", "malformed"),
	)
	limits := []string{"0", "201", "-1", "x", "1.5", "1e2", "+1", "0x10", "99999999999999999999", "%201"}
	for _, limit := range limits {
		cases = append(cases, bad("?limit="+strings.ReplaceAll(limit, "+", "%2B"), "limit"))
	}
	for _, name := range []string{"folder", "search", "recursive", "order", "limit", "cursor"} {
		cases = append(cases, bad("?"+name+"=&"+name+"=", name+" is sent twice"))
	}
	one, two, other := itemsPath+"file/one", itemsPath+"file/two", "Authorization: Bearer $OTHER"
	cases = append(
		cases,
		httpCase{Name: "no token", Target: one, Status: 401, Want: "WWW-Authenticate: Bearer"},
		httpCase{Name: "wrong token", Target: one, Header: "Authorization: Bearer x", Status: 401},
		httpCase{Name: "malformed without a token", Target: one + "//", Status: 401},
		httpCase{Name: "other account", Target: two, Header: other, Status: 200, Has: "a.txt"},
		httpCase{Name: "alias of others", Target: one, Header: other, Status: 403, Has: "may not use the alias"},
		httpCase{Name: "item of others", Target: one + "/a.txt", Header: other, Status: 403},
		httpCase{Name: "unknown alias of others", Target: itemsPath + "file/none", Header: other, Status: 403, Has: "may not use the alias"},
		httpCase{Name: "unknown alias", Target: itemsPath + "file/none", Header: bearer, Status: 404, Has: "unknown alias"},
		httpCase{Name: "put", Method: http.MethodPut, Target: one, Header: bearer, Status: 405},
		httpCase{Name: "patch an item", Method: http.MethodPatch, Target: one + "/a.txt", Header: bearer, Status: 405},
		httpCase{Name: "storage down", Target: itemsPath + "file/broken", Header: bearer, Status: 503, Want: "Retry-After: 1"},
		httpCase{Name: "storage down for an item", Target: itemsPath + "file/broken/a.txt", Header: bearer, Status: 503, Has: "cannot be reached"},
	)
	run(t, withItems, cases)
	run(t, may("upload", "delete"), []httpCase{
		{Name: "no right", Target: one, Header: bearer, Status: 403, Has: "the right list"},
		{Name: "no right to an item", Target: one + "/a.txt", Header: bearer, Status: 403, Has: "may not list items"},
	})
	run(t, func(t *testing.T) *site {
		t.Helper()
		s := withItems(t)
		s.Ticket(t, "kind=file&alias=one")
		return s
	}, []httpCase{
		{Name: "ticket", Target: one, Header: ticketBearer, Status: 403, Has: "send a token"},
		{Name: "ticket for an item", Target: one + "/a.txt", Header: ticketBearer, Status: 403},
	})
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
	for order, status := range map[string]int{"name": 200, "-name": 400, "modified": 400, "-modified": 400} {
		w := s.Request(t, http.MethodGet, itemsPath+"file/one?order="+order, header, "")
		s.Unread(t, w, status)
	}
	list, _ := listed(t, s.Do(t, http.MethodGet, itemsPath+"file/one", header, ""))
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
