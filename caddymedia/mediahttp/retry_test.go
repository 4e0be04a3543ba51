package mediahttp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/access"
	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/caddymedia/internal/service"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers/memory"
)

const (
	retryKey = "Idempotency-Key: k1\n"
	replayed = "Idempotency-Replayed: true"
)

// leaseTime is longer than the lease of a dead process.
const leaseTime = 30 * time.Second

// mortal is a site whose process dies after a number of steps: operations of the storage, and changes of
// requests in the token store.
type mortal struct {
	*site
	left atomic.Int64
}

func newMortal(t *testing.T) *mortal { return newMortalOn(t, false) }

// newMortalOn is newMortal on a backend that recognises the objects of a request, or not.
func newMortalOn(t *testing.T, repeats bool) *mortal {
	t.Helper()
	backend := memory.New()
	backend.Repeats = repeats
	m := &mortal{}
	m.live()
	backend.Now = func() time.Time {
		if m.site == nil {
			return noon
		}
		return m.now()
	}
	m.site = withItemsOn(t, backend)
	m.passed.Add(int64(time.Minute)) // since the items were stored
	m.token(t)                       // later ones would be of another time
	backend.Fail = func(string, string) error { return m.step() }
	m.store.step = m.step
	return m
}

func (m *mortal) live() { m.left.Store(math.MaxInt64) }

func (m *mortal) step() error {
	if m.left.Add(-1) < 0 {
		return fs.ErrPermission // is not repeated
	}
	return nil
}

// attempt sends a request.
func (m *mortal) attempt(t *testing.T, c httpCase) *reply {
	t.Helper()
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, m.request(t, c.method, c.target, c.header, c.body))
	return &reply{w.Code, w.Result().Header, w.Body.String()}
}

// contents returns the contents of all objects, in order.
func (m *mortal) contents(t *testing.T) []string {
	t.Helper()
	objects := m.objects(t)
	contents := make([]string, 0, len(objects))
	for key, content := range objects {
		contents = append(contents, path.Dir(key)+" "+content)
	}
	slices.Sort(contents)
	return contents
}

// interruptible are requests that change items. Their effect is that of the request alone, after each
// crash and repetition.
var interruptible = []httpCase{
	{name: "one file", method: "POST", target: filePath + "?alias=one", header: multipart, body: form(file("a.txt", "text"))},
	{name: "files", method: "POST", target: filePath + "?alias=one", header: multipart, body: form(file("a.txt", "1"), file("new.txt", "2"), file("b.txt", "3"))},
	{name: "equal files", method: "POST", target: filePath + "?alias=one", header: multipart, body: form(file("a.txt", "1"), file("a.txt", "1"), file("n.txt", "1"))},
	{name: "files that overwrite", method: "POST", target: filePath + "?alias=replacing", header: multipart, body: form(file("a.txt", "1"), file("b.txt", "2"))},
	{name: "images", method: "POST", target: imagePath + "?alias=sized", header: multipart, body: form(file("a.png", samples["png"]), file("c.gif", samples["gif"]))},
	{name: "put", method: "PUT", target: putPath + "one/a.txt", body: "text"},
	{name: "put over", method: "PUT", target: putPath + "replacing/a.txt", body: "text"},
	{name: "put to a free name", method: "PUT", target: putPath + "one/free.txt", header: "If-None-Match: *\n", body: "text"},
	{name: "put over a free name", method: "PUT", target: putPath + "replacing/free.txt", header: "If-None-Match: *\n", body: "text"},
	{name: "put over on condition", method: "PUT", target: putPath + "replacing/a.txt", header: "If-Match: $TAG\n", body: "text"},
	{name: "replace", method: "PUT", target: itemsPath + "file/replacing/a.txt", header: "If-Match: $TAG\n", body: "text"},
	{name: "move", method: "POST", target: itemsPath + "file/one/a.txt", header: urlencoded, body: "to=new.txt"},
	{name: "move to a taken name", method: "POST", target: itemsPath + "file/one/a.txt", header: urlencoded, body: "to=b.txt"},
	{name: "move over", method: "POST", target: itemsPath + "file/one/a.txt", header: urlencoded, body: "to=a.txt&to_alias=replacing"},
	{name: "copy", method: "POST", target: itemsPath + "file/one/a.txt", header: urlencoded, body: "copy_to=new.txt"},
	{name: "copy onto itself", method: "POST", target: itemsPath + "file/one/a.txt", header: urlencoded, body: "copy_to=a.txt"},
	{name: "delete", method: "DELETE", target: itemsPath + "file/one/a.txt"},
	{name: "delete on condition", method: "DELETE", target: itemsPath + "file/replacing/a.txt", header: "If-Match: $TAG\n"},
	{name: "delete a set", method: "POST", target: itemsPath + "file/one", header: urlencoded, body: "action=delete&filename=a.txt&filename=none.txt&filename=b.txt"},
	{name: "delete a folder", method: "POST", target: itemsPath + "file/one", header: urlencoded, body: "action=delete&folder=sub"},
}

