package items_test

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

const target = itemsPath + "file/replacing/a.txt"

// puts returns the cases by PUT.
func puts(cases ...httpCase) []httpCase {
	for i := range cases {
		cases[i].Method = http.MethodPut
	}
	return cases
}

// TestReplaceItem: the body replaces an item under the same filename, after all checks of an
// upload.
func TestReplaceItem(t *testing.T) {
	t.Parallel()
	one := itemsPath + "file/one/a.txt"
	run(t, withItems, puts(
		httpCase{
			Name: "any", Target: target, Header: bearer + ifAny, Body: "new", Status: 200,
			Text: `{"success":true,"result":[{"full_path":"http://example.com/static/file/replacing/a.txt","filename":"a.txt"}],"cached_for":0}` + "\n",
		},
		httpCase{Name: "no condition", Target: target, Header: bearer, Body: "new", Status: 428, Has: "If-Match"},
		httpCase{Name: "malformed condition", Target: target, Header: bearer + "If-Match: x", Body: "new", Status: 400, Has: "If-Match"},
		httpCase{Name: "another", Target: target, Header: bearer + `If-Match: "x"`, Body: "new", Status: 412, Has: "another one"},
		httpCase{Name: "missing", Target: itemsPath + "file/replacing/none.txt", Header: bearer + ifAny, Body: "new", Status: 404, Has: "no such item"},
		httpCase{Name: "variant", Target: itemsPath + "image/sized/a.png.webp", Header: bearer + ifAny, Body: "new", Status: 404},
		httpCase{Name: "append time", Target: one, Header: bearer + ifAny, Body: "new", Status: 409, Has: "never replaced"},
		httpCase{Name: "part", Target: target, Header: bearer + ifAny + "Content-Range: bytes 0-2/3", Body: "new", Status: 400, Has: "Content-Range"},
		httpCase{Name: "unknown alias", Target: itemsPath + "file/none/a.txt", Header: bearer + ifAny, Body: "new", Status: 404, Has: "unknown alias"},
	))
}

// TestReplaceImage: an image is checked, and replaced with its variant and renditions.
func TestReplaceImage(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.Accounts[someKey].May = []string{"replace"}
		c.ImageAliases["over"] = &media.ImageAlias{
			AliasOptions: media.AliasOptions{Storage: "replacing", CacheControl: "public, max-age=60, s-maxage=90"}, WebP: &media.WebP{}, Renditions: sizes,
		}
	})
	for _, key := range []string{"img/over/Odd Name.png", "img/over/Odd Name.png.webp", "img/over@renditions/1/Odd Name.png/thumb.x.png"} {
		s.Put(t, key, "old")
	}
	const target = itemsPath + "image/over/Odd%20Name.png"
	httpCase{Method: http.MethodPut, Target: target, Header: bearer + ifAny, Body: "no image", Status: 415}.Check(t, s)
	httpCase{
		Method: http.MethodPut, Target: target, Header: bearer + ifAny, Body: samples["png"], Status: 200,
		Has: `"webp":"http://example.com/static/img/over/Odd%20Name.png.webp","renditions":{"`,
	}.Check(t, s)
	httpCase{
		Method: http.MethodPut, Target: target, Header: bearer + ifAny, Body: samples["png"], Status: 200, Has: `}}],"cached_for":90}`,
	}.Check(t, s)
	objects := s.Objects(t)
	if len(objects) != 2 || objects["img/over/Odd Name.png"] != samples["png"] || objects["img/over/Odd Name.png.webp"] == "old" {
		t.Errorf("stored are %d objects", len(objects))
	}
}

// TestReplaceLimits: a body is bounded like that of an upload.
func TestReplaceLimits(t *testing.T) {
	t.Parallel()
	newSite := func(t *testing.T) *site {
		t.Helper()
		s := newSiteWith(t, media.Limits{MaxBody: 20}, func(c *media.Config) {
			c.Accounts[someKey].May = []string{"replace"}
			c.FileAliases["short"] = &media.FileAlias{AliasOptions: media.AliasOptions{Storage: "replacing", MaxSize: 10}}
		})
		s.Put(t, "file/short/a.txt", "old")
		return s
	}
	for _, unknown := range []bool{false, true} {
		for length, status := range map[int]int{0: 200, 10: 200, 11: 413, 21: 413, 100: 413} {
			t.Run(fmt.Sprint(length, unknown), func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				r := s.Request(t, http.MethodPut, itemsPath+"file/short/a.txt", bearer+ifAny, strings.Repeat("x", length))
				if unknown {
					r.ContentLength = -1
				}
				if got := s.Send(t, r); got.Status != status {
					t.Errorf("%d %s, want %d", got.Status, got.Body, status)
				}
			})
		}
	}
	s := newSite(t)
	r := s.Request(t, http.MethodPut, itemsPath+"file/short/a.txt", bearer+ifAny, "")
	r.Body, r.ContentLength = http.NoBody, 1<<40
	s.Unread(t, r, http.StatusRequestEntityTooLarge)
}

