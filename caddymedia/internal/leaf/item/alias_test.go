package item_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/locks"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestTypes: an alias may have its own media types, with which its items are stored and served.
func TestTypes(t *testing.T) {
	t.Parallel()
	a := item.Alias{Types: map[string]string{"step": "model/step", "txt": "text/x"}}
	for filename, want := range map[string]string{"a.step": "model/step", "b/c.TXT": "text/x", "a.zip": "application/zip", "a": "application/octet-stream"} {
		info := a.Typed(storagedrivers.Info{Key: filename, ContentType: storagedrivers.ContentType(filename)})
		if got := a.ContentType(naming.Extension(filename)); got != want || info.ContentType != want {
			t.Errorf("%s: %s and %s, want %s", filename, got, info.ContentType, want)
		}
	}
	if got := a.PutOptions("a.step").ContentType + a.PutOptions("a.zip").ContentType; got != "model/step" {
		t.Errorf("stored as %s", got)
	}
}

// TestLocksOfOneBackend: storages on the same backend share name locks, for example before and
// after a reload that renames a storage.
func TestLocksOfOneBackend(t *testing.T) {
	t.Parallel()
	var names locks.Names
	on := func(name, backend, root, prefix string) *item.Alias {
		location := storagedrivers.Location{Backend: backend, Root: root}
		s := derivedtest.Closed(t, name, memory.New(), storagedrivers.Options{Location: location})
		return &item.Alias{Locks: &names, Storage: s, Prefix: prefix}
	}
	unlock, err := on("one", "x", "", "media/img").Lock(t.Context(), "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for _, c := range []struct {
		name  string
		alias *item.Alias
		held  bool
	}{
		{"another name", on("two", "x", "", "media/img"), true},
		{"a folder level", on("two", "x", "media", "img"), true},
		{"another folder", on("one", "x", "media", "file"), false},
		{"another backend", on("one", "y", "", "media/img"), false},
	} {
		ctx, cancel := t.Context(), func() {}
		if c.held { // a free lock needs no deadline, which a busy machine could exceed
			ctx, cancel = context.WithTimeout(ctx, 10*time.Millisecond)
		}
		unlock, err := c.alias.Lock(ctx, "a.txt")
		if cancel(); (err != nil) != c.held {
			t.Errorf("%s: error %v, want the lock held %t", c.name, err, c.held)
		}
		if err == nil {
			unlock()
		}
	}
}

