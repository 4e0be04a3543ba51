package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// uploadSingle uploads one file outside of a form, checks the result and returns the stored name.
func uploadSingle(t *testing.T, u *Uploader, name string, body io.Reader, req Upload) (string, item.Failures) {
	t.Helper()
	items, failures := u.Upload(t.Context(), req, Single(name, body))
	checked(t, items, failures)
	return strings.Join(filenames(items), " "), failures
}

// TestSingle: a single file is stored like the only one of a form.
func TestSingle(t *testing.T) {
	t.Parallel()
	for kind, storage := range storages {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, other := storage(t, nil), storage(t, nil)
			u := newUploader(newAlias(t, item.DefaultAlias, s), newAlias(t, "papers", other))
			w := watch(u)
			by := item.Actor{Origin: item.OriginGo, Client: "192.0.2.1"}

			items, failures := u.Upload(t.Context(), Upload{Request: Request{Kind: item.File, Actor: by}}, Single("Näme.TXT", strings.NewReader("one")))
			want := Item{FullPath: "https://cdn.example/static/file/content/name.txt", Filename: "name.txt", Size: 3}
			if want.Info, _ = s.Stat(t.Context(), "file/content/name.txt"); failures != nil || !reflect.DeepEqual(items[0], want) {
				t.Errorf("got %+v, %v, want %+v", items, failures, want)
			}
			name, failures := uploadSingle(t, u, "a.txt", strings.NewReader("two"), Upload{Request: Request{Kind: item.File, Alias: "papers", Actor: by}, SubFolder: "in/Here"})
			if failures != nil || name != "in/here/a.txt" {
				t.Errorf("got %q, %v", name, failures)
			}
			wantContents(t, s, map[string]string{"file/content/name.txt": "one"})
			wantContents(t, other, map[string]string{"file/papers/in/here/a.txt": "two"})
			if len(w.changes) != 2 || w.changes[0].Actor != by || w.changes[1].Item.Filename != name {
				t.Errorf("changes %+v", w.changes)
			}
		})
	}
}

// TestSingleRefused: a refused file is not stored, and is not read if the refusal is certain
// before. Then Precheck refuses it too.
func TestSingleRefused(t *testing.T) {
	t.Parallel()
	unread := iotest.ErrReader(errors.New("it was read"))
	broken := func(err error) io.Reader { return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)) }
	late := &item.Failure{Reason: item.Unavailable, Message: "the source took too long", Err: errors.New(secret)}
	for _, c := range []struct {
		name    string
		item    string
		body    io.Reader
		size    int64 // known in advance
		req     Upload
		reason  item.Reason
		message string
	}{
		{"unknown alias", "a.txt", unread, 0, Upload{Request: Request{Kind: item.File, Alias: "nobody"}}, item.BadRequest, `unknown alias "nobody"`},
		{"alias of the other kind", "a.jpg", unread, 0, Upload{Request: Request{Kind: item.Image, Alias: "content"}}, item.BadRequest, "unknown alias"},
		{
			"alias of another account", "a.txt", unread, 0,
			Upload{Request: Request{Kind: item.File, Allows: func(string) bool { return false }}},
			item.Forbidden, "may not use",
		},
		{
			"unknown alias of a limited account", "a.txt", unread, 0,
			Upload{Request: Request{Kind: item.File, Alias: "nobody", Allows: func(string) bool { return false }}},
			item.Forbidden, "may not use",
		},
		{"sub folder", "a.txt", unread, 0, Upload{Request: Request{Kind: item.File}, SubFolder: "../x"}, item.BadRequest, "sub folder"},
		{"extension", "a.exe", unread, 0, Upload{Request: Request{Kind: item.File}}, item.BadContent, ".exe"},
		{"script", "a.php.txt", unread, 0, Upload{Request: Request{Kind: item.File}}, item.BadContent, ".php"},
		{"no name", "", unread, 0, Upload{Request: Request{Kind: item.File}}, item.BadRequest, "name is empty"},
		{"too large", "a.txt", io.MultiReader(strings.NewReader("123456"), unread), 6, Upload{Request: Request{Kind: item.File}}, item.TooLarge, "larger than 5 bytes"},
		{"content", "a.pdf", strings.NewReader("GIF8"), 0, Upload{Request: Request{Kind: item.File}}, item.BadContent, ".pdf"},
		{"aborted", "a.txt", broken(errors.New(secret)), 0, Upload{Request: Request{Kind: item.File}}, item.BadRequest, "to its end"},
		{"cut short", "a.txt", broken(io.ErrUnexpectedEOF), 0, Upload{Request: Request{Kind: item.File}}, item.BadRequest, "to its end"},
		{"a reason of its own", "a.txt", broken(fmt.Errorf("reading: %w", late)), 0, Upload{Request: Request{Kind: item.File}}, item.Unavailable, late.Message},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onLocal(t, nil)
			alias := newAlias(t, item.DefaultAlias, s)
			alias.MaxSize = 5
			u := newUploader(alias)
			w := watch(u)
			_, failures := uploadSingle(t, u, c.item, c.body, c.req)
			if len(failures) != 1 {
				t.Fatalf("failures %v, want one", failures)
			}
			wantFailure(t, failures, c.reason, failures[0].Filename, c.message)
			wantContents(t, s, nil)
			if len(w.failures) != 1 || w.failures[0] != failures[0] {
				t.Errorf("observed %v, want %v", w.failures, failures)
			}
			early := u.Precheck(t.Context(), c.req, c.item, c.size)
			if c.body != unread && c.size == 0 {
				if early != nil {
					t.Errorf("it is sure to be refused: %v", early)
				}
				return
			}
			wantFailure(t, early, c.reason, failures[0].Filename, c.message)
			if len(w.refusals) != 2 {
				t.Errorf("observed %v", w.refusals)
			}
		})
	}
}

