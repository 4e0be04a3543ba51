package caller_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/media"
)

// failed checks the status and the message of a refusal.
func failed(t *testing.T, r *reply, status int, has string) {
	t.Helper()
	if r.Status != status || !strings.Contains(r.Body, has) {
		t.Fatalf("%d %s, want %d and %q", r.Status, r.Body, status, has)
	}
}

// TestRetryRecovers: a request whose key cannot be looked up, or that cannot be kept before its
// change, is refused, also if the token store is back a moment later. It is never carried out
// without its key.
func TestRetryRecovers(t *testing.T) {
	t.Parallel()
	for _, c := range interruptible {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			m := newMortal(t)
			m.setTag(t)
			c.Header += bearer + retryKey
			stored := strings.Join(m.contents(t), "\n")
			refused := func(has string) {
				t.Helper()
				failed(t, m.attempt(t, c), 503, has)
				if after := strings.Join(m.contents(t), "\n"); after != stored {
					t.Fatalf("it was carried out: %q", after)
				}
			}
			for before := range int32(2) {
				m.Store.NoLoads.Store(before + 1)
				refused("tokens cannot be checked now")
				m.Store.NoLoads.Store(0)
			}
			m.Store.Step = endAfter(1) // the attempt begins
			refused("the Idempotency-Key cannot be used now")
			m.Store.Step = nil
			m.Passed.Add(int64(leaseTime))
			for _, want := range []string{"", "true"} {
				if r := m.attempt(t, c); r.Status >= 300 || r.Header.Get("Idempotency-Replayed") != want {
					t.Errorf("%d %s, replayed %q", r.Status, r.Body, r.Header.Get("Idempotency-Replayed"))
				}
			}
		})
	}
}

// TestRetryLost: an attempt that has lost its lease undoes nothing, because the next attempt may
// have taken its items for its own. Its client gets an answer that is repeated.
func TestRetryLost(t *testing.T) {
	t.Parallel()
	for _, alias := range []string{"sized", "replacing"} {
		for _, left := range []bool{false, true} {
			t.Run(fmt.Sprint(alias, " left ", left), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { testRetryLost(t, alias, left) })
			})
		}
	}
}

func testRetryLost(t *testing.T, alias string, left bool) {
	t.Helper()
	m := newMortal(t)
	name := fmt.Sprint("lost-", alias, left) // of this bubble alone, because the process has locks of names
	target, ext, content := filePath, ".txt", "text"
	if alias == "sized" {
		target, ext, content = imagePath, ".png", samples["png"]
	}
	target += "?alias=" + alias
	body := form(file(name+"-1"+ext, content), file(name+"-2"+ext, content))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	first, header := httptest.NewRecorder(), multipart+bearer+retryKey
	m.Driver.Fail = func(op, key string) error {
		if op != "put" || !strings.Contains(key, name+"-2") {
			return nil
		}
		m.Store.Unextended.Store(true)
		time.Sleep(time.Second) // the other item is stored
		if left {
			leave()
		}
		time.Sleep(leaseTime)
		m.Passed.Add(int64(leaseTime))
		return fs.ErrPermission
	}
	m.Handler.ServeHTTP(first, m.Request(t, "POST", target, header, body).WithContext(ctx))
	if first.Code != 409 || first.Header().Get("Retry-After") != "1" {
		t.Errorf("the attempt that is lost: %d %s", first.Code, first.Body)
	}
	if stored := m.StoredAs(t, name+"-1"); len(stored) == 0 {
		t.Error("it has removed its item")
	}
	m.Driver.Fail = nil
	m.Store.Unextended.Store(false)
	for _, want := range []string{"", "true"} {
		r := m.attempt(t, httpCase{Method: "POST", Target: target, Header: header, Body: body})
		if r.Status != 200 || r.Header.Get("Idempotency-Replayed") != want {
			t.Errorf("repeated: %d %s", r.Status, r.Body)
		}
	}
	if stored := m.StoredAs(t, name); alias == "replacing" && len(stored) != 2 {
		t.Errorf("stored %q", stored)
	}
}

// endingBody ends its request, as a client does that resets a stream.
type endingBody struct{ end func() }

func (e endingBody) Read([]byte) (int, error) {
	e.end()
	return 0, context.Canceled
}

