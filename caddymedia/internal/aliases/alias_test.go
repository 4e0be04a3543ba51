package aliases_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/aliases"
	"github.com/caddymedia/media/caddymedia/internal/derived/derivedtest"
	"github.com/caddymedia/media/caddymedia/internal/imaging"
	"github.com/caddymedia/media/caddymedia/internal/imaging/render"
	"github.com/caddymedia/media/caddymedia/internal/naming"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// TestTypes: an alias may have its own media types, with which its items are stored and served.
func TestTypes(t *testing.T) {
	t.Parallel()
	a := aliases.Alias{Types: map[string]string{"step": "model/step", "txt": "text/x"}}
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
	on := func(name, backend, root, prefix string) *aliases.Alias {
		location := storagedrivers.Location{Backend: backend, Root: root}
		s := derivedtest.Closed(t, name, memory.New(), storagedrivers.Options{Location: location})
		return &aliases.Alias{Storage: s, Prefix: prefix}
	}
	unlock, err := on("one", "x", "", "media/img").Lock(t.Context(), "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for _, c := range []struct {
		name  string
		alias *aliases.Alias
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
	long := strings.Repeat("\ufdfa", aliases.MaxName/3+1)                              // slow to fold
	for _, c := range []struct {
		kind             aliases.Kind
		prefix           string
		filename, folder string
		reason           aliases.Reason
		message          string // empty: it is stored under its name
	}{
		{aliases.File, "", "Ein Bild ěšč.TXT", "/", 0, ""},
		{aliases.File, "", "a%2fb.txt", "Ein Ordner/é", 0, ""},
		{aliases.File, "", ".hidden.txt", "/", aliases.BadRequest, "starts with a dot"},
		{aliases.File, "", "a.txt ", "/", aliases.BadRequest, "ends with"},
		{aliases.File, "", "a\u200b.txt", "/", aliases.BadRequest, "invisible"},
		{aliases.File, "", "a.txt", "x.php", aliases.BadRequest, ".php"},
		{aliases.File, "", "a.txt", ".x", aliases.BadRequest, "starts with a dot"},
		{aliases.File, "", "a.txt", "a/@Uploads", aliases.BadRequest, "@uploads is reserved"},
		{aliases.File, "", strings.Repeat("x", 197) + ".txt", "/", aliases.BadRequest, "longer than"},
		{aliases.File, "", long + ".txt", "/", aliases.BadRequest, "longer than"},
		{aliases.File, "", "a.txt", long, aliases.BadRequest, "longer than"},
		{aliases.File, prefix, "a-name-of-some-length.txt", "/", aliases.BadRequest, "too long"},
		{aliases.File, prefix, "abcdefghi.txt", "/", aliases.BadRequest, "too long"}, // it has no room for the time
		{aliases.File, "", "a.php.txt", "/", aliases.BadContent, "extension .php"},
		{aliases.File, "", "a.exe", "/", aliases.BadContent, ".exe is not accepted"},
		{aliases.File, "", "a.png.webp", "/", aliases.BadContent, ".webp is not accepted"},
		{aliases.Image, "", "a.webp.webp", "/", 0, ""},
		{aliases.Image, "", "b.svg.webp", "/", 0, ""},
		{aliases.Image, "", "a.png.webp", "/", aliases.BadRequest, `"a.png.webp" is the name of a variant`},
		{aliases.Image, "", "a.JPG.webp", "/", aliases.BadRequest, `"a.JPG.webp" is the name of a variant`},
		{aliases.Image, "", "a.avif", "/", aliases.BadContent, ".avif is not accepted"},
	} {
		t.Run(c.filename+" "+c.folder, func(t *testing.T) {
			t.Parallel()
			alias := &aliases.Alias{Kind: c.kind, Prefix: c.prefix, Extensions: map[string]bool{"txt": true}}
			if c.kind == aliases.Image {
				alias.Extensions = map[string]bool{"png": true, "jpg": true, "svg": true, "webp": true}
			}
			got, err := alias.StoredName(c.filename, c.folder, derivedtest.Noon, aliases.OriginHTTP)
			if c.message == "" {
				if want := strings.TrimPrefix(c.folder+"/"+c.filename, "//"); got != want || err != nil {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
				return
			}
			failure, ok := errors.AsType[*aliases.Failure](err)
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
		reason  aliases.Reason
		message string
	}{
		{storagedrivers.ErrNoSpace, aliases.NoSpace, "full"},
		{storagedrivers.ErrUnavailable, aliases.Unavailable, "try again later"},
		{storagedrivers.ErrClosed, aliases.Unavailable, "try again later"},
		{context.DeadlineExceeded, aliases.Unavailable, "try again later"},
		{context.Canceled, aliases.BadRequest, "aborted"},
		{storagedrivers.ErrInvalidKey, aliases.BadRequest, "item of this name"},
		{fs.ErrPermission, aliases.StorageFailed, "refuses to be written to"},
		{storagedrivers.ErrSizeMismatch, aliases.StorageFailed, "could not store"},
		{errors.New("unforeseen"), aliases.StorageFailed, "could not store"},
		{render.ErrBusy, aliases.Busy, "try again later"},
		{render.ErrPanic, aliases.BadContent, "damaged"},
		{&imaging.ContentError{Message: "the content is GIF"}, aliases.BadContent, "the content is GIF"},
		{&imaging.TooLargeError{Message: "more than 15 pixels"}, aliases.TooLarge, "15 pixels"},
	} {
		const secret = "dial tcp 10.1.2.3:21"
		failure := aliases.ContentFailure(fmt.Errorf("%s: %w", secret, c.err))
		if failure.Reason != c.reason || !strings.Contains(failure.Message, c.message) {
			t.Errorf("%v is %v %q, want %v %q", c.err, failure.Reason, failure.Message, c.reason, c.message)
		}
		if strings.Contains(failure.Message, "10.1.2.3") {
			t.Errorf("%v has the message %q", c.err, failure.Message)
		}
		logged := failure.Reason != aliases.TooLarge && !errors.As(c.err, new(*imaging.ContentError)) // others say all
		if logged && (!strings.Contains(failure.Error(), secret) || !errors.Is(failure, c.err)) {
			t.Errorf("%v has the message %q and the detail %q", c.err, failure.Message, failure.Error())
		}
	}
}

// TestReasonWords: each reason has a word of its own.
func TestReasonWords(t *testing.T) {
	t.Parallel()
	words := map[string]bool{}
	for _, reason := range aliases.Reasons() {
		words[reason.String()] = true
	}
	if len(words) != int(aliases.Unauthorized)+1 || words[""] {
		t.Errorf("words %v", words)
	}
}