// TestReplaceTime: a body that takes too long is refused.
func TestReplaceTime(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{MaxUploadTime: options.Duration(30 * time.Millisecond)}, func(c *media.Config) {
		c.Accounts[someKey].May = []string{"replace"}
	})
	s.Put(t, "file/replacing/a.txt", "old")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, target, testservice.Endless{})
	r.Header.Set("Authorization", "Bearer "+s.Token(t))
	r.Header.Set("If-Match", "*")
	w := httptest.NewRecorder()
	s.Handler.ServeHTTP(w, r)
	if got, _ := s.Stored(t, "file/replacing/a.txt"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "longer than 30ms") || got != "old" {
		t.Errorf("%d %s, stored is %q", w.Code, w.Body, got)
	}
}

// TestReplaceCut: a body that ends too early replaces nothing, and a refused one is read to the end
// of the connection, so that its client receives the response.
func TestReplaceCut(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	server := httptest.NewServer(s.Handler)
	defer server.Close()
	for condition, want := range map[string]string{"*": "HTTP/1.1 400", `"x"`: "HTTP/1.1 412"} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(conn, "PUT "+target+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nIf-Match: "+condition+
			"\r\nAuthorization: Bearer "+s.Token(t)+"\r\n\r\nhalf")
		if err == nil {
			err = conn.(*net.TCPConn).CloseWrite()
		}
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), want) || !strings.Contains(string(answer), "Connection: close") {
			t.Errorf("%q, %v, want %s", answer, err, want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, _ := s.Stored(t, "file/replacing/a.txt"); got != "content of file/replacing/a.txt" {
		t.Errorf("stored is %q", got)
	}
}

// dated is a backend without entity tags that may store objects of different times.
type dated struct {
	untagged
	isDated bool
}

func (d *dated) Features() storagedrivers.Features {
	f := d.untagged.Features()
	f.Dated = d.isDated
	return f
}

// TestWeakCondition: the tag of size and time is a condition where all items of a name have
// different times, and nowhere else.
func TestWeakCondition(t *testing.T) {
	t.Parallel()
	for name, isDated := range map[string]bool{"dated": true, "not dated": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withItemsOn(t, &dated{untagged{memory.New()}, isDated})
			target := itemsPath + "file/replacing/a.txt"
			status := map[bool]int{true: 200, false: 412}
			tag := func() string {
				return s.Do(t, http.MethodHead, "/static/file/replacing/a.txt", "", "").Header.Get("ETag")
			}
			old := tag()
			if !strings.HasPrefix(old, `W/"`) {
				t.Fatalf("tag %s, want a weak one", old)
			}
			replace := httpCase{Method: http.MethodPut, Target: target, Body: "other"}
			for _, c := range []struct {
				tag    string
				status int
			}{{old[2:], 412}, {old, status[isDated]}, {old, 412}, {`"x", ` + tag(), 412}, {"*", 200}} {
				replace.Header, replace.Status = bearer+"If-Match: "+c.tag, c.status
				replace.Check(t, s)
			}
			remove := httpCase{Method: http.MethodDelete, Target: target, Header: bearer + "If-Match: " + tag(), Status: status[isDated]}
			remove.Check(t, s)
		})
	}
}

