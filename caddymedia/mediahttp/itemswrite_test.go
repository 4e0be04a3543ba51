package mediahttp_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/options"
)

const (
	ifAny  = "If-Match: *\n"
	target = itemsPath + "file/replacing/a.txt"
)

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
		httpCase{Name: "media type", Target: target, Header: bearer + ifAny + "Content-Type: text/plain\n", Body: "new", Status: 200},
		httpCase{Name: "no condition", Target: target, Header: bearer, Body: "new", Status: 428, Has: "If-Match"},
		httpCase{Name: "malformed condition", Target: target, Header: bearer + "If-Match: x", Body: "new", Status: 400, Has: "If-Match"},
		httpCase{Name: "another", Target: target, Header: bearer + `If-Match: "x"`, Body: "new", Status: 412, Has: "another one"},
		httpCase{Name: "missing", Target: itemsPath + "file/replacing/none.txt", Header: bearer + ifAny, Body: "new", Status: 404, Has: "no such item"},
		httpCase{Name: "folder", Target: itemsPath + "file/replacing/none", Header: bearer + ifAny, Body: "new", Status: 415},
		httpCase{Name: "variant", Target: itemsPath + "image/sized/a.png.webp", Header: bearer + ifAny, Body: "new", Status: 404},
		httpCase{Name: "unfinished upload", Target: itemsPath + "file/one/@uploads/x.txt", Header: bearer + ifAny, Body: "new", Status: 404},
		httpCase{Name: "append time", Target: one, Header: bearer + ifAny, Body: "new", Status: 409, Has: "never replaced"},
		httpCase{Name: "append time and another", Target: one, Header: bearer + `If-Match: "x"`, Body: "new", Status: 409},
		httpCase{Name: "append time without condition", Target: one, Header: bearer, Body: "new", Status: 428},
		httpCase{Name: "gzip", Target: target, Header: bearer + ifAny + "Content-Encoding: gzip", Body: "new", Status: 415, Has: "Content-Encoding"},
		httpCase{Name: "part", Target: target, Header: bearer + ifAny + "Content-Range: bytes 0-2/3", Body: "new", Status: 400, Has: "Content-Range"},
		httpCase{Name: "content", Target: itemsPath + "image/replacing/a.png", Header: bearer + ifAny, Body: "new", Status: 404},
		httpCase{Name: "unknown alias", Target: itemsPath + "file/none/a.txt", Header: bearer + ifAny, Body: "new", Status: 404, Has: "unknown alias"},
		httpCase{Name: "dots", Target: itemsPath + "file/replacing/%2e%2e/a.txt", Header: bearer + ifAny, Body: "new", Status: 400},
		httpCase{Name: "no token", Target: target, Header: ifAny, Body: "new", Status: 401},
		httpCase{Name: "another account", Target: target, Header: ifAny + "Authorization: Bearer $OTHER", Body: "new", Status: 403, Has: "may not use the alias"},
		httpCase{Name: "alias", Target: itemsPath + "file/replacing", Header: bearer + ifAny, Body: "new", Status: 405},
	))
	run(t, may("upload", "list", "delete"), puts(
		httpCase{Name: "right", Target: target, Header: bearer + ifAny, Body: "new", Status: 403, Has: "the right replace"},
	))
	run(t, func(t *testing.T) *site {
		t.Helper()
		s := withItems(t)
		s.Ticket(t, "kind=file&alias=replacing")
		return s
	}, puts(httpCase{Name: "ticket", Target: target, Header: ticketBearer + ifAny, Body: "new", Status: 403, Has: "send a token"}))
}

// TestReplaceTagged: only the item with the tag is replaced, and a lost update is noticed.
func TestReplaceTagged(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	tag := "If-Match: " + s.Do(t, http.MethodHead, "/static/file/replacing/a.txt", "", "").Header.Get("ETag")
	put := func(body string, status int) {
		t.Helper()
		httpCase{Method: http.MethodPut, Target: target, Header: bearer + tag, Body: body, Status: status}.Check(t, s)
	}
	put("first", 200)
	put("second", 412)
	if got, _ := s.Stored(t, "file/replacing/a.txt"); got != "first" {
		t.Errorf("stored is %q", got)
	}
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

// TestReplaceMeanwhile: nothing is replaced if the account loses its right, or another request
// replaces the item, while the body is received.
func TestReplaceMeanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*testing.T, *site)
		status int
	}{
		{"nothing", func(*testing.T, *site) {}, 200},
		{"right", func(t *testing.T, s *site) {
			t.Helper()
			changed := account()
			changed.Rights = []access.Right{access.List}
			s.Change = func(c *media.Config) { c.Accounts[someKey].May = []string{"list"} }
			s.Reload(s.Service(t, media.Limits{}, changed))
		}, 401},
		{"item", func(t *testing.T, s *site) {
			t.Helper()
			httpCase{Method: http.MethodPut, Target: target, Header: bearer + ifAny, Body: "theirs", Status: 200}.Check(t, s)
		}, 412},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := withItems(t)
			tag := s.Do(t, http.MethodHead, "/static/file/replacing/a.txt", "", "").Header.Get("ETag")
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, target, meanwhile("new content", func() { c.change(t, s) }))
			r.Header.Set("Authorization", "Bearer "+s.Token(t))
			r.Header.Set("If-Match", tag)
			w := httptest.NewRecorder()
			s.Handler.ServeHTTP(w, r)
			if got, _ := s.Stored(t, "file/replacing/a.txt"); w.Code != c.status || (got == "new content") != (c.status == 200) {
				t.Errorf("%d %s, stored is %q", w.Code, w.Body, got)
			}
		})
	}
}

// TestReplaceTime: a body that takes too long is refused.
func TestReplaceTime(t *testing.T) {
	t.Parallel()
	s := newSiteWith(t, media.Limits{MaxUploadTime: options.Duration(30 * time.Millisecond)}, func(c *media.Config) {
		c.Accounts[someKey].May = []string{"replace"}
	})
	s.Put(t, "file/replacing/a.txt", "old")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, target, new(drip))
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
