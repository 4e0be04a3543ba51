package items_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/front/caller"
	"github.com/caddymedia/media/caddymedia/internal/front/items"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/media"
)

// everything is the account of a caller who may change all items.
var everything = access.Account{APIKey: "alice", Rights: access.Rights()}

// callerCase is a request for items of a caller without a token.
type callerCase struct {
	method, path, header, body string // path is after the kind of files
	status                     int
	has                        string // a part of the body
}

// check sends the request and checks the response.
func (c callerCase) check(t *testing.T, s *site, known caller.Known) {
	t.Helper()
	r := s.Request(t, cmp.Or(c.method, http.MethodPost), "/panel/items", c.header, c.body)
	w := httptest.NewRecorder()
	if err := items.Serve(s.Gate, w, r, item.File, c.path, known); err != nil {
		t.Fatal(err)
	}
	if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) || w.Header().Get("WWW-Authenticate") != "" ||
		w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%s %s %s: %d %v %s, want %d %s", c.method, c.path, c.body, w.Code, w.Header(), w.Body, c.status, c.has)
	}
	var answer struct{ Success bool }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Success != (w.Code == http.StatusOK) {
		t.Errorf("%d %s: %v", w.Code, w.Body, err)
	}
}

// asPanel returns a caller of the panel.
func asPanel(account access.Account) caller.Known {
	return caller.Known{Account: account, Origin: item.OriginPanel}
}

// TestItemsOfCaller: a caller without a token changes the items of all aliases like an account,
// within the aliases and rights of its own.
func TestItemsOfCaller(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	for _, c := range []callerCase{
		{method: http.MethodGet, path: "one", status: 200, has: `"full_path":"http://example.com/static/file/one/a.txt"`},
		{method: http.MethodGet, path: "one/a.txt", status: 200, has: `"etag":"\"`},
		{path: "one/a.txt", header: urlencoded, body: "to=moved.txt&to_alias=two", status: 200, has: "/static/file/two/moved.txt"},
		{path: "two/moved.txt", header: urlencoded, body: "copy_to=back.txt&to_alias=one", status: 200, has: "/static/file/one/back.txt"},
		{method: http.MethodPut, path: "replacing/a.txt", body: "new", status: 428, has: "If-Match"},
		{method: http.MethodPut, path: "replacing/a.txt", header: ifAny, body: "new", status: 200, has: `"cached_for":0`},
		{method: http.MethodDelete, path: "one/b.txt", header: `If-Match: "x"`, status: 412},
		{method: http.MethodDelete, path: "one/b.txt", status: 200},
		{method: http.MethodDelete, path: "exact/a%20b%252F%3F%23.txt", status: 200},
		{path: "two", header: urlencoded, body: "action=delete&filename=moved.txt&filename=none.txt", status: 200, has: `"deleted":false`},
		{path: "one", header: urlencoded, body: "action=delete&folder=sub", status: 200, has: `"more":false`},
		{method: http.MethodPatch, path: "one", status: 405, has: "GET, HEAD, POST"},
		{method: http.MethodPatch, path: "one/a.txt", status: 405, has: "DELETE, GET, HEAD, POST, PUT"},
		{method: http.MethodDelete, path: "none/a.txt", status: 404, has: "unknown alias"},
		{method: http.MethodDelete, path: "", status: 400, has: "empty segment"},
		{method: http.MethodDelete, path: "one/../two/a.txt", status: 400, has: ".."},
		{method: http.MethodDelete, path: "one/sub%2Fc.txt", status: 400, has: "%2F"},
		{method: http.MethodDelete, path: "one/%zz", status: 400, has: "malformed"},
	} {
		c.check(t, s, asPanel(everything))
	}
	few := asPanel(access.Account{APIKey: "few", Aliases: []string{"one"}, Rights: []access.Right{access.Delete}})
	callerCase{method: http.MethodGet, path: "one", status: 403, has: "the right list"}.check(t, s, few)
	callerCase{method: http.MethodDelete, path: "two/a.txt", status: 403, has: "may not use the alias"}.check(t, s, few)
	want := []string{"file/one/@uploads/x.txt", "file/one/back.txt", "file/replacing/a.txt", "file/two/a.txt"}
	if got := s.Keys(t, "file/"); !slices.Equal(got, want) {
		t.Errorf("stored are %q, want %q", got, want)
	}
}

// TestItemsConfirm: nothing is changed if the right to change items is withdrawn before a request,
// while its body is read, or before its commit. The running service is asked after a reload.
func TestItemsConfirm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		callerCase
		asked int // how often the caller is
	}{
		{callerCase{method: http.MethodDelete, path: "one/a.txt"}, 1},
		{callerCase{path: "one", header: urlencoded, body: "action=delete&filename=a.txt"}, 2},
		{callerCase{path: "one/a.txt", header: urlencoded, body: "to=b.txt"}, 3},
		{callerCase{path: "one/a.txt", header: urlencoded, body: "copy_to=b.txt"}, 3},
		{callerCase{method: http.MethodPut, path: "replacing/a.txt", header: ifAny, body: "new"}, 2},
		{callerCase{method: http.MethodPut, path: "replacing/a.txt", header: ifAny + "Idempotency-Key: x\n", body: "new"}, 2},
	} {
		for confirmed := range c.asked + 1 {
			t.Run(fmt.Sprint(c.method, c.body, confirmed), func(t *testing.T) {
				t.Parallel()
				s := withItems(t)
				before := s.Objects(t)
				calls := 0
				known := asPanel(everything)
				known.Confirm = func(running *service.Service) bool {
					if running != service.Of(s.First) {
						t.Error("asked for another service than the running one")
					}
					calls++
					return calls <= confirmed
				}
				request := c.callerCase
				request.status, request.has = http.StatusUnauthorized, "logged out"
				if confirmed == c.asked {
					request.status, request.has = http.StatusOK, ""
				}
				request.check(t, s, known)
				if changed := asText(t, s.Objects(t)) != asText(t, before); changed != (confirmed == c.asked) {
					t.Errorf("changed: %t", changed)
				}
			})
		}
	}
}