// TestRefuse: Refuse reports the request as refused.
func TestRefuse(t *testing.T) {
	t.Parallel()
	u := newUploader(newAlias(t, item.DefaultAlias, onMemory(t, nil)))
	w := watch(u)
	failures := u.Refuse(t.Context(), Upload{Request: Request{Kind: item.File, Actor: item.Actor{Origin: item.OriginGo}}}, &item.Failure{Reason: item.TooLarge, Message: "why"})
	checked(t, nil, failures)
	wantFailure(t, failures, item.TooLarge, "", "why")
	if len(w.requests) != 1 || w.requests[0].Kind != item.File || w.requests[0].Alias != item.DefaultAlias || w.requests[0].Actor.Origin != item.OriginGo {
		t.Errorf("observed %+v", w.requests)
	}
	if w.underWay != 0 || !slices.Equal(w.ended, []bool{false}) {
		t.Errorf("%d under way in the end, ended %t", w.underWay, w.ended)
	}
}

// TestForced: what a credential forces holds for forms and for single items.
func TestForced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		forced Forced
		req    Upload
		want   string // the filename
		reason item.Reason
	}{
		{"nothing", Forced{}, Upload{Request: Request{Alias: "docs"}, SubFolder: "a"}, "a/x.txt", 0},
		{"alias", Forced{Alias: "docs"}, Upload{}, "x.txt", 0},
		{"another alias", Forced{Alias: "docs"}, Upload{Request: Request{Alias: "other"}}, "", item.Forbidden},
		{"an unknown alias", Forced{Alias: "docs"}, Upload{Request: Request{Alias: "none"}}, "", item.Forbidden},
		{"sub folder", Forced{Alias: "docs", SubFolder: "a/b"}, Upload{}, "a/b/x.txt", 0},
		{"the same sub folder", Forced{Alias: "docs", SubFolder: "a/b"}, Upload{SubFolder: "a/b"}, "a/b/x.txt", 0},
		{"another sub folder", Forced{Alias: "docs", SubFolder: "a/b"}, Upload{SubFolder: "a"}, "", item.Forbidden},
		{"below", Forced{Below: "a/b"}, Upload{Request: Request{Alias: "docs"}}, "a/b/x.txt", 0},
		{"the folder itself", Forced{Below: "a/b"}, Upload{Request: Request{Alias: "docs"}, SubFolder: "a/b/"}, "a/b/x.txt", 0},
		{"a folder below it", Forced{Below: "a/b"}, Upload{Request: Request{Alias: "docs"}, SubFolder: "a/b/C"}, "a/b/c/x.txt", 0},
		{"a folder above it", Forced{Below: "a/b"}, Upload{Request: Request{Alias: "docs"}, SubFolder: "a"}, "", item.Missing},
		{"a folder beside it", Forced{Below: "a/b"}, Upload{Request: Request{Alias: "docs"}, SubFolder: "a/bc"}, "", item.Missing},
		{"the root", Forced{Below: "a/b"}, Upload{Request: Request{Alias: "docs"}, SubFolder: "/"}, "", item.Missing},
		{"a folder that sanitizing changes", Forced{Below: "A/b"}, Upload{Request: Request{Alias: "docs"}}, "", item.Missing},
		{"filename", Forced{Alias: "docs", Filename: "Y Z.txt"}, Upload{}, "y-z.txt", 0},
		{"a bad filename", Forced{Alias: "docs", Filename: "y.php"}, Upload{}, "", item.BadContent},
		{"size", Forced{Alias: "docs", MaxSize: 4}, Upload{}, "x.txt", 0},
		{"too large", Forced{Alias: "docs", MaxSize: 3}, Upload{}, "", item.TooLarge},
		{"files", Forced{Alias: "docs", MaxFiles: 1}, Upload{}, "x.txt", 0},
	} {
		for source, src := range map[string]func() Source{
			"form":   func() Source { return Form(strings.NewReader(forcedForm), "x") },
			"single": func() Source { return Single("x.txt", strings.NewReader("text")) },
		} {
			t.Run(c.name+" "+source, func(t *testing.T) {
				t.Parallel()
				s := onMemory(t, nil)
				u := newUploader(newAlias(t, "docs", s), newAlias(t, "other", s))
				c.req.Kind, c.req.Forced = item.File, c.forced
				items, failures := u.Upload(t.Context(), c.req, src())
				switch {
				case c.want == "" && (len(failures) == 0 || failures[0].Reason != c.reason):
					t.Errorf("got %v and %v, want %v", items, failures, c.reason)
				case c.want != "" && (failures != nil || items[0].Filename != c.want):
					t.Errorf("got %v and %v, want %s", items, failures, c.want)
				}
			})
		}
	}
}

