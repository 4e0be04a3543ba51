package mediahttp_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/testservice"
	"github.com/caddymedia/media/caddymedia/internal/upload"
	"github.com/caddymedia/media/caddymedia/media"
)

// TestTransferItem: an item is moved or copied, and the answer has the new one as in a list.
func TestTransferItem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, target, body, key, copyKey string }{
		{"new name", "file/one/a.txt", "to=sub/new.txt", "file/one/sub/new.txt", ""},
		{"sanitized", "file/one/a.txt", "to=Sub/N+e+w.TXT", "file/one/sub/n-e-w.txt", ""},
		{"from a folder", "file/one/sub/deep/d.txt", "to=d.txt", "file/one/d.txt", ""},
		{"another alias", "file/one/a.txt", "to=new.txt&to_alias=content", "file/content/new.txt", ""},
		{"another storage", "file/one/a.txt", "to=A+B.txt&to_alias=exact", "file/exact/A B.txt", ""},
		{"no other alias", "file/one/a.txt", "to=new.txt&to_alias=", "file/one/new.txt", ""},
		{"dated", "file/one/a.txt", "to=new.txt&to_alias=dated", "file/dated/new.txt", ""},
		{"taken", "file/one/a.txt", "to=b.txt", "file/one/b-" + noonSecond + ".txt", ""},
		{"itself", "file/one/a.txt", "to=a.txt", "file/one/a.txt", "file/one/a-" + noonSecond + ".txt"},
		{"itself by name", "file/one/a.txt", "to=a.txt&to_alias=one", "file/one/a.txt", "file/one/a-" + noonSecond + ".txt"},
		{"itself that overwrites", "file/replacing/a.txt", "to=a.txt", "file/replacing/a.txt", ""},
		{"overwrites", "file/one/b.txt", "to=a.txt&to_alias=replacing", "file/replacing/a.txt", ""},
		{"odd name", "file/exact/a%20b%252F%3F%23.txt", "to=c%25.txt", "file/exact/c%.txt", ""},
	} {
		for _, copies := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, copies), func(t *testing.T) {
				t.Parallel()
				s := withItems(t)
				key, body := c.key, c.body
				if copies {
					body = "copy_" + body
					if c.copyKey != "" {
						key = c.copyKey
					}
				}
				source := strings.NewReplacer("%20", " ", "%25", "%", "%3F", "?", "%23", "#").Replace(c.target)
				content, _ := s.Stored(t, source)
				list, names := listed(t, s.Do(t, http.MethodPost, itemsPath+c.target, urlencoded+bearer, body))
				want := strings.SplitN(key, "/", 3)[2]
				if len(names) != 1 || names[0] != want || list.Result[0].Size != int64(len(content)) || list.Result[0].ETag == "" ||
					list.Result[0].ContentType == "" || !list.Success || list.Folders != nil {
					t.Errorf("%+v, want %s", list, want)
				}
				if got, _ := s.Stored(t, key); got != content {
					t.Errorf("%s holds %q, want %q", key, got, content)
				}
				if _, left := s.Stored(t, source); left != (copies || key == source) {
					t.Errorf("the old item is left: %t", left)
				}
			})
		}
	}
}

// transferCase is a request to move an item, which is refused.
func transferCase(name, body string, status int, has string) httpCase {
	return httpCase{Name: name, Target: itemsPath + "file/one/a.txt", Header: urlencoded + bearer, Body: body, Status: status, Has: has}
}

