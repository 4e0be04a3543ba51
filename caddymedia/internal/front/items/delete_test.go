package items_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestDeleteItem: an item is removed with its variant and renditions, if it is the one of If-Match.
func TestDeleteItem(t *testing.T) {
	t.Parallel()
	const one, image = itemsPath + "file/one/a.txt", itemsPath + "image/sized/a.png"
	for _, c := range []struct {
		name, target, match string
		status              int
		has                 string
	}{
		{"item", one, "", 200, `{"success":true}`},
		{"item with a strange name", itemsPath + "file/exact/a%20b%252F%3F%23.txt", "", 200, ""},
		{"image", image, "", 200, ""},
		{"the item", one, "$TAG", 200, ""},
		{"another", one, `"other"`, 412, "another one"},
		{"no quotes", one, "x", 400, "If-Match"},
		{"missing", itemsPath + "file/one/none.txt", "", 404, "no such item"},
		{"storage down", itemsPath + "file/broken/a.txt", "", 503, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := withItems(t)
			s.Vars = []string{"$TAG", s.Do(t, http.MethodHead, "/static/file/one/a.txt", "", "").Header.Get("ETag")}
			header := bearer
			if c.match != "" {
				header += "If-Match: " + c.match
			}
			before := s.Objects(t)
			httpCase{Method: http.MethodDelete, Target: c.target, Header: header, Status: c.status, Has: c.has}.Check(t, s)
			if c.status != 200 {
				return
			}
			httpCase{Method: http.MethodDelete, Target: c.target, Header: bearer, Status: 404}.Check(t, s)
			gone := 1
			if c.target == image {
				gone = 3
			}
			if after := s.Objects(t); len(after) != len(before)-gone {
				t.Errorf("left are %q of %q", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
			}
		})
	}
}

// setCase is a request to delete a set of items of the file alias "one" that is refused.
func setCase(name, body, has string) httpCase {
	return httpCase{Name: name, Target: itemsPath + "file/one", Header: urlencoded + bearer, Body: body, Status: 400, Has: has}
}

// filenames returns a form with n names.
func filenames(n int) string {
	form := url.Values{"action": {"delete"}}
	for i := range n {
		form.Add("filename", fmt.Sprintf("%04d.txt", i))
	}
	return form.Encode()
}

func TestDeleteSetRefused(t *testing.T) {
	t.Parallel()
	many := append(slices.Repeat([]part{field("filename", "x")}, 1000), field("action", "delete"))
	cases := []httpCase{
		setCase("no action", "filename=a.txt", "action"),
		setCase("action twice", "action=delete&action=delete&filename=a.txt", "twice"),
		setCase("nothing", "action=delete", "missing"),
		setCase("everything alone", "action=delete&everything=yes", "missing"),
		setCase("empty folder", "action=delete&folder=", "everything=yes"),
		setCase("everything=no", "action=delete&folder=&everything=no", "everything"),
		setCase("everything of a folder", "action=delete&folder=sub&everything=yes", "everything"),
		setCase("everything and names", "action=delete&filename=a.txt&everything=yes", "either"),
		setCase("folder and names", "action=delete&filename=a.txt&folder=sub", "either"),
		setCase("empty folder and names", "action=delete&filename=a.txt&folder=", "either"),
		setCase("folder twice", "action=delete&folder=sub&folder=sub", "folder is sent twice"),
		setCase("root", "action=delete&folder=/", "folder is invalid"),
		setCase("folder with a slash", "action=delete&folder=sub/", "folder is invalid"),
		setCase("1,001 names", filenames(1001), "1000"),
		setCase("very many fields", "action=delete"+strings.Repeat("&a=", 50_000), "fields"),
		{Name: "multipart with 1,001 names", Target: itemsPath + "file/one", Header: multipart + bearer, Body: form(append(many, field("filename", "y"))...), Status: 400, Has: "1000"},
		{Name: "folder of a storage that is down", Target: itemsPath + "file/broken", Header: urlencoded + bearer, Body: "action=delete&folder=a", Status: 503, Has: "cannot be reached"},
		{Name: "POST to an item", Target: itemsPath + "file/one/a.txt", Header: urlencoded + bearer, Body: "action=delete", Status: 400, Has: "copy_to"},
	}
	run(t, withItems, cases)
	httpCase{
		Name: "multipart with 1,000 names", Target: itemsPath + "file/one", Header: multipart + bearer, Body: form(many...), Status: 200,
	}.Run(t, withItems)
}