// TestRetryForgotten: an attempt that has changed nothing leaves no key, however it ends. The
// answers of an account and of its tickets are kept apart.
func TestRetryForgotten(t *testing.T) {
	t.Parallel()
	m := newMortal(t)
	m.Ticket(t, "kind=file&alias=one&max_files=1")
	for _, credential := range []string{bearer, ticketBearer} {
		ctx, cancel := context.WithCancel(t.Context())
		r := m.Request(t, "PUT", putPath+"one/y.txt", credential+retryKey, "text").WithContext(ctx)
		r.Body = io.NopCloser(endingBody{cancel})
		m.Handler.ServeHTTP(httptest.NewRecorder(), r)
		if r := m.attempt(t, httpCase{Method: "PUT", Target: putPath + "one/y.txt", Header: credential + retryKey, Body: "of another length"}); r.Status != 201 {
			t.Errorf("the key is kept: %d %s", r.Status, r.Body)
		}
	}
	if kept := m.Store.Indexes; len(kept) != 2 || kept[0] == kept[1] {
		t.Errorf("kept in %q", kept)
	}
}

// TestRetrySet: the repetition of a deletion that has failed for a part of its items deletes the
// rest.
func TestRetrySet(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(end func()) error{
		"lost connection": func(end func()) error {
			end()
			return nil
		},
		"failure": func(func()) error { return fs.ErrPermission },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMortal(t)
			body := "action=delete"
			for i := range 30 {
				name := fmt.Sprintf("set%d.txt", i)
				body += "&filename=" + name
				m.attempt(t, httpCase{Method: "PUT", Target: putPath + "one/" + name, Header: bearer, Body: "x"})
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m.Driver.Fail = func(op, _ string) error {
				if op == "delete" {
					return fail(cancel)
				}
				return nil
			}
			m.Handler.ServeHTTP(httptest.NewRecorder(), m.Request(t, "POST", itemsPath+"file/one", bearer+urlencoded+retryKey, body).WithContext(ctx))
			m.Driver.Fail = nil
			again := m.attempt(t, httpCase{Method: "POST", Target: itemsPath + "file/one", Header: bearer + urlencoded + retryKey, Body: body})
			if left := m.StoredAs(t, "one/set"); again.Status != 200 || len(left) > 0 || !strings.Contains(again.Body, `"deleted":true`) {
				t.Errorf("%d items are left: %d %s", len(left), again.Status, again.Body)
			}
		})
	}
}

// TestRetryFolder: a repetition stores nothing outside of the folder that the user has now.
func TestRetryFolder(t *testing.T) {
	t.Parallel()
	s := withUsersAnd(t, media.Limits{}, func(c *media.Config) { c.Accounts["members"].SubFolder = "" })
	put := func() int {
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, s.Request(t, "POST", filePath+"?alias=one", asAlice+multipart+retryKey, form(file("new.txt", "x"))))
		return w.Code
	}
	s.Store.Step = endAfter(2)
	s.Driver.Fail = failPut("new.txt")
	put()
	s.Store.Step, s.Driver.Fail = nil, nil
	s.Passed.Add(int64(leaseTime))
	earlier := s.Change
	s.Change = func(c *media.Config) {
		earlier(c)
		c.Accounts["members"].SubFolder = "users/{http.auth.user.id}"
	}
	s.Current.Store(s.Service(t, media.Limits{}, account()))
	if status := put(); status != 200 || len(s.StoredAs(t, "new.txt")) != 1 || len(s.StoredAs(t, "users/alice/new.txt")) != 1 {
		t.Errorf("status %d, stored %q", status, s.StoredAs(t, "new.txt"))
	}
}

// TestRetryRights: an answer is not replayed for a user without the right or the alias. The tokens
// of an account end with these.
func TestRetryRights(t *testing.T) {
	t.Parallel()
	const item = itemsPath + "file/one/users/alice/a.txt"
	post := httpCase{Method: "POST", Target: filePath, Header: multipart, Body: form(field("alias", "one"), file("n.txt", "x"))}
	move := httpCase{Method: "POST", Target: item, Header: urlencoded, Body: "to=users/alice/n.txt&to_alias=exact"}
	for name, c := range map[string]struct {
		httpCase

		may     []string
		aliases []string
		has     string // empty if the answer is sent again
	}{
		"right to upload": {post, []string{"delete"}, []string{"one"}, "may not upload"},
		"right to delete": {httpCase{Method: "DELETE", Target: item}, []string{"upload"}, []string{"one"}, "may not delete"},
		"alias":           {httpCase{Method: "DELETE", Target: item}, []string{"delete"}, []string{"exact"}, "may not use the alias"},
		"alias of a form": {post, []string{"upload"}, []string{"exact"}, "may not use the alias any more"},
		"alias of a move": {move, []string{"move"}, []string{"one"}, "may not use the alias any more"},
		"others":          {post, []string{"upload"}, []string{"one"}, ""},
		"others, moved":   {move, []string{"move"}, []string{"one", "exact"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withUsersAnd(t, media.Limits{}, func(*media.Config) {})
			do := func() *httptest.ResponseRecorder {
				w := httptest.NewRecorder()
				s.Handler.ServeHTTP(w, s.Request(t, c.Method, c.Target, c.Header+asAlice+retryKey, c.Body))
				return w
			}
			first := do()
			if first.Code != 200 {
				t.Fatal(first.Code, first.Body)
			}
			earlier := s.Change
			s.Change = func(config *media.Config) {
				earlier(config)
				config.Accounts["members"].May, config.Accounts["members"].Aliases = c.may, c.aliases
			}
			s.Current.Store(s.Service(t, media.Limits{}, account()))
			again := do()
			switch {
			case c.has != "" && (again.Code != 403 || !strings.Contains(again.Body.String(), c.has)),
				c.has == "" && (again.Header().Get("Idempotency-Replayed") != "true" || again.Body.String() != first.Body.String()):
				t.Errorf("%d %s", again.Code, again.Body)
			}
		})
	}
}