func TestTransferItemRefused(t *testing.T) {
	t.Parallel()
	const one = itemsPath + "file/one/"
	run(t, withItems, []httpCase{
		transferCase("nothing", "x=y", 400, "copy_to"),
		transferCase("empty", "to=", 400, "missing"),
		transferCase("both", "to=b.txt&copy_to=c.txt", 400, "either"),
		transferCase("twice", "to=b.txt&to=c.txt", 400, "to is sent twice"),
		transferCase("copy twice", "copy_to=b.txt&copy_to=c.txt", 400, "copy_to is sent twice"),
		transferCase("alias twice", "to=b.txt&to_alias=one&to_alias=one", 400, "to_alias is sent twice"),
		transferCase("long", "to="+strings.Repeat("a", 1025)+".txt", 400, "too long"),
		transferCase("leading slash", "to=/b.txt", 400, "relative"),
		transferCase("no name", "to=sub/", 400, "without a slash"),
		transferCase("dots", "to=../two/a.txt", 400, "sub folder"),
		transferCase("backslash", `to=a\b/c.txt`, 400, ""),
		transferCase("extension", "to=b.exe", 415, ".exe"),
		transferCase("content", "to=b.pdf", 415, "pdf"),
		transferCase("unknown alias", "to=b.txt&to_alias=none", 404, "unknown alias"),
		transferCase("too large", "to=b.txt&to_alias=small", 413, "larger than 10 bytes"),
		transferCase("storage down", "to=b.txt&to_alias=broken", 503, "cannot be reached"),
		{Name: "missing", Target: one + "none.txt", Header: urlencoded + bearer, Body: "to=b.txt", Status: 404, Has: "no such item"},
		{Name: "unfinished upload", Target: one + "@uploads/x.txt", Header: urlencoded + bearer, Body: "to=b.txt", Status: 404},
		{Name: "variant", Target: itemsPath + "image/sized/a.png.webp", Header: urlencoded + bearer, Body: "to=b.webp", Status: 404},
		{Name: "source down", Target: itemsPath + "file/broken/a.txt", Header: urlencoded + bearer, Body: "to=b.txt", Status: 503},
		{Name: "malformed condition", Target: one + "a.txt", Header: urlencoded + bearer + "If-Match: x", Body: "to=b.txt", Status: 400},
		{Name: "another", Target: one + "a.txt", Header: urlencoded + bearer + `If-Match: "x"`, Body: "to=b.txt", Status: 412},
		{Name: "another onto itself", Target: one + "a.txt", Header: urlencoded + bearer + `If-Match: "x"`, Body: "to=a.txt", Status: 412},
		{Name: "any", Target: one + "a.txt", Header: urlencoded + bearer + "If-Match: *", Body: "to=b2.txt", Status: 200},
		{Name: "query", Method: http.MethodPost, Target: one + "a.txt?to=b.txt", Header: urlencoded + bearer, Status: 400},
		{Name: "type", Target: one + "a.txt", Header: "Content-Type: text/plain\n" + bearer, Body: "to=b.txt", Status: 415},
		{Name: "encoded slash", Target: one + "sub%2Fc.txt", Header: urlencoded + bearer, Body: "to=b.txt", Status: 400},
		{Name: "no token", Target: one + "a.txt", Header: urlencoded, Body: "to=b.txt", Status: 401},
		{Name: "multipart", Target: one + "a.txt", Header: multipart + bearer, Body: form(field("to", "b2.txt")), Status: 200},
	})
}

// TestTransferTagged: only the item with the tag is moved.
func TestTransferTagged(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	tag := "If-Match: " + s.Do(t, http.MethodHead, "/static/file/one/a.txt", "", "").Header.Get("ETag")
	httpCase{Target: itemsPath + "file/one/a.txt", Header: urlencoded + bearer + tag, Body: "to=new.txt", Status: 200}.Check(t, s)
}

// TestTransferRights: a move and a copy need their rights, for both aliases.
func TestTransferRights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		may          string
		move, copies int
		has          string
	}{{"move", 200, 403, "the right copy"}, {"copy", 403, 200, "the right move"}, {"replace", 403, 403, "the right move"}} {
		for body, status := range map[string]int{"to=new.txt": c.move, "copy_to=new.txt": c.copies} {
			has := c.has
			if status == 200 {
				has = "new.txt"
			}
			transferCase(c.may+" "+body, body, status, has).Run(t, func(t *testing.T) *site {
				t.Helper()
				s := may(c.may)(t)
				s.Put(t, "file/one/a.txt", "text")
				return s
			})
		}
	}
	const other = "Authorization: Bearer $OTHER"
	run(t, withItems, []httpCase{ // the other account may use "two" only
		{Name: "from", Target: itemsPath + "file/one/a.txt", Header: urlencoded + other, Body: "to=b.txt&to_alias=two", Status: 403, Has: "may not use the alias"},
		{Name: "to", Target: itemsPath + "file/two/a.txt", Header: urlencoded + other, Body: "to=b.txt&to_alias=one", Status: 403, Has: "may not use the alias"},
		{Name: "to an unknown one", Target: itemsPath + "file/two/a.txt", Header: urlencoded + other, Body: "to=b.txt&to_alias=none", Status: 403},
		{Name: "its own", Target: itemsPath + "file/two/a.txt", Header: urlencoded + other, Body: "to=b.txt", Status: 200},
	})
	run(t, func(t *testing.T) *site {
		t.Helper()
		s := withItems(t)
		s.Ticket(t, "kind=file&alias=one")
		return s
	}, []httpCase{{Name: "ticket", Target: itemsPath + "file/one/a.txt", Header: urlencoded + ticketBearer, Body: "to=b.txt", Status: 403, Has: "send a token"}})
}