// TestItemsReload: a request that outlasts its configuration is confirmed by the next one.
func TestItemsReload(t *testing.T) {
	t.Parallel()
	for _, c := range []callerCase{
		{path: "one", header: urlencoded, body: "action=delete&filename=a.txt"},
		{path: "one/a.txt", header: urlencoded, body: "to=b2.txt"},
		{method: http.MethodPut, path: "replacing/a.txt", header: ifAny, body: "new"},
	} {
		for _, status := range []int{http.StatusOK, http.StatusUnauthorized} {
			s := withItems(t)
			next := s.Service(t, media.Limits{})
			known := asPanel(everything)
			known.Confirm = func(running *service.Service) bool { return running == service.Of(s.First) || status == http.StatusOK }
			r := s.Request(t, cmp.Or(c.method, http.MethodPost), "/", c.header, c.body)
			r.Body = meanwhile(c.body, func() { s.Current.Store(next) })
			w := httptest.NewRecorder()
			if err := items.Serve(s.Gate, w, r, item.File, c.path, known); err != nil || w.Code != status {
				t.Errorf("%s %s: %d %s, %v, want %d", c.method, c.body, w.Code, w.Body, err, status)
			}
		}
	}
}

// TestItemsOfCallerRepeated: a request under an Idempotency-Key is carried out once. The key of an
// account of the same name is another one.
func TestItemsOfCallerRepeated(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	const key = "Idempotency-Key: once\n"
	for _, c := range []callerCase{
		{method: http.MethodPut, path: "replacing/a.txt", header: ifAny + key, body: "new", status: 200},
		{path: "one/a.txt", header: urlencoded + key, body: "copy_to=copy.txt", status: 200, has: `"filename":"copy.txt"`},
		{path: "one/a.txt", header: urlencoded + key, body: "to=moved.txt&to_alias=two", status: 422}, // another length
		{path: "one/b.txt", header: urlencoded + key, body: "to=moved.txt&to_alias=two", status: 200, has: "two/moved.txt"},
		{path: "one", header: urlencoded + key, body: "action=delete&filename=sub/c.txt", status: 200, has: `"deleted":true`},
		{method: http.MethodDelete, path: "one/a.txt", header: key, status: 200},
	} {
		for n := range 2 {
			r := s.Request(t, cmp.Or(c.method, http.MethodPost), "/panel/items/file/"+c.path, c.header, c.body)
			w := httptest.NewRecorder()
			if err := items.Serve(s.Gate, w, r, item.File, c.path, asPanel(everything)); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) ||
				(w.Header().Get("Idempotency-Replayed") == "true") != (n > 0 && c.status == 200) {
				t.Errorf("%s %s %s, time %d: %d %v %s", c.method, c.path, c.body, n, w.Code, w.Header(), w.Body)
			}
		}
	}
	known := asPanel(everything)
	known.Origin = item.OriginGo
	callerCase{method: http.MethodDelete, path: "one/a.txt", header: key, status: 404}.check(t, s, known)
}

// TestItemsOfCallerReported: each change is reported as one of the panel, with the caller as
// account.
func TestItemsOfCallerReported(t *testing.T) {
	t.Parallel()
	o := new(recorder)
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) { c.Observer = o })
	for _, key := range []string{"file/one/a.txt", "file/one/b.txt", "file/replacing/a.txt"} {
		s.Put(t, key, "content")
	}
	for _, c := range []callerCase{
		{path: "one/a.txt", header: urlencoded, body: "copy_to=c.txt", status: 200},
		{path: "one/a.txt", header: urlencoded, body: "to=d.txt", status: 200},
		{path: "one/a.txt", header: urlencoded, body: "to=d.txt", status: 404},
		{method: http.MethodPut, path: "replacing/a.txt", header: ifAny, body: "new", status: 200},
		{method: http.MethodPut, path: "replacing/a.txt", body: "new", status: 428},
		{method: http.MethodDelete, path: "one/c.txt", status: 200},
		{method: http.MethodDelete, path: "one/c.txt", status: 404},
		{path: "one", header: urlencoded, body: "action=delete&filename=d.txt", status: 200},
		{path: "one", header: urlencoded, body: "action=x", status: 400},
	} {
		c.check(t, s, asPanel(everything))
		if _, got := o.take(); len(got) == 0 || slices.ContainsFunc(got, func(actor item.Actor) bool {
			return actor.Origin != item.OriginPanel || actor.Account != "alice" || actor.Client == ""
		}) {
			t.Errorf("%s %s %s: reported by %+v", c.method, c.path, c.body, got)
		}
	}
}