// TestTransferItem: an item is moved or copied, and the answer has the new one as in a list.
func TestTransferItem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, target, body, key, copyKey string }{
		{"new name", "file/one/a.txt", "to=sub/new.txt", "file/one/sub/new.txt", ""},
		{"sanitized", "file/one/a.txt", "to=Sub/N+e+w.TXT", "file/one/sub/n-e-w.txt", ""},
		{"another alias", "file/one/a.txt", "to=new.txt&to_alias=content", "file/content/new.txt", ""},
		{"another storage", "file/one/a.txt", "to=A+B.txt&to_alias=exact", "file/exact/A B.txt", ""},
		{"dated", "file/one/a.txt", "to=new.txt&to_alias=dated", "file/dated/new.txt", ""},
		{"itself", "file/one/a.txt", "to=a.txt", "file/one/a.txt", "file/one/a-" + noonSecond + ".txt"},
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
				list, names := s.Do(t, http.MethodPost, itemsPath+c.target, urlencoded+bearer, body).Listed(t)
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
		transferCase("alias twice", "to=b.txt&to_alias=one&to_alias=one", 400, "to_alias is sent twice"),
		transferCase("long", "to="+strings.Repeat("a", 1025)+".txt", 400, "too long"),
		transferCase("overwrite", "to=c.txt&overwrite=yes", 400, "the field overwrite is no"),
		transferCase("overwrite twice", "to=c.txt&overwrite=no&overwrite=no", 400, "overwrite is sent twice"),
		transferCase("taken", "to=a+b%252F%3F%23.txt&to_alias=exact&overwrite=no", 409, "already an item of this name"),
		transferCase("content", "to=b.pdf", 415, "pdf"),
		transferCase("unknown alias", "to=b.txt&to_alias=none", 404, "unknown alias"),
		transferCase("too large", "to=b.txt&to_alias=small", 413, "larger than 10 bytes"),
		transferCase("storage down", "to=b.txt&to_alias=broken", 503, "cannot be reached"),
		{Name: "missing", Target: one + "none.txt", Header: urlencoded + bearer, Body: "to=b.txt", Status: 404, Has: "no such item"},
		{Name: "variant", Target: itemsPath + "image/sized/a.png.webp", Header: urlencoded + bearer, Body: "to=b.webp", Status: 404},
		{Name: "source down", Target: itemsPath + "file/broken/a.txt", Header: urlencoded + bearer, Body: "to=b.txt", Status: 503},
		{Name: "any", Target: one + "a.txt", Header: urlencoded + bearer + "If-Match: *", Body: "to=b2.txt", Status: 200},
		{Name: "multipart", Target: one + "a.txt", Header: multipart + bearer, Body: form(field("to", "b2.txt")), Status: 200},
	})
}

// TestTransferRights: the account needs both aliases, also right before the commit.
func TestTransferRights(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	const header = urlencoded + "Authorization: Bearer $OTHER" // which may use "two" only
	for _, c := range []httpCase{
		{Target: itemsPath + "file/two/a.txt", Body: "to=b.txt&to_alias=one", Status: 403, Has: "may not use the alias"},
		{Target: itemsPath + "file/two/a.txt", Body: "to=b.txt&to_alias=none", Status: 403},
		{Target: itemsPath + "file/two/a.txt", Body: "to=b.txt", Status: 200},
	} {
		c.Header = header
		c.Check(t, s)
	}
	for _, lost := range []string{"one", "exact"} {
		s, body := withUsers(t), "to=users/alice/b.txt&to_alias=exact"
		earlier := s.Change
		s.Change = func(c *media.Config) {
			earlier(c)
			c.Accounts["members"].Aliases = slices.DeleteFunc(c.Accounts["members"].Aliases, func(alias string) bool { return alias == lost })
		}
		next := s.Service(t, media.Limits{}, testservice.Account())
		s.Driver.Fail = func(_, key string) error {
			if key == "file/one/users/alice/a.txt" {
				s.Current.Store(next)
			}
			return nil
		}
		r := s.Request(t, http.MethodPost, itemsPath+"file/one/users/alice/a.txt", asAlice+urlencoded, body)
		s.Unread(t, r, http.StatusForbidden)
		if _, ok := s.Stored(t, "file/one/users/alice/a.txt"); !ok {
			t.Errorf("without %s the item is moved", lost)
		}
	}
}

// TestRefusedWritesAreReported: a refused move, copy or replacement is reported as such, once.
func TestRefusedWritesAreReported(t *testing.T) {
	t.Parallel()
	observer := new(recorder)
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Observer = observer })
	s.Put(t, "file/one/a.txt", "text")
	check := func(method, header, body string, status int, isTransfer, copies bool) {
		t.Helper()
		alias, to := "one", ""
		if form, err := url.ParseQuery(body); err == nil && status != 403 {
			alias, to = cmp.Or(form.Get("to_alias"), alias), cmp.Or(form.Get("copy_to"), form.Get("to"))
		}
		observer.refused = nil
		httpCase{Method: method, Target: itemsPath + "file/one/a.txt", Header: header, Body: body, Status: status}.Check(t, s)
		if len(observer.refused) != 1 {
			t.Fatalf("%s %s: %+v", method, body, observer.refused)
		}
		if req := observer.refused[0]; req.Alias != alias || (req.Transfer != nil) != isTransfer || isTransfer && (req.Transfer.Copy != copies || req.Transfer.Filename != "a.txt" || req.Transfer.To != to) ||
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
