package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/naming"
	"github.com/caddymedia/media/storagedrivers"
)

// withTrash returns an Overwrite alias for files that keeps what is removed.
func withTrash(t *testing.T, s *storagedrivers.Storage) *item.Alias {
	t.Helper()
	alias := newAlias(t, item.DefaultAlias, s)
	alias.Overwrite, alias.Trash, alias.Prefix = true, time.Hour, "file/content"
	return alias
}

// keptIn returns the bytes of what is in the trash of an alias, by the filename, in any order.
func keptIn(t *testing.T, alias *item.Alias) map[string][]string {
	t.Helper()
	kept := map[string][]string{}
	for key, content := range contents(t, alias.Storage) {
		if !strings.HasPrefix(key, alias.TrashRoot()+"/") {
			continue
		}
		entry, ok := alias.KeptAt(key)
		if !ok {
			t.Errorf("%q is no entry", key)
		}
		kept[entry.Filename] = append(kept[entry.Filename], content)
		slices.Sort(kept[entry.Filename])
	}
	return kept
}

func wantKept(t *testing.T, alias *item.Alias, want map[string][]string) {
	t.Helper()
	if got := keptIn(t, alias); !maps.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("kept %q, want %q", got, want)
	}
}

// TestKeep: each generation that is replaced, deleted or moved away is in the trash with its bytes,
// and only the bytes of items are.
func TestKeep(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		alias := withTrash(t, open(t, nil))
		u := newUploader(alias)
		if items := storeFiles(t, u, file("a.txt", "0")); items[0].Trash != "" {
			t.Errorf("a new item has the trash %q", items[0].Trash)
		}
		for i := range 5 {
			items := storeFiles(t, u, file("a.txt", fmt.Sprint(i+1)), file(fmt.Sprint("b", i, ".txt"), "b"))
			kept, ok := item.KeptOf(items[0].Trash)
			if !ok || kept.Filename != "a.txt" || !kept.Removed.Equal(noon) || items[1].Trash != "" {
				t.Errorf("trash %q and %q, %+v", items[0].Trash, items[1].Trash, kept)
			}
		}
		want := map[string][]string{"a.txt": {"0", "1", "2", "3", "4"}}
		wantKept(t, alias, want)
		trash, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "a.txt"})
		if kept, ok := item.KeptOf(trash); err != nil || !ok || kept.Filename != "a.txt" {
			t.Errorf("deleted: %q, %v", trash, err)
		}
		want["a.txt"] = append(want["a.txt"], "5")
		_, failures := u.Transfer(t.Context(), Transfer{
			Request: Request{Kind: item.File, Alias: alias.Name}, From: alias, Filename: "b0.txt", To: "sub/c.txt",
		})
		if failures != nil {
			t.Error(failures)
		}
		want["b0.txt"] = []string{"b"}
		wantKept(t, alias, want)
		if trash, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "sub/c.txt", Purge: true}); trash != "" || err != nil {
			t.Errorf("purged: %q, %v", trash, err)
		}
		if _, failures := u.Upload(t.Context(), Upload{Request: Request{Kind: item.File, Purge: true}},
			Form(bytes.NewReader(formBody(file("b1.txt", "new"))), boundary)); failures != nil {
			t.Error(failures)
		}
		wantKept(t, alias, want)
	})
}

// TestKeepOfTicket: a caller with a ticket does not learn what its upload has replaced.
func TestKeepOfTicket(t *testing.T) {
	t.Parallel()
	alias := withTrash(t, onMemory(t, nil))
	u := newUploader(alias)
	for range 2 {
		req := Upload{Request: Request{Kind: item.File, Actor: item.Actor{Ticket: "x"}}}
		if items, _ := uploadBody(t, u, bytes.NewReader(formBody(file("a.txt", "a"))), req); items[0].Trash != "" {
			t.Errorf("trash %q", items[0].Trash)
		}
	}
	wantKept(t, alias, map[string][]string{"a.txt": {"a"}})
}

