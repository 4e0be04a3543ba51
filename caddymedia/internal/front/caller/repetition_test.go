package caller_test

import (
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

	"github.com/caddymedia/media/storagedrivers/memory"
)

const (
	retryKey = "Idempotency-Key: k1\n"
	replayed = "Idempotency-Replayed: true"
)

// leaseTime is longer than the lease of a dead process.
const leaseTime = 30 * time.Second

// mortal is a site whose process dies after a number of steps: operations of the storage, and
// changes of requests in the token store.
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
		return m.Now()
	}
	m.site = withItemsOn(t, backend)
	m.Passed.Add(int64(time.Minute)) // since the items were stored
	m.Token(t)                       // later ones would be of another time
	backend.Fail = func(string, string) error { return m.step() }
	m.Store.Step = m.step
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
	m.Handler.ServeHTTP(w, m.Request(t, c.Method, c.Target, c.Header, c.Body))
	return &reply{Status: w.Code, Header: w.Result().Header, Body: w.Body.String()}
}

// contents returns the contents of all objects, in order.
func (m *mortal) contents(t *testing.T) []string {
	t.Helper()
	objects := m.Objects(t)
	contents := make([]string, 0, len(objects))
	for key, content := range objects {
		contents = append(contents, path.Dir(key)+" "+content)
	}
	slices.Sort(contents)
	return contents
}

// interruptible are requests that change items. Their effect is that of the request alone, after
// each crash and repetition.
var interruptible = []httpCase{
	{Name: "one file", Method: "POST", Target: filePath + "?alias=one", Header: multipart, Body: form(file("a.txt", "text"))},
	{Name: "files", Method: "POST", Target: filePath + "?alias=one", Header: multipart, Body: form(file("a.txt", "1"), file("new.txt", "2"), file("b.txt", "3"))},
	{Name: "equal files", Method: "POST", Target: filePath + "?alias=one", Header: multipart, Body: form(file("a.txt", "1"), file("a.txt", "1"), file("n.txt", "1"))},
	{Name: "files that overwrite", Method: "POST", Target: filePath + "?alias=replacing", Header: multipart, Body: form(file("a.txt", "1"), file("b.txt", "2"))},
	{Name: "images", Method: "POST", Target: imagePath + "?alias=sized", Header: multipart, Body: form(file("a.png", samples["png"]), file("c.gif", samples["gif"]))},
	{Name: "put", Method: "PUT", Target: putPath + "one/a.txt", Body: "text"},
	{Name: "put over", Method: "PUT", Target: putPath + "replacing/a.txt", Body: "text"},
	{Name: "put to a free name", Method: "PUT", Target: putPath + "one/free.txt", Header: "If-None-Match: *\n", Body: "text"},
	{Name: "put over a free name", Method: "PUT", Target: putPath + "replacing/free.txt", Header: "If-None-Match: *\n", Body: "text"},
	{Name: "put over on condition", Method: "PUT", Target: putPath + "replacing/a.txt", Header: "If-Match: $TAG\n", Body: "text"},
	{Name: "replace", Method: "PUT", Target: itemsPath + "file/replacing/a.txt", Header: "If-Match: $TAG\n", Body: "text"},
	{Name: "move", Method: "POST", Target: itemsPath + "file/one/a.txt", Header: urlencoded, Body: "to=new.txt"},
	{Name: "move to a taken name", Method: "POST", Target: itemsPath + "file/one/a.txt", Header: urlencoded, Body: "to=b.txt"},
	{Name: "move over", Method: "POST", Target: itemsPath + "file/one/a.txt", Header: urlencoded, Body: "to=a.txt&to_alias=replacing"},
	{Name: "copy", Method: "POST", Target: itemsPath + "file/one/a.txt", Header: urlencoded, Body: "copy_to=new.txt"},
	{Name: "copy onto itself", Method: "POST", Target: itemsPath + "file/one/a.txt", Header: urlencoded, Body: "copy_to=a.txt"},
	{Name: "delete", Method: "DELETE", Target: itemsPath + "file/one/a.txt"},
	{Name: "delete on condition", Method: "DELETE", Target: itemsPath + "file/replacing/a.txt", Header: "If-Match: $TAG\n"},
	{Name: "delete a set", Method: "POST", Target: itemsPath + "file/one", Header: urlencoded, Body: "action=delete&filename=a.txt&filename=none.txt&filename=b.txt"},
	{Name: "delete a folder", Method: "POST", Target: itemsPath + "file/one", Header: urlencoded, Body: "action=delete&folder=sub"},
}