// setReply is the response to a request that has deleted a set.
type setReply struct {
	Success bool `json:"success"`
	Result  []struct {
		Filename string `json:"filename"`
		Deleted  bool   `json:"deleted"`
		Message  string `json:"message"`
	} `json:"result"`
	Deleted *int      `json:"deleted"`
	More    *bool     `json:"more"`
	Began   time.Time `json:"began"`
}

// TestDeleteNames: each name has its outcome, and one failure does not stop the others.
func TestDeleteNames(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]struct{ header, body string }{
		"urlencoded": {urlencoded, "action=delete&filename=a.txt&filename=none.txt&filename=a.txt&filename=sub/c.txt&filename=../two/a.txt&filename=" +
			"&filename=sub&filename=@uploads/x.txt&filename=down.txt&filename=b.txt"},
		"multipart": {multipart, form(field("filename", "a.txt"), field("filename", "none.txt"), field("filename", "a.txt"), field("filename", "sub/c.txt"),
			field("filename", "../two/a.txt"), field("filename", ""), field("filename", "sub"), field("filename", "@uploads/x.txt"), field("filename", "down.txt"),
			field("filename", "b.txt"), field("action", "delete"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := withItems(t)
			s.Put(t, "file/one/down.txt", "x")
			s.Driver.Fail = func(op, key string) error {
				if op == "delete" {
					return failByName(op, key)
				}
				return nil
			}
			var got setReply
			s.Do(t, http.MethodPost, itemsPath+"file/one", body.header+bearer, body.body).Decode(t, &got)
			lines := make([]string, len(got.Result))
			for i, r := range got.Result {
				lines[i] = fmt.Sprintf("%s %t %s", r.Filename, r.Deleted, r.Message)
			}
			const none = " false there is no such item"
			want := []string{
				"a.txt true ", "none.txt" + none, "a.txt false the item is named twice", "sub/c.txt true ", "../two/a.txt" + none, none,
				"sub" + none, "@uploads/x.txt" + none, "down.txt false the storage cannot be reached now, try again later", "b.txt true ",
			}
			if !slices.Equal(lines, want) || !got.Success || got.Deleted != nil || got.More != nil || !got.Began.IsZero() {
				t.Errorf("got %q, want %q", lines, want)
			}
			if left := s.Keys(t, "file/one"); !slices.Equal(left, []string{"file/one/@uploads/x.txt", "file/one/down.txt", "file/one/sub/deep/d.txt"}) {
				t.Errorf("left are %q", left)
			}
			if left := s.Keys(t, "file/two"); len(left) != 1 {
				t.Errorf("of another alias: %q", left)
			}
		})
	}
}

// TestDeleteManyNames: 1,000 names are deleted, eight side by side.
func TestDeleteManyNames(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	for i := range 1000 {
		s.Put(t, fmt.Sprintf("file/one/%04d.txt", i), "")
	}
	var running, most atomic.Int64
	s.Driver.Fail = func(op, _ string) error {
		if op == "delete" {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(100 * time.Microsecond)
			running.Add(-1)
		}
		return nil
	}
	var got setReply
	s.Do(t, http.MethodPost, itemsPath+"file/one", urlencoded+bearer, filenames(1000)).Decode(t, &got)
	for _, r := range got.Result {
		if !r.Deleted {
			t.Fatalf("%+v", r)
		}
	}
	if left := s.Keys(t, "file/one/0"); len(got.Result) != 1000 || len(left) > 0 || most.Load() > 8 || most.Load() < 2 {
		t.Errorf("%d results, %d left, %d side by side", len(got.Result), len(left), most.Load())
	}
}

// deleteFolder sends a request to delete a folder, and checks the number and whether more is left.
func deleteFolder(t *testing.T, s *site, alias, body string, number int, more bool) {
	t.Helper()
	var got setReply
	r := s.Do(t, http.MethodPost, itemsPath+alias, urlencoded+bearer, "action=delete&"+body)
	if r.Decode(t, &got); r.Status != 200 || !got.Success || got.Result == nil || len(got.Result) > 0 || *got.Deleted != number || *got.More != more {
		t.Errorf("%s: %d %s, want %d and %t", body, r.Status, r.Body, number, more)
	}
}