// TestLocksOfMany: several names are locked in one order, each once, and all or none.
func TestLocksOfMany(t *testing.T) {
	t.Parallel()
	alias := derivedtest.NewAlias(t, "content", derivedtest.OnMemory(t, nil))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for _, filenames := range [][]string{{"a.txt", "b.txt", "a.txt"}, {"b.txt", "a.txt", "b.txt"}} {
		group.Go(func() {
			for range 100 {
				unlock, err := alias.Lock(ctx, filenames...)
				if err != nil {
					t.Error(err)
					return
				}
				unlock()
			}
		})
	}
	group.Wait()
	unlock, err := alias.Lock(ctx, "b.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	short, end := context.WithTimeout(ctx, 10*time.Millisecond)
	defer end()
	if _, err := alias.Lock(short, "a.txt", "b.txt"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
	unlockFirst, err := alias.Lock(ctx, "a.txt")
	if err != nil {
		t.Fatalf("the first name stays locked: %v", err)
	}
	unlockFirst()
}

// TestStoredRenditionsAcrossPages: all renditions of an image are found, and none of another one.
func TestStoredRenditionsAcrossPages(t *testing.T) {
	t.Parallel()
	s := derivedtest.OnMemory(t, nil)
	alias := derivedtest.WithRenditions(t, s)
	want := (storagedrivers.ListOptions{}).PageLimit() + 1
	for i := range want {
		derivedtest.Put(t, s, fmt.Sprintf("%s%d", alias.RenditionFolder("a.png"), i), "x")
	}
	derivedtest.Put(t, s, alias.RenditionFolder("b.png")+"0", "x")
	if keys, err := alias.StoredRenditions(t.Context(), "a.png"); len(keys) != want || err != nil {
		t.Errorf("%d renditions, error %v, want %d", len(keys), err, want)
	}
}

// TestStoredName: names are refused with a reason for the caller, or stored as submitted without
// sanitizing.
func TestStoredName(t *testing.T) {
	t.Parallel()
	prefix := strings.TrimSuffix(strings.Repeat(strings.Repeat("p", 200)+"/", 5), "/") // 1004 bytes
	long := strings.Repeat("\ufdfa", item.MaxName/3+1)                                 // slow to fold
	for _, c := range []struct {
		kind             item.Kind
		prefix           string
		filename, folder string
		reason           item.Reason
		message          string // empty: it is stored under its name
	}{
		{item.File, "", "Ein Bild ěšč.TXT", "/", 0, ""},
		{item.File, "", "a%2fb.txt", "Ein Ordner/é", 0, ""},
		{item.File, "", ".hidden.txt", "/", item.BadRequest, "starts with a dot"},
		{item.File, "", "a.txt ", "/", item.BadRequest, "ends with"},
		{item.File, "", "a\u200b.txt", "/", item.BadRequest, "invisible"},
		{item.File, "", "a.txt", "x.php", item.BadRequest, ".php"},
		{item.File, "", "a.txt", ".x", item.BadRequest, "starts with a dot"},
		{item.File, "", "a.txt", "a/@Uploads", item.BadRequest, "are reserved"},
		{item.File, "", strings.Repeat("x", 197) + ".txt", "/", item.BadRequest, "longer than"},
		{item.File, "", long + ".txt", "/", item.BadRequest, "longer than"},
		{item.File, "", "a.txt", long, item.BadRequest, "longer than"},
		{item.File, prefix, "a-name-of-some-length.txt", "/", item.BadRequest, "too long"},
		{item.File, prefix, "abcdefghi.txt", "/", item.BadRequest, "too long"}, // it has no room for the time
		{item.File, "", "a.php.txt", "/", item.BadContent, "extension .php"},
		{item.File, "", "a.exe", "/", item.BadContent, ".exe is not accepted"},
		{item.File, "", "a.png.webp", "/", item.BadContent, ".webp is not accepted"},
		{item.Image, "", "a.webp.webp", "/", 0, ""},
		{item.Image, "", "b.svg.webp", "/", 0, ""},
		{item.Image, "", "a.png.webp", "/", item.BadRequest, `"a.png.webp" is the name of a variant`},
		{item.Image, "", "a.JPG.webp", "/", item.BadRequest, `"a.JPG.webp" is the name of a variant`},
		{item.Image, "", "a.avif", "/", item.BadContent, ".avif is not accepted"},
	} {
		t.Run(c.filename+" "+c.folder, func(t *testing.T) {
			t.Parallel()
			alias := &item.Alias{Kind: c.kind, Prefix: c.prefix, Extensions: map[string]bool{"txt": true}}
			if c.kind == item.Image {
				alias.Extensions = map[string]bool{"png": true, "jpg": true, "svg": true, "webp": true}
			}
			got, err := alias.StoredName(c.filename, c.folder, derivedtest.Noon, item.OriginHTTP)
			if c.message == "" {
				if want := strings.TrimPrefix(c.folder+"/"+c.filename, "//"); got != want || err != nil {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
				return
			}
			failure, ok := errors.AsType[*item.Failure](err)
			if !ok || failure.Reason != c.reason || !strings.Contains(failure.Message, c.message) {
				t.Errorf("got %q, %v, want %v %q", got, err, c.reason, c.message)
			}
		})
	}
}

// TestFailures: messages name the kind of an error and do not contain its text, which is kept for
// the log.
func TestFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err     error
		reason  item.Reason
		message string
	}{
		{storagedrivers.ErrNoSpace, item.NoSpace, "full"},
		{storagedrivers.ErrUnavailable, item.Unavailable, "try again later"},
		{storagedrivers.ErrClosed, item.Unavailable, "try again later"},
		{context.DeadlineExceeded, item.Unavailable, "try again later"},
		{context.Canceled, item.BadRequest, "aborted"},
		{storagedrivers.ErrInvalidKey, item.BadRequest, "item of this name"},
		{fs.ErrPermission, item.StorageFailed, "refuses to be written to"},
		{storagedrivers.ErrSizeMismatch, item.StorageFailed, "could not store"},
		{errors.New("unforeseen"), item.StorageFailed, "could not store"},
		{render.ErrBusy, item.Busy, "try again later"},
		{render.ErrPanic, item.BadContent, "damaged"},
		{&imaging.ContentError{Message: "the content is GIF"}, item.BadContent, "the content is GIF"},
		{&imaging.TooLargeError{Message: "more than 15 pixels"}, item.TooLarge, "15 pixels"},
	} {
		const secret = "dial tcp 10.1.2.3:21"
		failure := item.ContentFailure(fmt.Errorf("%s: %w", secret, c.err))
		if failure.Reason != c.reason || !strings.Contains(failure.Message, c.message) {
			t.Errorf("%v is %v %q, want %v %q", c.err, failure.Reason, failure.Message, c.reason, c.message)
		}
		if strings.Contains(failure.Message, "10.1.2.3") {
			t.Errorf("%v has the message %q", c.err, failure.Message)
		}
		logged := failure.Reason != item.TooLarge && !errors.As(c.err, new(*imaging.ContentError)) // others say all
		if logged && (!strings.Contains(failure.Error(), secret) || !errors.Is(failure, c.err)) {
			t.Errorf("%v has the message %q and the detail %q", c.err, failure.Message, failure.Error())
		}
	}
}

// TestReasonWords: each reason has a word of its own.
func TestReasonWords(t *testing.T) {
	t.Parallel()
	words := map[string]bool{}
	for _, reason := range item.Reasons() {
		words[reason.String()] = true
	}
	if len(words) != int(item.Unauthorized)+1 || words[""] {
		t.Errorf("words %v", words)
	}
}