// TestTransferOfImage: the new item has a variant, and the old one is gone with its variant and
// renditions.
func TestTransferOfImage(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	s.Put(t, "img/sized/real.png", samples["png"])
	list, _ := listed(t, s.Do(t, http.MethodPost, itemsPath+"image/sized/real.png", urlencoded+bearer, "to=new.png"))
	if item := list.Result[0]; item.WebP != origin+"/static/img/sized/new.png.webp" || len(item.Renditions) == 0 {
		t.Errorf("%+v", item)
	}
	if keys := s.Keys(t, "img/sized/new"); len(keys) != 2 {
		t.Errorf("stored are %q", keys)
	}
	httpCase{Target: itemsPath + "image/sized/a.png", Header: urlencoded + bearer, Body: "to=b.png", Status: 415}.Check(t, s) // it is no image
}

// refusals records refused requests.
type refusals struct {
	testservice.Observer
	mu       sync.Mutex
	requests []upload.Operation
}

func (r *refusals) Refused(_ context.Context, req upload.Operation, _ item.Failures) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, req)
}

// TestRefusedWritesAreReported: a refused move, copy or replacement is reported as such, once.
func TestRefusedWritesAreReported(t *testing.T) {
	t.Parallel()
	observer := new(refusals)
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Observer = observer })
	s.Put(t, "file/one/a.txt", "text")
	check := func(method, header, body string, status int, isTransfer, copies bool) {
		t.Helper()
		alias, to := "one", ""
		if form, err := url.ParseQuery(body); err == nil && status != 403 {
			alias, to = cmp.Or(form.Get("to_alias"), alias), cmp.Or(form.Get("copy_to"), form.Get("to"))
		}
		observer.requests = nil
		httpCase{Method: method, Target: itemsPath + "file/one/a.txt", Header: header, Body: body, Status: status}.Check(t, s)
		if len(observer.requests) != 1 {
			t.Fatalf("%s %s: %+v", method, body, observer.requests)
		}
		if req := observer.requests[0]; req.Alias != alias || (req.Transfer != nil) != isTransfer || isTransfer && (req.Transfer.Copy != copies || req.Transfer.Filename != "a.txt" || req.Transfer.To != to) ||
			!isTransfer && req.Filename != "a.txt" {
			t.Errorf("%s %s: %+v", method, body, req)
		}
	}
	check(http.MethodPost, urlencoded+bearer, "copy_to=b.txt", 403, true, false) // it is not read
	check(http.MethodPut, bearer+ifAny, "new", 403, false, false)
	s.Change = func(c *media.Config) {
		c.Observer, c.Accounts[someKey].May = observer, []string{"move", "copy", "replace"}
	}
	s.Reload(s.Service(t, media.Limits{}, account()))
	s.First = s.Current.Load()
	check(http.MethodPost, urlencoded+bearer, "copy_to=b.txt&copy_to=", 400, true, true)
	check(http.MethodPost, urlencoded+bearer, "copy_to=b.exe", 415, true, true)
	check(http.MethodPost, urlencoded+bearer, "to=b.exe", 415, true, false)
	check(http.MethodPost, urlencoded+bearer, "to=b.txt&to_alias=none", 404, true, false)
	check(http.MethodPost, urlencoded+bearer, "copy_to=b.txt&to_alias=none", 404, true, true)
	check(http.MethodPost, urlencoded+bearer+`If-Match: "x"`, "to=b.txt", 412, true, false)
	check(http.MethodPost, urlencoded+bearer+`If-Match: x`, "to=b.txt", 400, true, false)
	check(http.MethodPut, bearer+ifAny, "new", 409, false, false)
	check(http.MethodPut, bearer, "new", 428, false, false)
}
