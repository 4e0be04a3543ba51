package upload

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
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

// twoNodes returns the uploaders of two nodes on one backend, whose locks are separate, and their
// aliases. fail is called before each operation of the backend.
func twoNodes(t *testing.T, fail func(op, key string) error) (uploaders [2]*Uploader, over [2]*item.Alias) {
	t.Helper()
	here, there := shared(t, "memory", fail)
	for i, s := range []*storagedrivers.Storage{here, there} {
		over[i] = newAlias(t, "over", s)
		over[i].Overwrite = true
		uploaders[i] = newUploader(over[i])
	}
	return uploaders, over
}

// same returns a condition for the present item.
func same(t *testing.T, alias *item.Alias, filename string) func(storagedrivers.Info) bool {
	t.Helper()
	old, err := alias.Storage.Stat(t.Context(), alias.Key(filename))
	if err != nil {
		t.Fatal(err)
	}
	return func(info storagedrivers.Info) bool { return info.Same(old) }
}

// nodeChanges are changes of a.txt, and the reason of one that comes too late.
func nodeChanges(t *testing.T, u *Uploader, alias *item.Alias) map[string]func(matches func(storagedrivers.Info) bool) error {
	t.Helper()
	return map[string]func(func(storagedrivers.Info) bool) error{
		"replacement": func(matches func(storagedrivers.Info) bool) error {
			_, failures := u.Replace(t.Context(), Replacement{Request: Request{Kind: item.File, Alias: "over"}, Filename: "a.txt", Matches: matches}, Body("a.txt", strings.NewReader("ours")))
			return failureOf(failures)
		},
		"move": func(matches func(storagedrivers.Info) bool) error {
			_, failures := u.Transfer(t.Context(), Transfer{Request: Request{Kind: item.File, Alias: "over"}, From: alias, Filename: "a.txt", To: "b.txt", Matches: matches})
			return failureOf(failures)
		},
		"deletion": func(matches func(storagedrivers.Info) bool) error {
			_, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "a.txt", Matches: matches})
			return err
		},
	}
}

func failureOf(failures item.Failures) error {
	if failures == nil {
		return nil
	}
	return failures[0]
}

// TestChangedUnderLock: the condition of a change is checked under the lock of the item, so that a
// change of another one before it counts.
func TestChangedUnderLock(t *testing.T) {
	t.Parallel()
	const key = "file/over/a.txt"
	for name, done := range map[string]map[string]string{
		"replacement": {key: "ours"}, "move": {"file/over/b.txt": "old"}, "deletion": nil,
	} {
		for theirs, c := range map[string]struct {
			change func(s *storagedrivers.Storage) error
			reason string
			want   map[string]string
		}{
			"another item": {func(s *storagedrivers.Storage) error { put(t, s, "file/over/c.txt", "c"); return nil }, "", done},
			"replaced":     {func(s *storagedrivers.Storage) error { replace(t, s, key, "theirs"); return nil }, "changed", map[string]string{key: "theirs"}},
			"removed":      {func(s *storagedrivers.Storage) error { return s.Delete(t.Context(), key) }, "missing", nil},
		} {
			t.Run(name+" "+theirs, func(t *testing.T) {
				t.Parallel()
				uploaders, over := twoNodes(t, nil)
				alias := over[0]
				put(t, alias.Storage, key, "old")
				change, matches := nodeChanges(t, uploaders[0], alias)[name], same(t, alias, "a.txt")
				unlock, err := alias.Lock(t.Context(), "a.txt")
				if err != nil {
					t.Fatal(err)
				}
				result := make(chan error)
				go func() { result <- change(matches) }()
				if err := c.change(alias.Storage); err != nil {
					t.Error(err)
				}
				unlock()
				if got := reasonOf(<-result); got != c.reason {
					t.Errorf("the reason is %q, want %q", got, c.reason)
				}
				want := maps.Clone(c.want)
				if theirs == "another item" {
					want = map[string]string{"file/over/c.txt": "c"}
					maps.Copy(want, c.want)
				}
				wantContents(t, alias.Storage, want)
			})
		}
	}
}

