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
		cases[i].method = http.MethodPut
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
			name: "any", target: target, header: bearer + ifAny, body: "new", status: 200,
			text: `{"success":true,"result":[{"full_path":"http://example.com/static/file/replacing/a.txt","filename":"a.txt"}],"cached_for":0}` + "\n",
		},
		httpCase{name: "media type", target: target, header: bearer + ifAny + "Content-Type: text/plain\n", body: "new", status: 200},
		httpCase{name: "no condition", target: target, header: bearer, body: "new", status: 428, has: "If-Match"},
		httpCase{name: "malformed condition", target: target, header: bearer + "If-Match: x", body: "new", status: 400, has: "If-Match"},
		httpCase{name: "another", target: target, header: bearer + `If-Match: "x"`, body: "new", status: 412, has: "another one"},
		httpCase{name: "missing", target: itemsPath + "file/replacing/none.txt", header: bearer + ifAny, body: "new", status: 404, has: "no such item"},
		httpCase{name: "folder", target: itemsPath + "file/replacing/none", header: bearer + ifAny, body: "new", status: 415},
		httpCase{name: "variant", target: itemsPath + "image/sized/a.png.webp", header: bearer + ifAny, body: "new", status: 404},
		httpCase{name: "unfinished upload", target: itemsPath + "file/one/@uploads/x.txt", header: bearer + ifAny, body: "new", status: 404},
		httpCase{name: "append time", target: one, header: bearer + ifAny, body: "new", status: 409, has: "never replaced"},
		httpCase{name: "append time and another", target: one, header: bearer + `If-Match: "x"`, body: "new", status: 409},
		httpCase{name: "append time without condition", target: one, header: bearer, body: "new", status: 428},
		httpCase{name: "gzip", target: target, header: bearer + ifAny + "Content-Encoding: gzip", body: "new", status: 415, has: "Content-Encoding"},
		httpCase{name: "part", target: target, header: bearer + ifAny + "Content-Range: bytes 0-2/3", body: "new", status: 400, has: "Content-Range"},
		httpCase{name: "content", target: itemsPath + "image/replacing/a.png", header: bearer + ifAny, body: "new", status: 404},
		httpCase{name: "unknown alias", target: itemsPath + "file/none/a.txt", header: bearer + ifAny, body: "new", status: 404, has: "unknown alias"},
		httpCase{name: "dots", target: itemsPath + "file/replacing/%2e%2e/a.txt", header: bearer + ifAny, body: "new", status: 400},
		httpCase{name: "no token", target: target, header: ifAny, body: "new", status: 401},
		httpCase{name: "another account", target: target, header: ifAny + "Authorization: Bearer $OTHER", body: "new", status: 403, has: "may not use the alias"},
		httpCase{name: "alias", target: itemsPath + "file/replacing", header: bearer + ifAny, body: "new", status: 405},
	))
	run(t, may("upload", "list", "delete"), puts(
		httpCase{name: "right", target: target, header: bearer + ifAny, body: "new", status: 403, has: "the right replace"},
	))
	run(t, func(t *testing.T) *site {
		t.Helper()
		s := withItems(t)
		s.ticket(t, "kind=file&alias=replacing")
		return s
	}, puts(httpCase{name: "ticket", target: target, header: ticketBearer + ifAny, body: "new", status: 403, has: "send a token"}))
}