// TestInterrupted ends the process after each step of an upload. Its repetition succeeds, with the
// answer and the effect of a single request, and so does the next one.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, c := range interruptible {
		if !c.isUpload() {
			continue
		}
		c.header += bearer + retryKey
		for way := range 4 {
			other, repeats := way%2 == 1, way/2 == 1
			t.Run(fmt.Sprint(c.name, " other ", other, " repeats ", repeats), func(t *testing.T) {
				t.Parallel()
				alone := newMortalOn(t, repeats)
				alone.setTag(t)
				want := alone.attempt(t, c)
				if want.status >= 300 {
					t.Fatalf("%d %s", want.status, want.body)
				}
				effect := alone.contents(t)
				if other {
					effect = append(effect, "file/one other", "file/one other")
					slices.Sort(effect)
				}
				for n := 0; ; n++ {
					m, first, dead := interrupted(t, c, n, repeats)
					if other { // whose names may be those that the first attempt was about to use
						for _, name := range []string{"a.txt", "new.txt"} {
							m.attempt(t, httpCase{method: "PUT", target: putPath + "one/" + name, header: bearer, body: "other"})
						}
					}
					again := m.attempt(t, c)
					third := m.attempt(t, c)
					if again.status != want.status || third.status != want.status || third.body != again.body || third.header.Get("Idempotency-Replayed") != "true" {
						t.Fatalf("after %d steps (%d): %d %s, then %d %s", n, first.status, again.status, again.body, third.status, third.body)
					}
					if got := m.contents(t); !slices.Equal(got, effect) && (!other || !c.mayMeet()) {
						t.Errorf("after %d steps: %q\nwant %q", n, got, effect)
					}
					m.wantResult(t, again.body)
					if !dead {
						if n < 5 || again.body != first.body {
							t.Errorf("after %d steps %s, at first %s", n, again.body, first.body)
						}
						return
					}
				}
			})
		}
	}
}

// interrupted makes the first attempt at a request, whose process dies after n steps, and lets its lease
// end.
func interrupted(t *testing.T, c httpCase, n int, repeats bool) (m *mortal, first *reply, dead bool) {
	t.Helper()
	m = newMortalOn(t, repeats)
	m.setTag(t)
	m.left.Store(int64(n))
	first = m.attempt(t, c)
	dead = m.left.Load() < 0
	m.live()
	m.passed.Add(int64(leaseTime))
	return m, first, dead
}