// reasonOf returns the reason of the error of a change.
func reasonOf(err error) string {
	failure, ok := errors.AsType[*item.Failure](err)
	switch {
	case err == nil:
		return ""
	case ok:
		return failure.Reason.String()
	case errors.Is(err, item.ErrOther):
		return item.Changed.String()
	case errors.Is(err, fs.ErrNotExist):
		return item.Missing.String()
	}
	return err.Error()
}

// TestOvertakenByNode: if another node replaces or removes an item between the comparison and the
// change, its item stays, or stays removed, and the change fails.
func TestOvertakenByNode(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]string{"replacement": "put", "move": "delete", "deletion": "delete"} {
		for _, theirs := range []string{"theirs", ""} {
			t.Run(fmt.Sprintf("%s %q", name, theirs), func(t *testing.T) {
				t.Parallel()
				var armed atomic.Bool
				var other *item.Alias
				uploaders, over := twoNodes(t, func(doing, key string) error {
					if doing != op || key != "file/over/a.txt" || !armed.CompareAndSwap(true, false) {
						return nil
					}
					if theirs == "" {
						return other.Storage.Delete(t.Context(), key)
					}
					replace(t, other.Storage, key, theirs)
					return nil
				})
				other = over[1]
				put(t, over[0].Storage, "file/over/a.txt", "old")
				change := nodeChanges(t, uploaders[0], over[0])[name]
				matches := same(t, over[0], "a.txt")
				armed.Store(true)
				err := change(matches)
				if err == nil || armed.Load() {
					t.Fatalf("error %v, overtaken: %v", err, !armed.Load())
				}
				want := map[string]string{}
				if theirs != "" {
					want["file/over/a.txt"] = theirs
				}
				if name == "move" {
					want["file/over/b.txt"] = "old"
				}
				wantContents(t, over[0].Storage, want)
			})
		}
	}
}

// TestAnyOvertakenByNode: a replacement and a deletion of any item are made although another node
// replaces the item meanwhile.
func TestAnyOvertakenByNode(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]string{"replacement": "put", "deletion": "delete"} {
		for _, times := range []int32{1, transferTries - 1, transferTries} {
			t.Run(fmt.Sprint(name, times), func(t *testing.T) {
				t.Parallel()
				var left, busy atomic.Int32
				var other *item.Alias
				uploaders, over := twoNodes(t, func(doing, key string) error {
					if doing == op && key == "file/over/a.txt" && busy.CompareAndSwap(0, 1) {
						defer busy.Store(0)
						if left.Add(-1) >= 0 {
							replace(t, other.Storage, key, fmt.Sprint("theirs ", left.Load()))
						}
					}
					return nil
				})
				other = over[1]
				put(t, over[0].Storage, "file/over/a.txt", "old")
				left.Store(times)
				err := nodeChanges(t, uploaders[0], over[0])[name](nil)
				if (err == nil) != (times < transferTries) {
					t.Error(err)
				}
				want := map[string]string{}
				switch {
				case times == transferTries:
					want["file/over/a.txt"] = "theirs 0"
				case name == "replacement":
					want["file/over/a.txt"] = "ours"
				}
				wantContents(t, over[0].Storage, want)
			})
		}
	}
}

// TestNodesAtOnce: of the changes of one item by two nodes at the same time, exactly one succeeds.
func TestNodesAtOnce(t *testing.T) {
	t.Parallel()
	uploaders, over := twoNodes(t, nil)
	for round := range 1000 {
		replace(t, over[0].Storage, "file/over/a.txt", fmt.Sprint("old ", round))
		matches := same(t, over[0], "a.txt")
		var all sync.WaitGroup
		var wins atomic.Int32
		for i, u := range uploaders {
			for name, change := range nodeChanges(t, u, over[i]) {
				all.Go(func() {
					err := change(matches)
					failure, ok := errors.AsType[*item.Failure](err)
					switch {
					case err == nil:
						wins.Add(1)
					case !ok && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, item.ErrOther),
						ok && failure.Reason != item.Missing && failure.Reason != item.Changed && failure.Reason != item.Conflict:
						t.Errorf("%s: %v", name, err)
					}
				})
			}
		}
		all.Wait()
		if wins.Load() != 1 {
			t.Fatalf("round %d: %d changes have succeeded, left are %q", round, wins.Load(), contents(t, over[0].Storage))
		}
	}
}
