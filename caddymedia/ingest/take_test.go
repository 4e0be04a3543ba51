package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// takeOne checks what holds for every answer, and gives the item's name.
func takeOne(t *testing.T, g *Gate, name string, body io.Reader, req Request) (string, Failures) {
	t.Helper()
	item, err := g.Take(t.Context(), name, body, req)
	if err != nil {
		return "", checked(t, nil, err)
	}
	return item.Filename, nil
}

// TestTake: one item goes in as if it were the only one of a form.
func TestTake(t *testing.T) {
	t.Parallel()
	for kind, storage := range storages {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, other := storage(t, nil), storage(t, nil)
			g := newGate(newAlias(t, DefaultAlias, s), newAlias(t, "papers", other))
			var told []Change
			g.Changed = func(_ context.Context, c Change) { told = append(told, c) }
			by := By{Via: ViaGo, Client: "192.0.2.1"}

			item, err := g.Take(t.Context(), "Näme.TXT", strings.NewReader("one"), Request{Kind: File, By: by})
			if want := (Item{FullPath: "https://cdn.example/static/file/content/name.txt", Filename: "name.txt", Size: 3}); err != nil || item != want {
				t.Errorf("got %+v, %v, want %+v", item, err, want)
			}
			name, failures := takeOne(t, g, "a.txt", strings.NewReader("two"), Request{Kind: File, Alias: "papers", SubFolder: "in/Here", By: by})
			if failures != nil || name != "in/here/a.txt" {
				t.Errorf("got %q, %v", name, failures)
			}
			wantContents(t, s, map[string]string{"file/content/name.txt": "one"})
			wantContents(t, other, map[string]string{"file/papers/in/here/a.txt": "two"})
			if len(told) != 2 || told[0].By != by || told[1].Item.Filename != name {
				t.Errorf("told of %+v", told)
			}
		})
	}
}

// TestTakeRefuses: nothing of what is refused is stored, and what is sure to be refused is not
// even read.
func TestTakeRefuses(t *testing.T) {
	t.Parallel()
	unread := iotest.ErrReader(errors.New("it was read"))
	broken := func(err error) io.Reader { return io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err)) }
	late := &Failure{Reason: Unavailable, Message: "the source took too long", Err: errors.New(secret)}
	for _, c := range []struct {
		name    string
		item    string
		body    io.Reader
		req     Request
		reason  Reason
		message string
	}{
		{"unknown alias", "a.txt", unread, Request{Kind: File, Alias: "nobody"}, BadRequest, `unknown alias "nobody"`},
		{"alias of the other kind", "a.jpg", unread, Request{Kind: Image, Alias: "content"}, BadRequest, "unknown alias"},
		{
			"alias of another account", "a.txt", unread,
			Request{Kind: File, Allows: func(string) bool { return false }},
			Forbidden, "may not use",
		},
		{"sub folder", "a.txt", unread, Request{Kind: File, SubFolder: "../x"}, BadRequest, "sub folder"},
		{"extension", "a.exe", unread, Request{Kind: File}, BadContent, ".exe"},
		{"script", "a.php.txt", unread, Request{Kind: File}, BadContent, ".php"},
		{"no name", "", unread, Request{Kind: File}, BadRequest, "name is empty"},
		{"too large", "a.txt", io.MultiReader(strings.NewReader("123456"), unread), Request{Kind: File}, TooLarge, "larger than 5 bytes"},
		{"content", "a.pdf", strings.NewReader("GIF8"), Request{Kind: File}, BadContent, ".pdf"},
		{"broken off", "a.txt", broken(errors.New(secret)), Request{Kind: File}, BadRequest, "to its end"},
		{"cut short", "a.txt", broken(io.ErrUnexpectedEOF), Request{Kind: File}, BadRequest, "to its end"},
		{"a reason of its own", "a.txt", broken(fmt.Errorf("reading: %w", late)), Request{Kind: File}, Unavailable, late.Message},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := onLocal(t, nil)
			alias := newAlias(t, DefaultAlias, s)
			alias.MaxSize = 5
			g := newGate(alias)
			var told Failures
			g.Refused = func(_ context.Context, _ Request, f Failures) { told = f }
			_, failures := takeOne(t, g, c.item, c.body, c.req)
			if len(failures) != 1 {
				t.Fatalf("failures %v, want one", failures)
			}
			wantFailure(t, failures, c.reason, failures[0].Filename, c.message)
			wantContents(t, s, nil)
			if len(told) != 1 || told[0] != failures[0] {
				t.Errorf("told of %v, want %v", told, failures)
			}
		})
	}
}

// TestRefuse: an item that could not be had counts as one that was refused.
func TestRefuse(t *testing.T) {
	t.Parallel()
	g := newGate(newAlias(t, DefaultAlias, onMemory(t, nil)))
	var told Request
	g.Refused = func(_ context.Context, req Request, _ Failures) { told = req }
	err := g.Refuse(t.Context(), Request{Kind: File, By: By{Via: ViaGo}}, &Failure{Reason: TooLarge, Message: "why"})
	wantFailure(t, checked(t, nil, err), TooLarge, "", "why")
	if told.Kind != File || told.Alias != DefaultAlias || told.By.Via != ViaGo {
		t.Errorf("told of %+v", told)
	}
}