// TestInterrupted ends the process after each step of an upload. Its repetition succeeds, with the
// answer and the effect of a single request, and so does the next one.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, c := range interruptible {
		if !isUpload(c) {
			continue
		}
		c.Header += bearer + retryKey
		for way := range 4 {
			other, repeats := way%2 == 1, way/2 == 1
			t.Run(fmt.Sprint(c.Name, " other ", other, " repeats ", repeats), func(t *testing.T) {
				t.Parallel()
				alone := newMortalOn(t, repeats)
				alone.setTag(t)
				want := alone.attempt(t, c)
				if want.Status >= 300 {
					t.Fatalf("%d %s", want.Status, want.Body)
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
							m.attempt(t, httpCase{Method: "PUT", Target: putPath + "one/" + name, Header: bearer, Body: "other"})
						}
					}
					again := m.attempt(t, c)
					third := m.attempt(t, c)
					if again.Status != want.Status || third.Status != want.Status || third.Body != again.Body || third.Header.Get("Idempotency-Replayed") != "true" {
						t.Fatalf("after %d steps (%d): %d %s, then %d %s", n, first.Status, again.Status, again.Body, third.Status, third.Body)
					}
					if got := m.contents(t); !slices.Equal(got, effect) && (!other || !mayMeet(c)) {
						t.Errorf("after %d steps: %q\nwant %q", n, got, effect)
					}
					m.wantResult(t, again.Body)
					if !dead {
						if n < 5 || again.Body != first.Body {
							t.Errorf("after %d steps %s, at first %s", n, again.Body, first.Body)
						}
						return
					}
				}
			})
		}
	}
}

// interrupted makes the first attempt at a request, whose process dies after n steps, and lets its
// lease end.
func interrupted(t *testing.T, c httpCase, n int, repeats bool) (m *mortal, first *reply, dead bool) {
	t.Helper()
	m = newMortalOn(t, repeats)
	m.setTag(t)
	m.left.Store(int64(n))
	first = m.attempt(t, c)
	dead = m.left.Load() < 0
	m.live()
	m.Passed.Add(int64(leaseTime))
	return m, first, dead
}

