package upload

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

// replaceSingle replaces an item, and returns its filename.
func replaceSingle(t *testing.T, u *Uploader, body io.Reader, req Replacement) (string, item.Failures) {
	t.Helper()
	items, failures := u.Replace(t.Context(), req, Single(req.Filename, body))
	checked(t, items, failures)
	return strings.Join(filenames(items), " "), failures
}

// TestReplaceExactly: an item keeps its filename, whatever the rules for new names. It must exist.
func TestReplaceExactly(t *testing.T) {
	t.Parallel()
	every := func(storagedrivers.Info) bool { return true }
	for _, c := range []struct {
		name, filename string
		overwrite      bool
		fail           string // the failing operation
		matches        func(storagedrivers.Info) bool
		reason         item.Reason
		message        string // empty if the item is replaced
	}{
		{name: "item", filename: "A Strange  Name.TXT", overwrite: true},
		{name: "item in folders", filename: "Deep/er/a.txt", overwrite: true, matches: every},
		{name: "append time", filename: "a.txt", reason: item.Conflict, message: "never replaced"},
		{name: "missing", filename: "none.txt", overwrite: true, reason: item.Missing, message: "no such item"},
		{name: "another", filename: "a.txt", overwrite: true, matches: func(storagedrivers.Info) bool { return false }, reason: item.Changed, message: "another one"},
		{name: "extension", filename: "a.exe", overwrite: true, reason: item.BadContent, message: ".exe"},
		{name: "script", filename: "a.php.txt", overwrite: true, reason: item.BadContent, message: ".php"},
		{name: "script in a folder", filename: "a.php/a.txt", overwrite: true, reason: item.BadContent, message: ".php"},
		{name: "dots", filename: "../content/a.txt", overwrite: true, reason: item.BadRequest, message: "invalid"},
		{name: "unfinished upload", filename: "@uploads/a.txt", overwrite: true, reason: item.BadRequest, message: "invalid"},
		{name: "stat fails", filename: "a.txt", overwrite: true, fail: "stat", reason: item.StorageFailed, message: "storage"},
	} {
		for kind, open := range storages {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				t.Parallel()
				s := open(t, func(op, _ string) error {
					if op == c.fail {
						return errors.New(secret)
					}
					return nil
				})
				before := map[string]string{}
				for _, filename := range []string{"a.txt", "A Strange  Name.TXT", "Deep/er/a.txt"} {
					before["file/content/"+filename] = "old"
					put(t, s, "file/content/"+filename, "old")
				}
				alias := newAlias(t, item.DefaultAlias, s)
				alias.Overwrite = c.overwrite
				u := newUploader(alias)
				w := watch(u)
				req := Replacement{Request: Request{Kind: item.File}, Filename: c.filename, Matches: c.matches}
				name, failures := replaceSingle(t, u, strings.NewReader("new"), req)
				if c.message != "" {
					wantFailure(t, failures, c.reason, c.filename, c.message)
					wantContents(t, s, before)
					return
				}
				before["file/content/"+c.filename] = "new"
				wantContents(t, s, before)
				if name != c.filename || fmt.Sprint(w.actions()) != "[replaced "+c.filename+" by ]" {
					t.Errorf("got %q, %v, %q", name, failures, w.actions())
				}
			})
		}
	}
}

// TestReplaceKeepsExtension: an alias that renames images does not rename one that replaces
// another.
func TestReplaceKeepsExtension(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := imageAlias(t, s)
	alias.Prefix, alias.Overwrite, alias.RenameMismatched = "img/content", true, true
	put(t, s, "img/content/a.jpg", "old")
	_, failures := replaceSingle(t, newUploader(alias), strings.NewReader(pngOf(red)), Replacement{Request: Request{Kind: item.Image}, Filename: "a.jpg"})
	wantFailure(t, failures, item.BadContent, "a.jpg", "PNG")
	wantContents(t, s, map[string]string{"img/content/a.jpg": "old"})
}

// TestReplaceUnderLock: the condition is checked under the lock of the item, right before the
// commit.
func TestReplaceUnderLock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(s *storagedrivers.Storage, t *testing.T)
		reason item.Reason
		want   map[string]string
	}{
		{func(s *storagedrivers.Storage, t *testing.T) { put(t, s, "file/content/b.txt", "b") }, -1, map[string]string{"file/content/a.txt": "new", "file/content/b.txt": "b"}},
		{func(s *storagedrivers.Storage, t *testing.T) { replace(t, s, "file/content/a.txt", "theirs") }, item.Changed, map[string]string{"file/content/a.txt": "theirs"}},
		{func(s *storagedrivers.Storage, t *testing.T) {
			if err := s.Delete(t.Context(), "file/content/a.txt"); err != nil {
				t.Fatal(err)
			}
		}, item.Missing, nil},
	} {
		t.Run(fmt.Sprint(c.reason), func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			alias := newAlias(t, item.DefaultAlias, s)
			alias.Overwrite = true
			put(t, s, "file/content/a.txt", "old")
			old, err := s.Stat(t.Context(), "file/content/a.txt")
			if err != nil {
				t.Fatal(err)
			}
			unlock, err := alias.Lock(t.Context(), "a.txt")
			if err != nil {
				t.Fatal(err)
			}
			result := make(chan item.Failures)
			go func() {
				_, failures := newUploader(alias).Replace(t.Context(), Replacement{Request: Request{Kind: item.File}, Filename: "a.txt", Matches: func(info storagedrivers.Info) bool { return info.Same(old) }}, Single("a.txt", strings.NewReader("new")))
				result <- failures
			}()
			c.change(s, t)
			unlock()
			failures := <-result
			if c.reason < 0 != (failures == nil) || failures != nil && failures[0].Reason != c.reason {
				t.Errorf("%v", failures)
			}
			wantContents(t, s, c.want)
		})
	}
}

// TestBody: the failures of a body are those of a form.
func TestBody(t *testing.T) {
	t.Parallel()
	for message, err := range map[string]error{
		"ends too early": io.ErrUnexpectedEOF, "could not be read to its end": errors.New(secret),
	} {
		s := onMemory(t, nil)
		body := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(err))
		_, failures := newUploader(newAlias(t, item.DefaultAlias, s)).Upload(t.Context(), Upload{Request: Request{Kind: item.File}}, Body("a.txt", body))
		checked(t, nil, failures)
		wantFailure(t, failures, item.BadRequest, "", message)
		wantContents(t, s, nil)
	}
}
