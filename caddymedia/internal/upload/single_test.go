package upload

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/internal/item"
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
			if want := (Item{FullPath: "https://cdn.example/static/file/content/name.txt", Filename: "name.txt", Size: 3}); failures != nil || !reflect.DeepEqual(items[0], want) {
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
// before.
func TestSingleRefused(t *testing.T) {
	t.Parallel()
	unread := iotest.ErrReader(errors.New("it was read"))
	broken := func(err error) io.Reader { return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)) }
	late := &item.Failure{Reason: item.Unavailable, Message: "the source took too long", Err: errors.New(secret)}
	for _, c := range []struct {
		name    string
		item    string
		body    io.Reader
		req     Upload
		reason  item.Reason
		message string
	}{
		{"unknown alias", "a.txt", unread, Upload{Request: Request{Kind: item.File, Alias: "nobody"}}, item.BadRequest, `unknown alias "nobody"`},
		{"alias of the other kind", "a.jpg", unread, Upload{Request: Request{Kind: item.Image, Alias: "content"}}, item.BadRequest, "unknown alias"},
		{
			"alias of another account", "a.txt", unread,
			Upload{Request: Request{Kind: item.File, Allows: func(string) bool { return false }}},
			item.Forbidden, "may not use",
		},
		{"sub folder", "a.txt", unread, Upload{Request: Request{Kind: item.File}, SubFolder: "../x"}, item.BadRequest, "sub folder"},
		{"extension", "a.exe", unread, Upload{Request: Request{Kind: item.File}}, item.BadContent, ".exe"},
		{"script", "a.php.txt", unread, Upload{Request: Request{Kind: item.File}}, item.BadContent, ".php"},
		{"no name", "", unread, Upload{Request: Request{Kind: item.File}}, item.BadRequest, "name is empty"},
		{"too large", "a.txt", io.MultiReader(strings.NewReader("123456"), unread), Upload{Request: Request{Kind: item.File}}, item.TooLarge, "larger than 5 bytes"},
		{"content", "a.pdf", strings.NewReader("GIF8"), Upload{Request: Request{Kind: item.File}}, item.BadContent, ".pdf"},
		{"aborted", "a.txt", broken(errors.New(secret)), Upload{Request: Request{Kind: item.File}}, item.BadRequest, "to its end"},
		{"cut short", "a.txt", broken(io.ErrUnexpectedEOF), Upload{Request: Request{Kind: item.File}}, item.BadRequest, "to its end"},
		{"a reason of its own", "a.txt", broken(fmt.Errorf("reading: %w", late)), Upload{Request: Request{Kind: item.File}}, item.Unavailable, late.Message},
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

// TestPrecheck: what is sure to be refused is refused without its bytes.
func TestPrecheck(t *testing.T) {
	t.Parallel()
	u := newUploader(newAlias(t, item.DefaultAlias, onMemory(t, nil)))
	for _, c := range []struct {
		name   string
		req    Upload
		size   int64
		reason item.Reason
	}{
		{"a.exe", Upload{}, 1, item.BadContent},
		{"a.php.txt", Upload{}, 1, item.BadContent},
		{"a.txt", Upload{Request: Request{Alias: "none"}}, 1, item.BadRequest},
		{"a.txt", Upload{SubFolder: "../x"}, 1, item.BadRequest},
		{"a.txt", Upload{Request: Request{Allows: func(string) bool { return false }}}, 1, item.Forbidden},
		{"a.txt", Upload{}, 1<<20 + 1, item.TooLarge},
	} {
		c.req.Kind = item.File
		w := watch(u)
		failures := u.Precheck(t.Context(), c.req, c.name, c.size)
		if len(failures) != 1 || failures[0].Reason != c.reason {
			t.Errorf("%s %+v: got %v, want %v", c.name, c.req, failures, c.reason)
		}
		if len(w.refusals) != 1 {
			t.Errorf("%s: %d refusals observed", c.name, len(w.refusals))
		}
	}
	if failures := u.Precheck(t.Context(), Upload{Request: Request{Kind: item.File}}, "a.txt", 1<<20); failures != nil {
		t.Errorf("refused: %v", failures)
	}
}