// TestInterruptedChange ends the process after each step of a move, copy or deletion. Its
// repetition succeeds, or is answered as if another caller had made the change. It loses nothing,
// and a success is repeated.
func TestInterruptedChange(t *testing.T) {
	t.Parallel()
	for _, c := range interruptible {
		if isUpload(c) {
			continue
		}
		c.Header += bearer + retryKey
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				m, first, dead := interrupted(t, c, n, n%2 == 1)
				m.attempt(t, httpCase{Method: "PUT", Target: putPath + "one/late.txt", Header: bearer, Body: "late"})
				m.attempt(t, httpCase{Method: "PUT", Target: putPath + "one/sub/late.txt", Header: bearer, Body: "late"})
				late, deletes := 2, strings.HasPrefix(c.Name, "delete")
				if name := strings.TrimPrefix(touches(c), "file/"); deletes && strings.HasSuffix(name, ".txt") {
					m.attempt(t, httpCase{Method: "PUT", Target: putPath + name, Header: bearer, Body: "late"})
					late++
				}
				again, third := m.attempt(t, c), m.attempt(t, c)
				ok := again.Status == 200 && third.Body == again.Body && third.Header.Get("Idempotency-Replayed") == "true"
				if !ok && (again.Status != 404 && again.Status != 409 && again.Status != 412 || third.Status != again.Status || !dead) {
					t.Fatalf("after %d steps (%d): %d %s, then %d %s", n, first.Status, again.Status, again.Body, third.Status, third.Body)
				}
				got := strings.Join(m.contents(t), "\n")
				if n >= 2 && strings.Count(got, "late") != late { // before, the request is not kept
					t.Errorf("after %d steps an item of another request is gone: %s", n, got)
				}
				if deletes == strings.Contains(got, "content of "+touches(c)) {
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
func isUpload(c httpCase) bool {
	return c.Method == http.MethodPut || !strings.Contains(c.Target, itemsPath)
}

// touches returns the key of an item that the request moves, copies or deletes.
func touches(c httpCase) string {
	key := strings.TrimPrefix(c.Target, itemsPath)
	if strings.HasSuffix(key, ".txt") {
		return key
	}
	return key + map[bool]string{true: "/sub/", false: "/a.txt"}[strings.Contains(c.Body, "folder")]
}

// mayMeet reports whether an item that others store meanwhile may become one of the request.
func mayMeet(c httpCase) bool { return strings.Contains(c.Target, itemsPath) }

// setTag sets the variable of the item in the alias that overwrites.
func (m *mortal) setTag(t *testing.T) {
	t.Helper()
	m.Vars = append(m.Vars, "$TAG", m.Do(t, http.MethodHead, "/static/file/replacing/a.txt", "", "").Header.Get("ETag"))
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
		if r := m.Do(t, http.MethodHead, strings.TrimPrefix(one.FullPath, origin), "", ""); r.Status != 200 || seen[one.FullPath] {
			t.Errorf("%s: %d, seen %t", one.FullPath, r.Status, seen[one.FullPath])
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
		return httpCase{Target: filePath + "?alias=one", Header: multipart + bearer + header, Body: body, Status: status, Want: want}.Check(t, s)
	}
	first := post(retryKey, body, 200, "Idempotency-Replayed:")
	objects, failed := len(s.Objects(t)), s.Refusals.Load()
	for range 2 {
		if again := post(retryKey, body, 200, replayed); again.Body != first.Body {
			t.Errorf("again %s, at first %s", again.Body, first.Body)
		}
	}
	httpCase{
		Target: filePath + "?alias=one", Header: "Content-Type: " + multipartType + "; charset=x\n" + bearer + retryKey, Body: body, Status: 200, Want: replayed,
	}.Check(t, s)
	if len(s.Objects(t)) != objects || s.Refusals.Load() != failed {
		t.Error("a repetition has stored something, or has failed")
	}
	post(retryKey, body+" ", 422, "Idempotency-Replayed:")
	post(retryKey, strings.Replace(body, "text", "TEXT", 1), 422, "Idempotency-Replayed:")
	post(retryKey, strings.Replace(body, "new.txt", "old.txt", 1), 422, "Idempotency-Replayed:")
	httpCase{Target: filePath + "?alias=one", Header: urlencoded + bearer + retryKey, Body: body, Status: 422, Has: "another length"}.Check(t, s)
	s.Passed.Add(int64(24*time.Hour - time.Second))
	s.Known = nil
	post(retryKey, body, 200, replayed)
	s.Passed.Add(int64(time.Second))
	post(retryKey, body, 200, "Idempotency-Replayed:")
	if len(s.Objects(t)) != objects+1 {
		t.Error("the key is remembered for more than a day")
	}
}

// TestRetryAddress: keys belong to an account, a ticket, a method, a path and a query.
func TestRetryAddress(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	s.Ticket(t, "kind=file&alias=two&max_files=2")
	for _, c := range []httpCase{
		{Method: "PUT", Target: putPath + "two/n.txt", Header: bearer, Status: 201},
		{Method: "PUT", Target: putPath + "two/n.txt", Header: "Authorization: Bearer $OTHER\n", Status: 201},
		{Method: "PUT", Target: putPath + "two/n.txt", Header: ticketBearer, Status: 201},
		{Method: "PUT", Target: putPath + "two/m.txt", Header: bearer, Status: 201},
		{Method: "PUT", Target: putPath + "two/n.txt?x", Header: bearer, Status: 201},
		{Method: "DELETE", Target: itemsPath + "file/two/n.txt", Header: bearer, Status: 200},
	} {
		c.Header += retryKey
		if c.Method == http.MethodPut {
			c.Body = "text"
		}
		for _, want := range []string{"Idempotency-Replayed:", replayed} {
			c.Want = want
			c.Check(t, s)
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
		c := httpCase{Method: "PUT", Target: putPath + "one/n.txt", Header: bearer + "Idempotency-Key: " + key, Body: "text", Status: status}
		if key == "" {
			c.Header = bearer + "Idempotency-Key:"
		}
		c.Check(t, withItems(t))
	}
	s := withItems(t)
	httpCase{Target: itemsPath + "file/one", Header: bearer + "Idempotency-Key: a b", Status: 200}.Check(t, s)
	httpCase{Method: "PUT", Target: putPath + "one/n.txt", Header: retryKey, Body: "text", Status: 401}.Check(t, s)
	s.Store.Step = func() error { return fs.ErrPermission }
	httpCase{Method: "PUT", Target: putPath + "one/n.txt", Header: bearer + retryKey, Body: "text", Status: 503}.Check(t, s)
}

// TestRetryRefused: a refused request is not kept, and its key can be used for another one.
func TestRetryRefused(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	put := func(body string, status int, has string) {
		t.Helper()
		httpCase{
			Method: "PUT", Target: "/api/upload/image/content/a.png", Header: bearer + retryKey, Body: body, Status: status, Has: has, Want: "Idempotency-Replayed:",
		}.Check(t, s)
	}
	put("text", 415, "")
	put("more text", 415, "")
	put(samples["png"], 201, "")
}

// TestRetryOther: a repetition of an interrupted request with another beginning of its first file
// is refused. What comes after it makes no difference.
func TestRetryOther(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("q", 600)
	for name, c := range map[string]httpCase{
		"form":    {Method: "POST", Target: filePath + "?alias=one", Header: multipart, Body: form(field("note", strings.Repeat("f", 5000)), file("n.txt", text), file("m.txt", "more"))},
		"put":     {Method: "PUT", Target: putPath + "one/n.txt", Body: text},
		"replace": {Method: "PUT", Target: itemsPath + "file/replacing/a.txt", Header: ifAny, Body: text},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Header += bearer + retryKey
			m := newMortal(t)
			m.Driver.Fail = failPut("")
			m.Store.Step = endAfter(2)
			if r := m.attempt(t, c); r.Status != 502 {
				t.Fatalf("%d %s", r.Status, r.Body)
			}
			m.Driver.Fail, m.Store.Step = nil, nil
			m.Passed.Add(int64(leaseTime))
			for n := range 2 { // before and after there is an answer
				other := c
				other.Body = strings.Replace(c.Body, "q", "w", 1)
				failed(t, m.attempt(t, other), 422, "beginning of its first file")
				if name == "form" {
					other.Body = strings.Replace(c.Body, "n.txt", "k.txt", 1)
					failed(t, m.attempt(t, other), 422, "beginning of its first file")
					other.Body = strings.Replace(c.Body, "more", "less", 1)
				} else {
					other.Body = c.Body[:512] + strings.Repeat("z", 88)
				}
				if r := m.attempt(t, other); r.Status >= 300 || (r.Header.Get("Idempotency-Replayed") == "true") != (n > 0) {
					t.Errorf("another end: %d %s", r.Status, r.Body)
				}
			}
		})
	}
}

// TestRetryUnused: the repetition of an attempt that has failed without a crash does not take an
// item of the same bytes, which another request has stored meanwhile, for its own.
func TestRetryUnused(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	put := func(header string, status int, want string) {
		t.Helper()
		httpCase{Method: "PUT", Target: putPath + "one/new.txt", Header: bearer + header, Body: "text", Status: status, Want: want}.Check(t, s)
	}
	s.Driver.Fail = func(op, _ string) error {
		if op == "put" {
			return fs.ErrPermission
		}
		return nil
	}
	put(retryKey, 502, "")
	s.Driver.Fail = nil
	put("", 201, "Location: "+origin+"/static/file/one/new.txt")
	put(retryKey, 201, "Location: "+origin+"/static/file/one/new-"+noonSecond+".txt")
}

// TestRetryLarge: a large answer is not kept. Its request is carried out again.
func TestRetryLarge(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	body := "action=delete&filename=a.txt"
	for n := range 900 {
		body += fmt.Sprintf("&filename=none-%0100d.txt", n)
	}
	c := httpCase{Target: itemsPath + "file/one", Header: urlencoded + bearer + retryKey, Body: body, Status: 200, Want: "Idempotency-Replayed:", Has: `{"filename":"a.txt","deleted":true}`}
	c.Check(t, s)
	c.Has = `{"filename":"a.txt","deleted":false`
	c.Check(t, s)
}

// endAfter returns the step of a process that ends after n changes of requests: it holds the lease,
// and has kept the request.
func endAfter(n int) func() error {
	return func() error {
		if n--; n < 0 {
			return fs.ErrPermission
		}
		return nil
	}
}

// failPut fails each Put of an object whose key contains a text.
func failPut(text string) func(op, key string) error {
	return func(op, key string) error {
		if op == "put" && strings.Contains(key, text) {
			return fs.ErrPermission
		}
		return nil
	}
}