// TestDeleteFolder: a folder is deleted with all below it, and nothing else.
func TestDeleteFolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		alias, body string
		number      int
		gone        []string
	}{
		{"file/one", "folder=sub", 2, []string{"file/one/sub/c.txt", "file/one/sub/deep/d.txt"}},
		{"file/one", "folder=", 0, nil},
		{"file/one", "folder=su", 0, nil},
		{"file/one", "folder=a.txt", 0, nil},
		{"file/one", "folder=@uploads", 0, nil},
		{"file/one", "folder=&everything=yes", 4, []string{"file/one/a.txt", "file/one/b.txt", "file/one/sub/c.txt", "file/one/sub/deep/d.txt"}},
		{"image/sized", "folder=&everything=yes", 2, []string{
			"img/sized/a.png", "img/sized/a.png.webp", "img/sized/b.png", "img/sized@renditions/1/a.png/thumb.x.png",
		}},
	} {
		t.Run(c.alias+" "+c.body, func(t *testing.T) {
			t.Parallel()
			s := withItems(t)
			time.Sleep(time.Millisecond) // what is stored by now is older than the next request
			before := s.Keys(t, "")
			if c.body == "folder=" {
				httpCase{Target: itemsPath + c.alias, Header: urlencoded + bearer, Body: "action=delete&" + c.body, Status: 400}.Check(t, s)
			} else {
				deleteFolder(t, s, c.alias, c.body, c.number, false)
				deleteFolder(t, s, c.alias, c.body, 0, false)
			}
			want := slices.DeleteFunc(before, func(key string) bool { return slices.Contains(c.gone, key) })
			if left := s.Keys(t, ""); !slices.Equal(left, want) {
				t.Errorf("left are %q, want %q", left, want)
			}
		})
	}
}

// TestDeleteFolderInParts: 1,000 items are deleted at a time, without those that are stored or
// replaced after the request began.
func TestDeleteFolderInParts(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	for i := range 1498 {
		s.Put(t, fmt.Sprintf("file/one/sub/%04d.txt", i), "")
	}
	time.Sleep(time.Millisecond) // what is stored by now is older than the next request
	deleteFolder(t, s, "file/one", "folder=sub", 1000, true)
	store := sync.OnceFunc(func() {
		s.Put(t, "file/one/sub/new.txt", "new")
		s.Put(t, "file/one/sub/c.txt", "replaced")
	})
	s.Driver.Fail = func(op, key string) error {
		if op == "delete" && key == "file/one/sub/1000.txt" || op == "stat" && key == "file/one/sub/c.txt" {
			store()
		}
		return nil
	}
	time.Sleep(time.Millisecond) // what is stored by now is older than the next request
	deleteFolder(t, s, "file/one", "folder=sub", 499, true)
	if left := s.Keys(t, "file/one/sub"); !slices.Equal(left, []string{"file/one/sub/c.txt", "file/one/sub/new.txt"}) {
		t.Errorf("left are %q", left)
	}
	s.Driver.Fail = nil
	time.Sleep(time.Millisecond) // what is stored by now is older than the next request
	deleteFolder(t, s, "file/one", "folder=sub", 2, false)
}

// TestDeleteFolderTime: a request begins no deletion after 30 seconds.
func TestDeleteFolderTime(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	header := strings.ReplaceAll(bearer, "$TOKEN", s.Token(t))
	synctest.Test(t, func(t *testing.T) {
		for i := range 100 {
			s.Put(t, fmt.Sprintf("file/two/sub/%04d.txt", i), "")
		}
		s.Driver.Fail = func(op, _ string) error {
			if op == "delete" {
				time.Sleep(4 * time.Second)
			}
			return nil
		}
		time.Sleep(time.Second)
		begin := time.Now()
		var got setReply
		r := s.Request(t, http.MethodPost, itemsPath+"file/two", urlencoded+header, "action=delete&folder=sub")
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, r)
		(&reply{Status: w.Code, Header: w.Header(), Body: w.Body.String()}).Decode(t, &got)
		if took := time.Since(begin); took != 32*time.Second || *got.Deleted != 64 || !*got.More {
			t.Errorf("%d deleted in %v, more: %t", *got.Deleted, took, *got.More)
		}
	})
}

// TestDeleteFolderOfSeconds: where times are in whole seconds, an item that another process has
// stored in the second in which the request began is left.
func TestDeleteFolderOfSeconds(t *testing.T) {
	t.Parallel()
	s := withItems(t)
	header := strings.ReplaceAll(bearer, "$TOKEN", s.Token(t))
	synctest.Test(t, func(t *testing.T) { // the clock starts at a whole second
		s.Put(t, "file/two/sub/a.txt", "")
		for _, want := range []string{`"deleted":0,"more":true`, `"deleted":1,"more":false`} {
			time.Sleep(500 * time.Millisecond)
			w := httptest.NewRecorder()
			s.Handler.ServeHTTP(w, s.Request(t, http.MethodPost, itemsPath+"file/two", urlencoded+header, "action=delete&folder=sub"))
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s, want %s", w.Body, want)
			}
		}
	})
}