const forcedForm = "--x\r\nContent-Disposition: form-data; name=\"files[]\"; filename=\"x.txt\"\r\n\r\ntext\r\n--x--\r\n"

// TestForcedFiles: a form with more files than are left stores none of them.
func TestForcedFiles(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]bool{0: true, 1: false, 2: true} {
		u := newUploader(newAlias(t, "docs", onMemory(t, nil)))
		req := Upload{Request: Request{Kind: item.File, Forced: Forced{Alias: "docs", MaxFiles: most}}}
		items, failures := uploadBody(t, u, bytes.NewReader(formBody(file("a.txt", "a"), file("b.txt", "b"))), req)
		if want != (len(items) == 2) {
			t.Errorf("at most %d: %v, %v", most, items, failures)
		}
		if !want {
			wantFailure(t, failures, item.Forbidden, "", "more files than the ticket has left: 1")
		}
	}
}

func TestForcedCheck(t *testing.T) {
	t.Parallel()
	a := newAlias(t, "docs", onMemory(t, nil))
	for _, c := range []struct {
		forced Forced
		ok     bool
	}{
		{Forced{}, true},
		{Forced{SubFolder: "/"}, true},
		{Forced{SubFolder: "A b/c"}, true},
		{Forced{SubFolder: "../a"}, false},
		{Forced{SubFolder: strings.Repeat("a", item.MaxName+1)}, false},
		{Forced{Filename: "A b.txt"}, true},
		{Forced{Filename: "a.php"}, false},
		{Forced{Filename: "a"}, false},
		{Forced{Filename: "a.txt", SubFolder: "../a"}, false},
	} {
		if failure := c.forced.Check(a, noon); (failure == nil) != c.ok {
			t.Errorf("%+v: %v", c.forced, failure)
		}
	}
}

// TestSettle: the outcome of a commit is reported once, also if it fails or panics; without a
// commit nothing is reported.
func TestSettle(t *testing.T) {
	t.Parallel()
	broken := func(op, _ string) error {
		if op == "put" || op == "commit" {
			return errors.New("broken")
		}
		return nil
	}
	for _, c := range []struct {
		name    string
		fail    func(op, key string) error
		body    string
		refuses bool
		want    []Outcome
	}{
		{"stored", nil, forcedForm, false, []Outcome{AllStored}},
		{"storage failed", broken, forcedForm, false, []Outcome{NothingStored}},
		{"panic", func(op, _ string) error {
			if op == "put" || op == "commit" {
				panic("a fault")
			}
			return nil
		}, forcedForm, false, []Outcome{MaybeStored}},
		{"refused by Confirm", nil, forcedForm, true, nil},
		{"refused content", nil, strings.Replace(forcedForm, "x.txt", "x.php", 1), false, nil},
		{"cut short", nil, forcedForm[:40], false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newUploader(newAlias(t, "docs", onMemory(t, c.fail)))
			var settled []Outcome
			req := Upload{Request: Request{Kind: item.File, Alias: "docs"}}
			req.Confirm = func(_ context.Context, about Commitment) (func(Outcome), *item.Failure) {
				if about.Alias != "docs" || about.Items != 1 {
					t.Errorf("confirming %d items of %s", about.Items, about.Alias)
				}
				if c.refuses {
					return nil, item.Failf(item.Forbidden, "no")
				}
				return func(outcome Outcome) { settled = append(settled, outcome) }, nil
			}
			func() {
				defer func() { _ = recover() }()
				items, _ := u.Upload(t.Context(), req, Form(strings.NewReader(c.body), "x"))
				if stored := len(c.want) > 0 && c.want[0] == AllStored; stored != (items != nil) {
					t.Errorf("items %v", items)
				}
			}()
			if len(settled) != len(c.want) || len(settled) > 0 && settled[0] != c.want[0] {
				t.Errorf("settled with %v, want %v", settled, c.want)
			}
		})
	}
}

// TestAnyContent: an alias for programs stores any bytes under any name, and no other alias does.
func TestAnyContent(t *testing.T) {
	t.Parallel()
	for _, takesAnything := range []bool{true, false} {
		alias := newAlias(t, item.DefaultAlias, onMemory(t, nil))
		alias.Extensions[item.AnyExtension] = takesAnything
		_, failures := uploadForm(t, newUploader(alias), file("a.pdf", "\x7fELF"))
		if (failures == nil) != takesAnything {
			t.Errorf("takes anything: %t: %v", takesAnything, failures)
		}
	}
}