// TestKeepUnkeepable: a move of an item that cannot be kept stores nothing.
func TestKeepUnkeepable(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := withTrash(t, s)
	alias.Prefix = strings.TrimSuffix(strings.Repeat(strings.Repeat("p", 99)+"/", 5), "/")
	long := strings.Repeat("x/", 200) + strings.Repeat("y", 60) + ".txt"
	put(t, s, alias.Key(long), "before")
	u := newUploader(alias)
	_, failures := u.Transfer(t.Context(), Transfer{Request: Request{Kind: item.File}, From: alias, Filename: long, To: "b.txt"})
	wantFailure(t, failures, item.Conflict, long, "too long for the trash")
	wantContents(t, s, map[string]string{alias.Key(long): "before"})
}

// TestKeepLocked: while a trash is locked, no request removes anything for good; an entry stays
// locked when the alias is not any more, until the time that it was locked for.
func TestKeepLocked(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := withTrash(t, s)
	alias.TrashLocked = true
	other := newAlias(t, "other", s)
	u := newUploader(alias, other)
	now := time.Now()
	u.Now = func() time.Time { return now }
	upload := func(content string, purge bool) ([]Item, item.Failures) {
		req := Upload{Request: Request{Kind: item.File, Purge: purge}}
		return uploadBody(t, u, bytes.NewReader(formBody(file("a.txt", content))), req)
	}
	for _, content := range []string{"first", "second"} {
		if _, failures := upload(content, false); failures != nil {
			t.Fatal(failures)
		}
	}
	before := contents(t, s)
	var kept item.Kept
	for key := range before {
		if entry, ok := alias.KeptAt(key); ok {
			kept = entry
		}
	}
	purge := func(alias *item.Alias) error { return u.Purge(t.Context(), alias, kept, item.Actor{}) }
	_, replaced := upload("third", true)
	_, moved := u.Transfer(t.Context(), Transfer{Request: Request{Kind: item.File, Alias: "other", Purge: true}, From: alias, Filename: "a.txt", To: "b.txt"})
	_, deleted := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "a.txt", Purge: true})
	shorter := *alias
	shorter.Trash, shorter.TrashLocked = time.Minute, false
	now = now.Add(alias.Trash - time.Second)
	for name, err := range map[string]error{"replaced": replaced, "moved": moved, "deleted": deleted, "purged": purge(alias), "shorter": purge(&shorter)} {
		if !errors.Is(err, errLocked) && !strings.Contains(fmt.Sprint(err), errLocked.Message) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantContents(t, s, before)
	now = now.Add(time.Second)
	if err := purge(&shorter); err != nil {
		t.Error(err)
	}
	wantKept(t, alias, map[string][]string{})
}

// TestKeepAbove: an alias of a later configuration in whose folder the trash of an earlier one is
// has no items there: it neither serves nor removes nor replaces them.
func TestKeepAbove(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := withTrash(t, s)
	u := newUploader(alias)
	storeFiles(t, u, file("a.txt", "what it was"))
	trash, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "a.txt"})
	if err != nil {
		t.Fatal(err)
	}
	before := contents(t, s)
	above := newAlias(t, "above", s)
	above.Prefix, above.Overwrite, above.Sanitize, above.Extensions = "file", true, false, map[string]bool{item.AnyExtension: true}
	u = newUploader(above)
	kept, _ := item.KeptOf(trash)
	for _, filename := range []string{above.Filename(alias.TrashKey(kept)), above.Filename(strings.ToUpper(alias.TrashKey(kept)))} {
		_, err = u.DeleteItem(t.Context(), Deletion{Alias: above, Filename: filename})
		if !errors.Is(err, fs.ErrNotExist) || above.MayBeItem(filename) {
			t.Errorf("%s may be an item: %v", filename, err)
		}
		req := Upload{Request: Request{Kind: item.File, Alias: "above"}, SubFolder: path.Dir(filename)}
		_, failures := uploadBody(t, u, bytes.NewReader(formBody(file("a.txt", "other"))), req)
		wantFailure(t, failures, item.BadRequest, "a.txt", "reserved")
	}
	wantContents(t, s, before)
}