// TestReplaceTagged: only the item with the tag is replaced, and a lost update is noticed.
func TestReplaceTagged(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	tag := "If-Match: " + s.do(t, http.MethodHead, "/static/file/replacing/a.txt", "", "").header.Get("ETag")
	put := func(body string, status int) {
		t.Helper()
		httpCase{method: http.MethodPut, target: target, header: bearer + tag, body: body, status: status}.check(t, s)
	}
	put("first", 200)
	put("second", 412)
	if got, _ := s.stored(t, "file/replacing/a.txt"); got != "first" {
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
		s.put(t, key, "old")
	}
	const target = itemsPath + "image/over/Odd%20Name.png"
	httpCase{method: http.MethodPut, target: target, header: bearer + ifAny, body: "no image", status: 415}.check(t, s)
	httpCase{
		method: http.MethodPut, target: target, header: bearer + ifAny, body: samples["png"], status: 200,
		has: `"webp":"http://example.com/static/img/over/Odd%20Name.png.webp","renditions":{"`,
	}.check(t, s)
	httpCase{
		method: http.MethodPut, target: target, header: bearer + ifAny, body: samples["png"], status: 200, has: `}}],"cached_for":90}`,
	}.check(t, s)
	objects := s.objects(t)
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
		s.put(t, "file/short/a.txt", "old")
		return s
	}
	for _, unknown := range []bool{false, true} {
		for length, status := range map[int]int{0: 200, 10: 200, 11: 413, 21: 413, 100: 413} {
			t.Run(fmt.Sprint(length, unknown), func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				r := s.request(t, http.MethodPut, itemsPath+"file/short/a.txt", bearer+ifAny, strings.Repeat("x", length))
				if unknown {
					r.ContentLength = -1
				}
				if got := s.send(t, r); got.status != status {
					t.Errorf("%d %s, want %d", got.status, got.body, status)
				}
			})
		}
	}
	s := newSite(t)
	r := s.request(t, http.MethodPut, itemsPath+"file/short/a.txt", bearer+ifAny, "")
	r.Body, r.ContentLength = http.NoBody, 1<<40
	s.unread(t, r, http.StatusRequestEntityTooLarge)
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
			s.change = func(c *media.Config) { c.Accounts[someKey].May = []string{"list"} }
			s.reload(s.service(t, media.Limits{}, changed))
		}, 401},
		{"item", func(t *testing.T, s *site) {
			t.Helper()
			httpCase{method: http.MethodPut, target: target, header: bearer + ifAny, body: "theirs", status: 200}.check(t, s)
		}, 412},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := withItems(t)
			tag := s.do(t, http.MethodHead, "/static/file/replacing/a.txt", "", "").header.Get("ETag")
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, target, &meanwhile{
				first: strings.NewReader("new "), second: strings.NewReader("content"), between: func() { c.change(t, s) },
			})
			r.Header.Set("Authorization", "Bearer "+s.token(t))
			r.Header.Set("If-Match", tag)
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			if got, _ := s.stored(t, "file/replacing/a.txt"); w.Code != c.status || (got == "new content") != (c.status == 200) {
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
	s.put(t, "file/replacing/a.txt", "old")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, target, new(drip))
	r.Header.Set("Authorization", "Bearer "+s.token(t))
	r.Header.Set("If-Match", "*")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if got, _ := s.stored(t, "file/replacing/a.txt"); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "longer than 30ms") || got != "old" {
		t.Errorf("%d %s, stored is %q", w.Code, w.Body, got)
	}
}

// TestReplaceCut: a body that ends too early replaces nothing, and a refused one is read to the end
// of the connection, so that its client receives the response.
func TestReplaceCut(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	server := httptest.NewServer(s.handler)
	defer server.Close()
	for condition, want := range map[string]string{"*": "HTTP/1.1 400", `"x"`: "HTTP/1.1 412"} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(conn, "PUT "+target+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\nIf-Match: "+condition+
			"\r\nAuthorization: Bearer "+s.token(t)+"\r\n\r\nhalf")
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
	if got, _ := s.stored(t, "file/replacing/a.txt"); got != "content of file/replacing/a.txt" {
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
				return s.do(t, http.MethodHead, "/static/file/replacing/a.txt", "", "").header.Get("ETag")
			}
			old := tag()
			if !strings.HasPrefix(old, `W/"`) {
				t.Fatalf("tag %s, want a weak one", old)
			}
			replace := httpCase{method: http.MethodPut, target: target, body: "other"}
			for _, c := range []struct {
				tag    string
				status int
			}{{old[2:], 412}, {old, status[isDated]}, {old, 412}, {`"x", ` + tag(), 412}, {"*", 200}} {
				replace.header, replace.status = bearer+"If-Match: "+c.tag, c.status
				replace.check(t, s)
			}
			remove := httpCase{method: http.MethodDelete, target: target, header: bearer + "If-Match: " + tag(), status: status[isDated]}
			remove.check(t, s)
		})
	}
}