// TestDeleteFolderDatedLater: an item that this process has stored before the request is deleted,
// although the clock of the storage is a little ahead, or has whole seconds.
func TestDeleteFolderDatedLater(t *testing.T) {
	t.Parallel()
	for name, date := range map[string]func(time.Time) time.Time{
		"ahead":   func(stored time.Time) time.Time { return stored.Add(time.Second / 2) },
		"seconds": func(stored time.Time) time.Time { return stored.Truncate(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSiteOn(t, &redated{memory.New(), date}, media.Limits{}, func(c *media.Config) {
				c.Accounts[someKey].May = []string{"upload", "delete"}
			})
			httpCase{
				Target: filePath, Header: multipart + bearer, Status: 200,
				Body: form(field("alias", "one"), field("sub_folder", "sub"), file("old.txt", "text")),
			}.Check(t, s)
			r := s.Do(t, http.MethodPost, itemsPath+"file/one", urlencoded+bearer, "action=delete&folder=sub")
			if !strings.Contains(r.Body, `"deleted":1,"more":false`) {
				t.Errorf("%d %s", r.Status, r.Body)
			}
		})
	}
}

// TestDeleteFolderSpares: an item that is stored after the request began is left, also where the
// storage dates it by its first byte, or not at all.
func TestDeleteFolderSpares(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]func(time.Time) time.Time{
		"dated by the first byte": func(stored time.Time) time.Time { return stored.Add(-time.Hour) },
		"without times":           func(time.Time) time.Time { return time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &redated{memory.New(), age}
			s := newSiteOn(t, d, media.Limits{}, func(c *media.Config) {
				c.Accounts[someKey].May = []string{"upload", "delete", "copy"}
			})
			upload := func(name string) {
				t.Helper()
				httpCase{
					Target: filePath, Header: multipart + bearer, Status: 200,
					Body: form(field("alias", "one"), field("sub_folder", "sub"), file(name, "text")),
				}.Check(t, s)
			}
			upload("old.txt")
			d.Fail = onFirst("list", "file/one/sub/", func() {
				upload("new.txt")
				httpCase{Target: itemsPath + "file/one/sub/old.txt", Header: urlencoded + bearer, Body: "copy_to=sub/copy.txt", Status: 200}.Check(t, s)
			})
			r := s.Do(t, http.MethodPost, itemsPath+"file/one", urlencoded+bearer, "action=delete&folder=sub")
			if !strings.Contains(r.Body, `"deleted":1,"more":true`) {
				t.Errorf("%d %s", r.Status, r.Body)
			}
			if left := s.Keys(t, "file/one"); !slices.Equal(left, []string{"file/one/sub/copy.txt", "file/one/sub/new.txt"}) {
				t.Errorf("left are %q", left)
			}
		})
	}
}

// onFirst returns a hook of a memory.Driver that calls do before the first operation of a name on a
// key.
func onFirst(name, on string, do func()) func(op, key string) error {
	var begun atomic.Bool // do may do the same
	return func(op, key string) error {
		if op == name && key == on && begun.CompareAndSwap(false, true) {
			do()
		}
		return nil
	}
}

// redated is a backend whose objects have other times.
type redated struct {
	*memory.Driver
	date func(time.Time) time.Time
}

func (d *redated) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := d.Driver.Stat(ctx, key)
	info.ModTime = d.date(info.ModTime)
	return info, err
}

func (d *redated) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	r, info, err := d.Driver.Open(ctx, key, rng)
	info.ModTime = d.date(info.ModTime)
	return r, info, err
}

func (d *redated) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	page, err := d.Driver.List(ctx, opts)
	for i := range page.Objects {
		page.Objects[i].ModTime = d.date(page.Objects[i].ModTime)
	}
	return page, err
}

func (d *redated) Features() storagedrivers.Features {
	features := d.Driver.Features()
	features.Copies = false // it would compare times
	return features
}

// TestDeleteFolderFails: an error of the storage ends the set. It is the answer if nothing was
// deleted.
func TestDeleteFolderFails(t *testing.T) {
	t.Parallel()
	for number, status := range map[int]int{0: 502, 2: 200} {
		s := withItems(t)
		time.Sleep(time.Millisecond) // what is stored by now is older than the next request
		s.Known = append(s.Known, "secret")
		var deleted atomic.Int64
		s.Driver.Fail = func(op, _ string) error {
			if op == "delete" && deleted.Add(1) > int64(number) {
				return errors.New("10.1.2.3: secret")
			}
			return nil
		}
		r := s.Do(t, http.MethodPost, itemsPath+"file/one", urlencoded+bearer, "action=delete&folder=&everything=yes")
		if r.Status != status || status == 200 && !strings.Contains(r.Body, fmt.Sprintf(`"deleted":%d,"more":true`, number)) {
			t.Errorf("%d %s", r.Status, r.Body)
		}
	}
}