// TestKeepImage: variants and renditions of a removed image are not kept.
func TestKeepImage(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		alias := imageAlias(t, open(t, nil))
		alias.Trash, alias.Prefix = time.Hour, "img/content"
		u := newUploader(alias)
		stored := storeImages(t, u, file("a.png", pngOf(red)))
		if stored[0].WebP == "" {
			t.Fatal("the image has no variant")
		}
		if err := u.Delete(t.Context(), alias, "a.png", item.Actor{}); err != nil {
			t.Fatal(err)
		}
		wantKept(t, alias, map[string][]string{"a.png": {pngOf(red)}})
		if left := contents(t, alias.Storage); len(left) != 1 {
			t.Errorf("left are %q", slices.Collect(maps.Keys(left)))
		}
	})
}

// TestKeepFails: if an item cannot be kept, the request fails, and nothing has changed.
func TestKeepFails(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for kind, reason := range map[error]item.Reason{
			storagedrivers.ErrNoSpace: item.NoSpace, storagedrivers.ErrUnavailable: item.Unavailable, fs.ErrPermission: item.StorageFailed,
		} {
			t.Run(fmt.Sprint(name, " ", kind), func(t *testing.T) {
				t.Parallel()
				failing := false
				s := open(t, func(op, key string) error {
					if failing && (op == "copy" || op == "put" || op == "commit") && strings.Contains(key, naming.TrashSuffix) {
						return fmt.Errorf("%s: %w", secret, kind)
					}
					return nil
				})
				alias := withTrash(t, s)
				u := newUploader(alias)
				storeFiles(t, u, file("a.txt", "old"))
				failing = true
				_, failures := uploadForm(t, u, file("a.txt", "new"), file("b.txt", "b"))
				if len(failures) != 1 || failures[0].Reason != reason || failures[0].Filename != "a.txt" {
					t.Errorf("replacing: %+v", failures)
				}
				if _, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "a.txt"}); item.OperationFailure("", err).Reason != reason {
					t.Errorf("deleting: %v", err)
				}
				wantContents(t, s, map[string]string{"file/content/a.txt": "old"})
			})
		}
	}
}

// TestKeepLongName: no item is stored whose name is too long for the trash. One that is there is
// not removed without being kept.
func TestKeepLongName(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		alias := withTrash(t, open(t, nil))
		u := newUploader(alias)
		alias.Prefix = strings.TrimSuffix(strings.Repeat(strings.Repeat("p", 99)+"/", 3), "/")
		folder := strings.Repeat(strings.Repeat("x", 99)+"/", 5)
		for length, fits := range map[int]bool{120: true, 180: false} {
			name := strings.Repeat("y", length) + ".txt"
			parts := []send{field("sub_folder", strings.TrimSuffix(folder, "/")), file(name, "old")}
			_, failures := uploadForm(t, u, parts...)
			if (failures == nil) != fits {
				t.Errorf("%d: %v", length, failures)
			}
			if fits {
				continue
			}
			wantFailure(t, failures, item.BadRequest, name, "too long")
			put(t, alias.Storage, alias.Key(folder+name), "before")
			_, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: folder + name})
			if failure := item.OperationFailure("", err); failure.Reason != item.Conflict || !strings.Contains(failure.Message, "too long for the trash") {
				t.Errorf("deleting: %v", err)
			}
			if _, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: folder + name, Purge: true}); err != nil {
				t.Errorf("purging: %v", err)
			}
		}
	})
}