// TestInterruptedChange ends the process after each step of a move, copy or deletion. Its repetition
// succeeds, or is answered as if another caller had made the change. It loses nothing, and a success is
// repeated.
func TestInterruptedChange(t *testing.T) {
	t.Parallel()
	for _, c := range interruptible {
		if c.isUpload() {
			continue
		}
		c.header += bearer + retryKey
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				m, first, dead := interrupted(t, c, n, n%2 == 1)
				m.attempt(t, httpCase{method: "PUT", target: putPath + "one/late.txt", header: bearer, body: "late"})
				m.attempt(t, httpCase{method: "PUT", target: putPath + "one/sub/late.txt", header: bearer, body: "late"})
				late, deletes := 2, strings.HasPrefix(c.name, "delete")
				if name := strings.TrimPrefix(c.touches(), "file/"); deletes && strings.HasSuffix(name, ".txt") {
					m.attempt(t, httpCase{method: "PUT", target: putPath + name, header: bearer, body: "late"})
					late++
				}
				again, third := m.attempt(t, c), m.attempt(t, c)
				ok := again.status == 200 && third.body == again.body && third.header.Get("Idempotency-Replayed") == "true"
				if !ok && (again.status != 404 && again.status != 409 && again.status != 412 || third.status != again.status || !dead) {
					t.Fatalf("after %d steps (%d): %d %s, then %d %s", n, first.status, again.status, again.body, third.status, third.body)
				}
				got := strings.Join(m.contents(t), "\n")
				if n >= 2 && strings.Count(got, "late") != late { // before, the request is not kept
					t.Errorf("after %d steps an item of another request is gone: %s", n, got)
				}
				if deletes == strings.Contains(got, "content of "+c.touches()) {
					t.Errorf("after %d steps: %s", n, got)
				}
				if !dead {
					return
				}
			}
		})
	}
}

// isUpload reports whether the request stores what it brings.
func (c httpCase) isUpload() bool { return c.method == "PUT" || !strings.Contains(c.target, itemsPath) }

// touches returns the key of an item that the request moves, copies or deletes.
func (c httpCase) touches() string {
	key := strings.TrimPrefix(c.target, itemsPath)
	if strings.HasSuffix(key, ".txt") {
		return key
	}
	return key + map[bool]string{true: "/sub/", false: "/a.txt"}[strings.Contains(c.body, "folder")]
}

// mayMeet reports whether an item that others store meanwhile may become one of the request.
func (c httpCase) mayMeet() bool { return strings.Contains(c.target, itemsPath) }

// setTag sets the variable of the item in the alias that overwrites.
func (m *mortal) setTag(t *testing.T) {
	t.Helper()
	m.vars = append(m.vars, "$TAG", m.do(t, http.MethodHead, "/static/file/replacing/a.txt", "", "").header.Get("ETag"))
}