// TestRetryTicket: the repetition of an upload with a used-up ticket is answered, and an
// interrupted one is counted once.
func TestRetryTicket(t *testing.T) {
	t.Parallel()
	for n := int64(0); ; n++ {
		m := newMortal(t)
		m.Ticket(t, "kind=file&alias=one&max_files=2")
		c := httpCase{Method: "POST", Target: filePath, Header: multipart + ticketBearer + retryKey, Body: form(file("x.txt", "1"), file("y.txt", "2"))}
		m.left.Store(n)
		m.attempt(t, c)
		dead := m.left.Load() < 0
		m.live()
		m.Passed.Add(int64(leaseTime))
		for range 2 {
			if r := m.attempt(t, c); r.Status != 200 {
				t.Fatalf("after %d steps: %d %s", n, r.Status, r.Body)
			}
		}
		c.Header = strings.Replace(c.Header, "k1", "k2", 1)
		if r := m.attempt(t, c); r.Status != 403 {
			t.Fatalf("after %d steps a used-up ticket gets %d %s", n, r.Status, r.Body)
		}
		if !dead {
			return
		}
	}
}

// TestRetryTicketUncounted: items of an earlier attempt stay counted if a repetition cannot count
// them.
func TestRetryTicketUncounted(t *testing.T) {
	t.Parallel()
	for n := int64(0); ; n++ {
		m := newMortal(t)
		m.Ticket(t, "kind=file&alias=one")
		send := func(key, name string) {
			t.Helper()
			header := multipart + ticketBearer + "Idempotency-Key: " + key + "\n"
			m.attempt(t, httpCase{Method: "POST", Target: filePath, Header: header, Body: form(file(name, "text"))})
		}
		m.left.Store(n)
		send("k1", "x1.txt")
		dead := m.left.Load() < 0
		m.live()
		m.Passed.Add(int64(leaseTime))
		m.Store.NoTakes.Store(true)
		send("k1", "x1.txt")
		m.Store.NoTakes.Store(false)
		send("k2", "x2.txt")
		if found := m.StoredAs(t, "one/x"); len(found) != 1 {
			t.Fatalf("after %d steps: %q are stored with a ticket for one", n, found)
		}
		if !dead {
			return
		}
	}
}

// TestRetryTicketBytes: a repetition with other bytes, of a request with a ticket whose answer is
// not kept, stores no more items than were counted. Nor does one after its key was forgotten.
func TestRetryTicketBytes(t *testing.T) {
	t.Parallel()
	const files = 150
	for name, repeats := range map[string]bool{"recognised": true, "compared": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMortalOn(t, repeats)
			m.Ticket(t, fmt.Sprint("kind=file&alias=one&max_files=", files))
			attempt := func(text string) *reply {
				parts := make([]part, files)
				for n := range parts {
					parts[n] = file(fmt.Sprintf("many-%0180d.txt", n), "x"+text)
				}
				parts[0] = file("many-first.txt", "1") // as in each attempt
				return m.attempt(t, httpCase{Method: "POST", Target: filePath, Header: multipart + ticketBearer + retryKey, Body: form(parts...)})
			}
			for range 2 {
				if r := attempt("1"); r.Status != 200 || r.Header.Get("Idempotency-Replayed") != "" {
					t.Fatalf("%d %.200s", r.Status, r.Body)
				}
			}
			failed(t, attempt("2"), 403, "used up")
			if stored := m.StoredAs(t, "one/many"); len(stored) != files {
				t.Errorf("%d files are stored with a ticket for %d", len(stored), files)
			}
		})
	}
}