// TestDeletionsReported: each deletion of one item is reported as a change, and a set once more as
// a whole. Refusals name their account.
func TestDeletionsReported(t *testing.T) {
	t.Parallel()
	o := new(recorder)
	s := newSiteWith(t, media.Limits{}, func(c *media.Config) {
		c.Observer = o
		c.Accounts[someKey].May = []string{"delete"}
		c.Accounts[otherKey].May = []string{"upload"}
	})
	for _, key := range []string{"a.txt", "b.txt", "c.txt", "sub/d.txt"} {
		s.Put(t, "file/one/"+key, "x")
	}
	time.Sleep(time.Millisecond) // what is stored by now is older than the next request
	const one, other = itemsPath + "file/one", "Authorization: Bearer $OTHER"
	for _, c := range []struct {
		httpCase
		want []string
	}{
		{httpCase{Method: http.MethodDelete, Target: one + "/a.txt", Status: 200}, []string{"a.txt false ok"}},
		{httpCase{Method: http.MethodDelete, Target: one + "/a.txt", Status: 404}, []string{"a.txt false failed"}},
		{httpCase{Method: http.MethodDelete, Target: one + "/b.txt", Header: "If-Match: \"x\"\n", Status: 412}, []string{"b.txt false failed"}},
		{httpCase{Method: http.MethodDelete, Target: one + "/@uploads", Status: 404}, []string{"one @uploads set false 0 site-one there is no such item"}},
		{httpCase{Target: one, Body: "action=delete&filename=b.txt&filename=x", Status: 200}, []string{"b.txt true ok", "one  set true 1 site-one there is no such item", "x true failed"}},
		{httpCase{Target: one, Body: "action=delete&folder=sub", Status: 200}, []string{"one sub set true 1 site-one ", "sub/d.txt true ok"}},
		{httpCase{Target: one, Body: "action=x", Status: 400}, []string{"one  set true 0 site-one the field action must be delete, restore, purge or keep"}},
		{httpCase{Target: itemsPath + "file/two", Header: other + "\n", Body: "action=delete&filename=x", Status: 403}, []string{
			"two  set true 0 site-two the account may not delete items: it needs the right delete",
		}},
		{httpCase{Method: http.MethodDelete, Target: itemsPath + "file/two/a.txt", Header: other + "\n", Status: 403}, []string{
			"two a.txt set false 0 site-two the account may not delete items: it needs the right delete",
		}},
	} {
		if !strings.Contains(c.Header, "Authorization") {
			c.Header += bearer
		}
		if c.Body != "" {
			c.Header += urlencoded
		}
		c.Check(t, s)
		if got, _ := o.take(); !slices.Equal(got, c.want) {
			t.Errorf("%s %s %s: reported %q, want %q", c.Method, c.Target, c.Body, got, c.want)
		}
	}
}

// recorder records what is reported of changes, of sets and of refused requests.
type recorder struct {
	testservice.Observer

	mu      sync.Mutex
	lines   []string
	actors  []item.Actor
	refused []upload.Operation
}

func (o *recorder) add(actor item.Actor, format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.actors = append(o.actors, actor)
	o.lines = append(o.lines, fmt.Sprintf(format, args...))
}

// take returns the lines since the last call, sorted, and all actors.
func (o *recorder) take() (lines []string, actors []item.Actor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines, actors = slices.Sorted(slices.Values(o.lines)), o.actors
	o.lines, o.actors = nil, nil
	return lines, actors
}

func (o *recorder) Changed(_ context.Context, c upload.Change) {
	result := "ok"
	if c.Err != nil {
		result = "failed"
	}
	o.add(c.Actor, "%s %t %s", c.Item.Filename, c.InSet, result)
}

func (o *recorder) DeletionEnded(_ context.Context, d service.Deletion) {
	message := ""
	if d.Failure != nil {
		message = d.Failure.Message
	}
	o.add(d.Actor, "%s %s set %t %d %s %s", d.Alias, d.Filename+d.Folder, d.IsSet, d.Number, d.Actor.Account, message)
}

func (o *recorder) Refused(_ context.Context, r upload.Operation, _ item.Failures) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.actors = append(o.actors, r.Actor)
	o.refused = append(o.refused, r)
}