// wantResult checks that the items of an answer are there, each once.
func (m *mortal) wantResult(t *testing.T, body string) {
	t.Helper()
	var answer struct {
		Success bool `json:"success"`
		Result  []struct {
			FullPath string `json:"full_path"`
			Deleted  bool   `json:"deleted"`
			Filename string `json:"filename"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || !answer.Success {
		t.Errorf("%v: %s", err, body)
	}
	seen := map[string]bool{}
	for _, one := range answer.Result {
		if one.FullPath == "" { // of a set
			if one.Deleted == (one.Filename == "none.txt") {
				t.Errorf("deleted: %s", body)
			}
			continue
		}
		if r := m.do(t, http.MethodHead, strings.TrimPrefix(one.FullPath, origin), "", ""); r.status != 200 || seen[one.FullPath] {
			t.Errorf("%s: %d, seen %t", one.FullPath, r.status, seen[one.FullPath])
		}
		seen[one.FullPath] = true
	}
}

// TestRetry: the same request under the same key returns the first answer.
func TestRetry(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	body := form(file("new.txt", "text"))
	post := func(header, body string, status int, want string) *reply {
		t.Helper()
		return httpCase{target: filePath + "?alias=one", header: multipart + bearer + header, body: body, status: status, want: want}.check(t, s)
	}
	first := post(retryKey, body, 200, "Idempotency-Replayed:")
	objects, failed := len(s.objects(t)), s.failed.Load()
	for range 2 {
		if again := post(retryKey, body, 200, replayed); again.body != first.body {
			t.Errorf("again %s, at first %s", again.body, first.body)
		}
	}
	httpCase{
		target: filePath + "?alias=one", header: "Content-Type: " + multipartType + "; charset=x\n" + bearer + retryKey, body: body, status: 200, want: replayed,
	}.check(t, s)
	if len(s.objects(t)) != objects || s.failed.Load() != failed {
		t.Error("a repetition has stored something, or has failed")
	}
	post(retryKey, body+" ", 422, "Idempotency-Replayed:")
	post(retryKey, strings.Replace(body, "text", "TEXT", 1), 422, "Idempotency-Replayed:")
	post(retryKey, strings.Replace(body, "new.txt", "old.txt", 1), 422, "Idempotency-Replayed:")
	httpCase{target: filePath + "?alias=one", header: urlencoded + bearer + retryKey, body: body, status: 422, has: "another length"}.check(t, s)
	s.passed.Add(int64(24*time.Hour - time.Second))
	s.known = nil
	post(retryKey, body, 200, replayed)
	s.passed.Add(int64(time.Second))
	post(retryKey, body, 200, "Idempotency-Replayed:")
	if len(s.objects(t)) != objects+1 {
		t.Error("the key is remembered for more than a day")
	}
}

// TestRetryAddress: keys belong to an account, a ticket, a method, a path and a query.
func TestRetryAddress(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	s.ticket(t, "kind=file&alias=two&max_files=2")
	for _, c := range []httpCase{
		{method: "PUT", target: putPath + "two/n.txt", header: bearer, status: 201},
		{method: "PUT", target: putPath + "two/n.txt", header: "Authorization: Bearer $OTHER\n", status: 201},
		{method: "PUT", target: putPath + "two/n.txt", header: ticketBearer, status: 201},
		{method: "PUT", target: putPath + "two/m.txt", header: bearer, status: 201},
		{method: "PUT", target: putPath + "two/n.txt?x", header: bearer, status: 201},
		{method: "DELETE", target: itemsPath + "file/two/n.txt", header: bearer, status: 200},
	} {
		c.header += retryKey
		if c.method == "PUT" {
			c.body = "text"
		}
		for _, want := range []string{"Idempotency-Replayed:", replayed} {
			c.want = want
			c.check(t, s)
		}
	}
}

// TestRetryKeys: a key is sent once, and is 1 to 255 visible ASCII characters. Requests that change
// nothing ignore it.
func TestRetryKeys(t *testing.T) {
	t.Parallel()
	for key, status := range map[string]int{
		"x": 201, strings.Repeat("~", 255): 201, "!a,b=\"c\"": 201,
		"": 400, strings.Repeat("x", 256): 400, "a b": 400, "ě": 400, "a\x7f": 400, "a\tb": 400, "a\nIdempotency-Key: a": 400,
	} {
		c := httpCase{method: "PUT", target: putPath + "one/n.txt", header: bearer + "Idempotency-Key: " + key, body: "text", status: status}
		if key == "" {
			c.header = bearer + "Idempotency-Key:"
		}
		c.check(t, withItems(t))
	}
	s := withItems(t)
	httpCase{target: itemsPath + "file/one", header: bearer + "Idempotency-Key: a b", status: 200}.check(t, s)
	httpCase{method: "PUT", target: putPath + "one/n.txt", header: retryKey, body: "text", status: 401}.check(t, s)
	s.store.step = func() error { return fs.ErrPermission }
	httpCase{method: "PUT", target: putPath + "one/n.txt", header: bearer + retryKey, body: "text", status: 503}.check(t, s)
}

// TestRetryRefused: a refused request is not kept, and its key can be used for another one.
func TestRetryRefused(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	put := func(body string, status int, has string) {
		t.Helper()
		httpCase{
			method: "PUT", target: "/api/upload/image/content/a.png", header: bearer + retryKey, body: body, status: status, has: has, want: "Idempotency-Replayed:",
		}.check(t, s)
	}
	put("text", 415, "")
	put("more text", 415, "")
	put(samples["png"], 201, "")
}

// TestRetryOther: a repetition of an interrupted request with another beginning of its first file is
// refused. What comes after it makes no difference.
func TestRetryOther(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("q", 600)
	for name, c := range map[string]httpCase{
		"form":    {method: "POST", target: filePath + "?alias=one", header: multipart, body: form(field("note", strings.Repeat("f", 5000)), file("n.txt", text), file("m.txt", "more"))},
		"put":     {method: "PUT", target: putPath + "one/n.txt", body: text},
		"replace": {method: "PUT", target: itemsPath + "file/replacing/a.txt", header: ifAny, body: text},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.header += bearer + retryKey
			m := newMortal(t)
			m.driver.Fail = failPut("")
			m.store.step = endAfter(2)
			if r := m.attempt(t, c); r.status != 502 {
				t.Fatalf("%d %s", r.status, r.body)
			}
			m.driver.Fail, m.store.step = nil, nil
			m.passed.Add(int64(leaseTime))
			for n := range 2 { // before and after there is an answer
				other := c
				other.body = strings.Replace(c.body, "q", "w", 1)
				m.attempt(t, other).failed(t, 422, "beginning of its first file")
				if name == "form" {
					other.body = strings.Replace(c.body, "n.txt", "k.txt", 1)
					m.attempt(t, other).failed(t, 422, "beginning of its first file")
					other.body = strings.Replace(c.body, "more", "less", 1)
				} else {
					other.body = c.body[:512] + strings.Repeat("z", 88)
				}
				if r := m.attempt(t, other); r.status >= 300 || (r.header.Get("Idempotency-Replayed") == "true") != (n > 0) {
					t.Errorf("another end: %d %s", r.status, r.body)
				}
			}
		})
	}
}

// TestRetryTicket: the repetition of an upload with a used-up ticket is answered, and an interrupted
// one is counted once.
func TestRetryTicket(t *testing.T) {
	t.Parallel()
	for n := int64(0); ; n++ {
		m := newMortal(t)
		m.ticket(t, "kind=file&alias=one&max_files=2")
		c := httpCase{method: "POST", target: filePath, header: multipart + ticketBearer + retryKey, body: form(file("x.txt", "1"), file("y.txt", "2"))}
		m.left.Store(n)
		m.attempt(t, c)
		dead := m.left.Load() < 0
		m.live()
		m.passed.Add(int64(leaseTime))
		for range 2 {
			if r := m.attempt(t, c); r.status != 200 {
				t.Fatalf("after %d steps: %d %s", n, r.status, r.body)
			}
		}
		c.header = strings.Replace(c.header, "k1", "k2", 1)
		if r := m.attempt(t, c); r.status != 403 {
			t.Fatalf("after %d steps a used-up ticket gets %d %s", n, r.status, r.body)
		}
		if !dead {
			return
		}
	}
}

// TestRetryUnused: the repetition of an attempt that has failed without a crash does not take an item of the
// same bytes, which another request has stored meanwhile, for its own.
func TestRetryUnused(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	put := func(header string, status int, want string) {
		t.Helper()
		httpCase{method: "PUT", target: putPath + "one/new.txt", header: bearer + header, body: "text", status: status, want: want}.check(t, s)
	}
	s.driver.Fail = func(op, _ string) error {
		if op == "put" {
			return fs.ErrPermission
		}
		return nil
	}
	put(retryKey, 502, "")
	s.driver.Fail = nil
	put("", 201, "Location: "+origin+"/static/file/one/new.txt")
	put(retryKey, 201, "Location: "+origin+"/static/file/one/new-"+noonSecond+".txt")
}

// TestRetryFreed: a repetition finds its item under the name that it got because another was taken, also
// if that is free by now.
func TestRetryFreed(t *testing.T) {
	t.Parallel()
	for n := int64(0); ; n++ {
		m := newMortalOn(t, n%2 == 1)
		c := httpCase{method: "PUT", target: putPath + "one/a.txt", header: bearer + retryKey, body: "text"}
		m.left.Store(n / 2)
		m.attempt(t, c)
		dead := m.left.Load() < 0
		m.live()
		m.passed.Add(int64(leaseTime))
		m.attempt(t, httpCase{method: "DELETE", target: itemsPath + "file/one/a.txt", header: bearer})
		if r := m.attempt(t, c); r.status != 201 {
			t.Fatalf("after %d steps: %d %s", n/2, r.status, r.body)
		}
		stored := 0
		for _, content := range m.objects(t) {
			if content == "text" {
				stored++
			}
		}
		if stored != 1 {
			t.Errorf("after %d steps the item is stored %d times", n/2, stored)
		}
		if !dead {
			return
		}
	}
}

// TestRetryLarge: a large answer is not kept. Its request is carried out again.
func TestRetryLarge(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	body := "action=delete&filename=a.txt"
	for n := range 900 {
		body += fmt.Sprintf("&filename=none-%0100d.txt", n)
	}
	c := httpCase{target: itemsPath + "file/one", header: urlencoded + bearer + retryKey, body: body, status: 200, want: "Idempotency-Replayed:", has: `{"filename":"a.txt","deleted":true}`}
	c.check(t, s)
	c.has = `{"filename":"a.txt","deleted":false`
	c.check(t, s)
}

// endAfter returns the step of a process that ends after n changes of requests: it holds the lease, and
// has kept the request.
func endAfter(n int) func() error {
	return func() error {
		if n--; n < 0 {
			return fs.ErrPermission
		}
		return nil
	}
}

// hold holds the lease of a request until the end of the test.
func (s *site) hold(t *testing.T, method, target string) {
	t.Helper()
	address, query, _ := strings.Cut(target, "?")
	attempt, err := service.Of(s.first).Issuer().Attempt(t.Context(), access.Request{
		ID: access.RequestID("http", someKey, "", "k1", method, address, query), Account: someKey, Fingerprint: "4 ",
	}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = attempt.End(context.Background(), nil) })
}

// requestKeys requests the answers of the document that keys and uploads of one file have.
func requestKeys(t *testing.T, key string) {
	t.Helper()
	kind, ext := map[string]string{"img": "image", "file": "file"}[strings.Split(key, "/")[0]], path.Ext(key)
	s := newSiteWith(t, media.Limits{MaxUploads: 1}, func(c *media.Config) {
		for _, account := range c.Accounts {
			account.May = []string{"upload", "delete", "replace", "move"}
		}
	})
	put := "/api/upload/" + kind + "/content/"
	one := itemsPath + kind + "/content/a" + ext
	for _, c := range []httpCase{
		{method: "POST", target: "/api/upload/" + kind, header: multipart},
		{method: "PUT", target: put + "a" + ext},
		{method: "PUT", target: one, header: ifAny},
		{method: "POST", target: one, header: urlencoded},
		{method: "DELETE", target: one},
		{method: "POST", target: itemsPath + kind + "/content", header: urlencoded},
	} {
		s.hold(t, c.method, c.target)
		c.header, c.body, c.status, c.has = c.header+bearer+retryKey, "12345", 422, "another length"
		c.check(t, s)
	}
	for _, target := range []string{one, put + "a" + ext} {
		method := map[bool]string{true: "DELETE", false: "PUT"}[target == one]
		httpCase{method: method, target: target, header: bearer + retryKey, body: "1234", status: 409, want: "Retry-After: 1", has: "under way"}.check(t, s)
	}
	s.hold(t, "POST", itemsPath+kind+"/content?x")
	httpCase{method: "POST", target: itemsPath + kind + "/content?x", header: bearer + retryKey, body: "1234", status: 409, want: "Retry-After: 1"}.check(t, s)

	s.driver.Fail = failByName
	good := samples[ext[1:]]
	for _, c := range []httpCase{
		{target: put + "x/a" + ext, header: bearer, status: 201},
		{target: put + "a%2F", header: bearer, status: 400},
		{target: put + "a" + ext, status: 401},
		{target: put + "a" + ext, header: "Authorization: Bearer $OTHER", status: 403},
		{target: put + "a" + ext, header: bearer, method: "POST", status: 405},
		{target: put + "a.php", header: bearer, status: 415},
		{target: put + "forbidden" + ext, header: bearer, status: 502},
		{target: put + "down" + ext, header: bearer, status: 503},
		{target: put + "full" + ext, header: bearer, status: 507},
	} {
		if c.body = good; c.method == "" {
			c.method = "PUT"
		}
		c.check(t, s)
	}
	ended, ok := service.Of(s.first).BeginUpload(item.Actor{Origin: "http", Account: someKey}, nil, 0)
	if !ok {
		t.Fatal("no upload can begin")
	}
	httpCase{method: "PUT", target: put + "b" + ext, header: bearer, body: good, status: 429}.check(t, s)
	ended()
	s = newSite(t, media.Limits{MaxBody: 10})
	httpCase{method: "PUT", target: put + "a" + ext, header: bearer, body: strings.Repeat("x", 11), status: 413}.check(t, s)
}
