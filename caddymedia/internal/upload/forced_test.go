package upload

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
)

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