// TestKeepAmongDeleters: of several deletions of one generation one succeeds, and one entry stays.
// Generations that are removed in one microsecond are all kept.
func TestKeepAmongDeleters(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		alias := withTrash(t, open(t, nil))
		u := newUploader(alias) // whose clock stands still
		want := make([]string, 0, 20)
		for i := range cap(want) {
			storeFiles(t, u, file("a.txt", fmt.Sprint(i)))
			want = append(want, fmt.Sprint(i))
			var all sync.WaitGroup
			var mu sync.Mutex
			deleted := 0
			for range 8 {
				all.Go(func() {
					trash, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "a.txt"})
					mu.Lock()
					defer mu.Unlock()
					if err == nil && trash != "" {
						deleted++
					} else if !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("trash %q, error %v", trash, err)
					}
				})
			}
			all.Wait()
			if deleted != 1 {
				t.Errorf("%d deletions have succeeded", deleted)
			}
		}
		slices.Sort(want)
		wantKept(t, alias, map[string][]string{"a.txt": want})
	})
}

// TestKeepAmongNodes: what several processes replace and delete at the same time is current or in
// the trash. They share no locks.
func TestKeepAmongNodes(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	const nodes, rounds = 4, 25
	var all sync.WaitGroup
	var mu sync.Mutex
	stored := map[string]bool{}
	for node := range nodes {
		all.Go(func() {
			alias := withTrash(t, s)
			u := newUploader(alias)
			for i := range rounds {
				content := fmt.Sprint(node, "-", i)
				_, failures := u.Upload(t.Context(), Upload{Request: Request{Kind: item.File}}, Form(bytes.NewReader(formBody(file("a.txt", content))), boundary))
				switch {
				case failures == nil:
					mu.Lock()
					stored[content] = true
					mu.Unlock()
				case failures[0].Reason != item.Conflict:
					t.Error(failures)
				}
				if i%3 == 0 {
					if err := u.Delete(t.Context(), alias, "a.txt", item.Actor{}); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, storagedrivers.ErrChanged) {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	found := map[string]bool{}
	for _, content := range contents(t, s) {
		found[content] = true
	}
	for content := range stored {
		if !found[content] {
			t.Errorf("%s is lost", content)
		}
	}
	if len(stored) < rounds {
		t.Errorf("only %d were stored", len(stored))
	}
}

// TestKeepWholeSeconds: all generations are kept on a host without entity tags whose times are
// whole seconds.
func TestKeepWholeSeconds(t *testing.T) {
	t.Parallel()
	for _, dates := range []bool{true, false} {
		t.Run(fmt.Sprint(dates), func(t *testing.T) {
			t.Parallel()
			alias, u := onWholeSeconds(t, dates, func(string, string) error { return nil })
			alias.Trash, alias.Prefix = time.Hour, "img/content"
			colours := []string{pngOf(red), pngOf(green), pngOf(blue), pngOf(unloved)}
			for _, content := range colours {
				storeImages(t, u, file("a.png", content))
			}
			if err := u.Delete(t.Context(), alias, "a.png", item.Actor{}); err != nil {
				t.Error(err)
			}
			slices.Sort(colours)
			wantKept(t, alias, map[string][]string{"a.png": colours})
		})
	}
}

// TestKeepUnreadable: an item that cannot be looked at is not replaced.
func TestKeepUnreadable(t *testing.T) {
	t.Parallel()
	failing := false
	s := onMemory(t, func(op, key string) error {
		if failing && op == "stat" && key == "file/content/a.txt" {
			return fs.ErrPermission
		}
		return nil
	})
	alias := withTrash(t, s)
	u := newUploader(alias)
	storeFiles(t, u, file("a.txt", "old"))
	failing = true
	if _, failures := uploadForm(t, u, file("a.txt", "new")); len(failures) != 1 || failures[0].Reason != item.StorageFailed {
		t.Errorf("failures %v", failures)
	}
	failing = false
	wantContents(t, s, map[string]string{"file/content/a.txt": "old"})
}

// TestKeepBroughtBack: where a commit is not one for several objects, a replaced item is back after
// the commit has failed.
func TestKeepBroughtBack(t *testing.T) {
	t.Parallel()
	failing := false
	s := onMemory(t, func(op, key string) error {
		if failing && op == "put" && key == "file/content/b.txt" {
			return storagedrivers.ErrNoSpace
		}
		return nil
	})
	alias := withTrash(t, s)
	u := newUploader(alias)
	storeFiles(t, u, file("a.txt", "old a"), file("b.txt", "old b"))
	failing = true
	_, failures := uploadForm(t, u, file("a.txt", "new a"), file("b.txt", "new b"))
	if len(failures) != 1 || failures[0].Reason != item.NoSpace || failures[0].Filename != "b.txt" {
		t.Errorf("failures %v", failures)
	}
	for key, want := range map[string]string{"file/content/a.txt": "old a", "file/content/b.txt": "old b"} {
		if got := contents(t, s)[key]; got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

// TestKeepCopies: a move within a backend reads what the checks need, and copies twice: the item to
// its new name, and the old one into the trash.
func TestKeepCopies(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var ops []string
	s := onMemory(t, func(op, key string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "copy" || op == "open" || op == "put" {
			ops = append(ops, op+" "+key[:min(len(key), len("file/content@trash"))])
		}
		return nil
	})
	alias := withTrash(t, s)
	u := newUploader(alias)
	storeFiles(t, u, file("a.txt", "a"))
	ops = nil
	_, failures := u.Transfer(t.Context(), Transfer{Request: Request{Kind: item.File}, From: alias, Filename: "a.txt", To: "b.txt"})
	if want := []string{"open file/content/a.txt", "copy file/content/b.txt", "copy file/content@trash"}; failures != nil || !slices.Equal(ops, want) {
		t.Errorf("%q, want %q, failures %v", ops, want, failures)
	}
}

// restore brings an entry back under its filename.
func restore(ctx context.Context, u *Uploader, alias *item.Alias, id string, newName bool) ([]Item, item.Failures) {
	kept, _ := item.KeptOf(id)
	from, filename := alias.InTrash(kept)
	return u.Transfer(ctx, Transfer{
		Request: Request{Kind: alias.Kind, Alias: alias.Name}, From: from, Filename: filename, To: kept.Filename, Copy: true,
		Same: true, Restores: true, Exact: true, New: newName,
	})
}

// TestRestore: an item is back with its bytes, and its entry stays. What is there already is not
// stored again, and another item of the name only goes to the trash if it may.
func TestRestore(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		alias := withTrash(t, open(t, nil))
		u := newUploader(alias)
		storeFiles(t, u, file("a.txt", "old"))
		trash, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "a.txt"})
		if err != nil {
			t.Fatal(err)
		}
		var before storagedrivers.Info
		for i := range 2 {
			items, failures := restore(t.Context(), u, alias, trash, true)
			if failures != nil || items[0].Filename != "a.txt" || items[0].Trash != "" {
				t.Fatal(items, failures)
			}
			now, err := item.Stat(t.Context(), alias.Storage, alias.Key("a.txt"))
			if i > 0 && (err != nil || !now.Same(before)) {
				t.Errorf("stored again: %+v, %v", now, err)
			}
			before = now
		}
		wantKept(t, alias, map[string][]string{"a.txt": {"old"}})
		storeFiles(t, u, file("a.txt", "new"))
		_, failures := restore(t.Context(), u, alias, trash, true)
		wantFailure(t, failures, item.Conflict, trash, "already an item of this name")
		items, failures := restore(t.Context(), u, alias, trash, false)
		if failures != nil || items[0].Trash == "" {
			t.Fatal(items, failures)
		}
		wantKept(t, alias, map[string][]string{"a.txt": {"new", "old", "old"}})
		object, err := alias.Storage.OpenSeeker(t.Context(), alias.Key("a.txt"))
		if err != nil {
			t.Fatal(err)
		}
		defer object.Close()
		if got, err := io.ReadAll(object); string(got) != "old" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		again, failures := restore(t.Context(), u, alias, trash, false)
		if failures != nil || again[0].Trash != "" {
			t.Errorf("restored again: %+v, %v", again, failures)
		}
		kept, _ := item.KeptOf(trash)
		if err := u.Purge(t.Context(), alias, kept, item.Actor{}); err != nil {
			t.Error(err)
		}
		if err := u.Purge(t.Context(), alias, kept, item.Actor{}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("purged again: %v", err)
		}
		_, failures = restore(t.Context(), u, alias, trash, false)
		wantFailure(t, failures, item.Missing, trash, "no such item")
	})
}

// TestRestoreAsItWas: an item that the present rules of its alias refuse comes back with its name
// and bytes if it is not checked, and not at all otherwise.
func TestRestoreAsItWas(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		filename string
		change   func(*item.Alias)
	}{
		"extension":        {"a.txt", func(a *item.Alias) { a.Extensions = map[string]bool{"pdf": true} }},
		"never accepted":   {"a.php", func(*item.Alias) {}},
		"size":             {"a.txt", func(a *item.Alias) { a.MaxSize = 1 }},
		"name":             {"sub/\u00c4 b.txt", func(a *item.Alias) { a.Sanitize = true }},
		"no image":         {"a.jpg", func(a *item.Alias) { a.Kind = item.Image }},
		"no image of that": {"a.txt", func(a *item.Alias) { a.Kind, a.Extensions = item.Image, map[string]bool{"jpg": true} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := onMemory(t, nil)
			alias := withTrash(t, s)
			tt.change(alias)
			kept := alias.NewKept(storagedrivers.Info{Key: alias.Key(tt.filename), ModTime: noon}, noon)
			put(t, s, alias.TrashKey(kept), "what it was")
			u := newUploader(alias)
			from, filename := alias.InTrash(kept)
			transfer := Transfer{
				Request: Request{Kind: alias.Kind, Alias: alias.Name}, From: from, Filename: filename, To: kept.Filename, Copy: true,
				Same: true, Restores: true, Exact: true,
			}
			if _, failures := u.Transfer(t.Context(), transfer); failures == nil {
				t.Error("it was accepted")
			}
			transfer.AsItWas = true
			items, failures := u.Transfer(t.Context(), transfer)
			if failures != nil || items[0].Filename != tt.filename {
				t.Errorf("%+v, %v", items, failures)
			}
			wantContents(t, s, map[string]string{alias.TrashKey(kept): "what it was", alias.Key(tt.filename): "what it was"})
		})
	}
}

// TestRestoreAsItWasImage: an image that is not checked has its variant again, and so has one
// that replaces another.
func TestRestoreAsItWasImage(t *testing.T) {
	t.Parallel()
	alias := imageAlias(t, onMemory(t, nil))
	alias.Trash, alias.Prefix, alias.Overwrite = time.Hour, "img/content", true
	u := newUploader(alias)
	storeImages(t, u, file("a.png", pngOf(red)))
	id, err := u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "a.png"})
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := item.KeptOf(id)
	from, filename := alias.InTrash(kept)
	for range 2 {
		items, failures := u.Transfer(t.Context(), Transfer{
			Request: Request{Kind: alias.Kind, Alias: alias.Name}, From: from, Filename: filename, To: kept.Filename, Copy: true,
			Restores: true, Exact: true, AsItWas: true,
		})
		if failures != nil || items[0].WebP == "" {
			t.Fatalf("%+v, %v", items, failures)
		}
		if state, err := alias.VariantState(t.Context(), "a.png"); state != item.VariantCurrent {
			t.Errorf("the variant is %s, %v", state, err)
		}
		storeImages(t, u, file("a.png", pngOf(blue)))
	}
}
