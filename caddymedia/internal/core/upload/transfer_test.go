package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/memory"
)

// transferSite has two file aliases on one storage, "content" and "over", which overwrites, and one
// on another storage, "far".
type transferSite struct {
	u                  *Uploader
	watched            *watched
	content, over, far *item.Alias
	here, there        *storagedrivers.Storage
}

func newTransferSite(t *testing.T, open opener, fail func(op, key string) error) *transferSite {
	t.Helper()
	s := &transferSite{here: open(t, fail), there: closed(t, "far", memory.New(), storagedrivers.Options{})}
	s.content, s.over, s.far = newAlias(t, "content", s.here), newAlias(t, "over", s.here), newAlias(t, "far", s.there)
	s.over.Overwrite, s.far.MaxSize = true, 10
	for _, alias := range []string{"content", "over"} {
		for _, name := range []string{"a.txt", "b.txt", "Odd Name.txt"} {
			put(t, s.here, "file/"+alias+"/"+name, alias+" "+name)
		}
	}
	s.u = newUploader(s.content, s.over, s.far)
	s.watched = watch(s.u)
	return s
}

// transfer transfers an item of an alias to another one.
func (s *transferSite) transfer(t *testing.T, from, to *item.Alias, transfer Transfer) (string, item.Failures) {
	t.Helper()
	transfer.Request = Request{Kind: item.File, Alias: to.Name, Actor: item.Actor{Account: "shop"}}
	transfer.From = from
	items, failures := s.u.Transfer(t.Context(), transfer)
	checked(t, items, failures)
	return strings.Join(filenames(items), " "), failures
}

const noonTXT = "-1795176000.txt"

// TestTransfer: an item is named by the rules of the target alias, and replaces nothing under
// Append Time. A move removes the old one, and a copy does not.
func TestTransfer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, from, filename string
		toAlias, to          string
		want                 string // the new filename
		copyWant             string // that of a copy, if it is another one
	}{
		{"new name", "content", "a.txt", "content", "new.txt", "new.txt", ""},
		{"folder", "content", "a.txt", "content", "Some/Where/New.TXT", "some/where/new.txt", ""},
		{"odd name", "content", "Odd Name.txt", "content", "odd.txt", "odd.txt", ""},
		{"taken", "content", "a.txt", "content", "b.txt", "b" + noonTXT, ""},
		{"itself", "content", "a.txt", "content", "a.txt", "a.txt", "a" + noonTXT},
		{"itself sanitized", "content", "a.txt", "content", "A.TXT", "a.txt", "a" + noonTXT},
		{"overwrites", "over", "a.txt", "over", "b.txt", "b.txt", ""},
		{"itself that overwrites", "over", "a.txt", "over", "a.txt", "a.txt", ""},
		{"to one that overwrites", "content", "a.txt", "over", "b.txt", "b.txt", ""},
		{"same name in another", "content", "a.txt", "over", "a.txt", "a.txt", ""},
		{"from one that overwrites", "over", "a.txt", "content", "b.txt", "b" + noonTXT, ""},
	} {
		for kind, open := range storages {
			for _, copies := range []bool{false, true} {
				t.Run(fmt.Sprint(c.name, " ", kind, copies), func(t *testing.T) {
					t.Parallel()
					s := newTransferSite(t, open, nil)
					by := map[string]*item.Alias{"content": s.content, "over": s.over}
					wanted := c.want
					if copies && c.copyWant != "" {
						wanted = c.copyWant
					}
					from, to := by[c.from], by[c.toAlias]
					want := contents(t, s.here)
					content := want[from.Key(c.filename)]
					replaced := want[to.Key(wanted)] != ""
					itself := from.Key(c.filename) == to.Key(wanted)
					if !copies {
						delete(want, from.Key(c.filename))
					}
					want[to.Key(wanted)] = content
					got, failures := s.transfer(t, from, to, Transfer{Filename: c.filename, To: c.to, Copy: copies})
					if failures != nil || got != wanted {
						t.Errorf("%q, %v, want %q", got, failures, wanted)
					}
					wantContents(t, s.here, want)
					actions := map[bool]string{false: "stored ", true: "replaced "}[replaced] + wanted + " by shop"
					if !copies {
						actions = "deleted " + c.filename + " by shop " + actions
						actions = strings.TrimPrefix(actions, "deleted "+c.filename+" by shop ") + " deleted " + c.filename + " by shop"
					}
					if itself {
						actions = "unchanged " + c.filename + " by shop"
					}
					if got := strings.Join(s.watched.actions(), " "); got != actions {
						t.Errorf("changes %q, want %q", got, actions)
					}
					for _, change := range s.watched.changes {
						if change.Transfer == nil || change.Transfer.Copy != copies || change.Transfer.Filename != c.filename {
							t.Errorf("%+v", change)
						}
					}
				})
			}
		}
	}
}

// TestTransferNew: a new item replaces none and gets no other name, also by a name that is
// converted. Onto itself it stays unchanged.
func TestTransferNew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		alias, to string
		want      string // empty: refused
	}{
		{"content", "b.txt", ""},
		{"content", "B.TXT", ""},
		{"content", "Né.txt", "ne.txt"},
		{"content", "A.TXT", "a.txt"},
		{"over", "b.txt", ""},
		{"over", "B.TXT", ""},
		{"over", "Né.txt", "ne.txt"},
		{"over", "A.TXT", "a.txt"},
	} {
		for kind, open := range storages {
			for _, copies := range []bool{false, true} {
				t.Run(fmt.Sprint(c.alias, " ", c.to, " ", kind, copies), func(t *testing.T) {
					t.Parallel()
					s := newTransferSite(t, open, nil)
					alias := map[string]*item.Alias{"content": s.content, "over": s.over}[c.alias]
					alias.Sanitize = true
					before, want := contents(t, s.here), c.want
					if copies && want == "a.txt" && !alias.Overwrite {
						want = "" // a copy never takes the name of its item there
					}
					got, failures := s.transfer(t, alias, alias, Transfer{Filename: "a.txt", To: c.to, Copy: copies, New: true})
					if got != want {
						t.Errorf("%q, %v, want %q", got, failures, want)
					}
					if want == "" {
						wantFailure(t, failures, item.Conflict, "a.txt", "already an item of this name")
						wantContents(t, s.here, before)
					}
				})
			}
		}
	}
}

// TestTransferRefused: nothing changes if the item cannot be stored in the target alias.
func TestTransferRefused(t *testing.T) {
	t.Parallel()
	other := func(storagedrivers.Info) bool { return false }
	for _, c := range []struct {
		name     string
		far      bool
		transfer Transfer
		reason   item.Reason
		message  string
	}{
		{"missing", false, Transfer{Filename: "none.txt", To: "new.txt"}, item.Missing, "no such item"},
		{"invalid name", false, Transfer{Filename: "../content/a.txt", To: "new.txt"}, item.Missing, "no such item"},
		{"missing itself", false, Transfer{Filename: "none.txt", To: "none.txt"}, item.Missing, "no such item"},
		{"another", false, Transfer{Filename: "a.txt", To: "new.txt", Matches: other}, item.Changed, "another one"},
		{"another itself", false, Transfer{Filename: "a.txt", To: "a.txt", Matches: other}, item.Changed, "another one"},
		{"extension", false, Transfer{Filename: "a.txt", To: "new.exe"}, item.BadContent, ".exe"},
		{"script", false, Transfer{Filename: "a.txt", To: "new.php.txt"}, item.BadContent, ".php"},
		{"content", false, Transfer{Filename: "a.txt", To: "new.pdf"}, item.BadContent, ".pdf"},
		{"dots", false, Transfer{Filename: "a.txt", To: "../new.txt"}, item.BadRequest, "sub folder"},
		{"slash", false, Transfer{Filename: "a.txt", To: "/new.txt"}, item.BadRequest, "slash"},
		{"folder alone", false, Transfer{Filename: "a.txt", To: "new/"}, item.BadRequest, "ends without a slash"},
		{"reserved folder", false, Transfer{Filename: "a.txt", To: "@uploads/new.txt"}, item.BadRequest, "@uploads"},
		{"too large for the alias", true, Transfer{Filename: "Odd Name.txt", To: "new.txt"}, item.TooLarge, "larger than 10 bytes"},
	} {
		for _, copies := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, copies), func(t *testing.T) {
				t.Parallel()
				s := newTransferSite(t, onMemory, nil)
				s.content.Sanitize = c.name != "reserved folder"
				before, to := contents(t, s.here), s.content
				if c.far {
					to = s.far
				}
				c.transfer.Copy = copies
				_, failures := s.transfer(t, s.content, to, c.transfer)
				wantFailure(t, failures, c.reason, c.transfer.Filename, c.message)
				wantContents(t, s.here, before)
				wantContents(t, s.there, nil)
				if len(s.watched.requests) != 1 || s.watched.requests[0].Transfer == nil || !slices.Equal(s.watched.ended, []bool{false}) {
					t.Errorf("observed %+v, %t", s.watched.requests, s.watched.ended)
				}
			})
		}
	}
}

// TestTransferAcross: an item goes to another storage by its own checks.
func TestTransferAcross(t *testing.T) {
	t.Parallel()
	for _, copies := range []bool{false, true} {
		s := newTransferSite(t, onLocal, nil)
		s.far.MaxSize = 1 << 20
		want := contents(t, s.here)
		if got, failures := s.transfer(t, s.content, s.far, Transfer{Filename: "a.txt", To: "x/a.txt", Copy: copies}); failures != nil || got != "x/a.txt" {
			t.Errorf("%q, %v", got, failures)
		}
		wantContents(t, s.there, map[string]string{"file/far/x/a.txt": "content a.txt"})
		if !copies {
			delete(want, "file/content/a.txt")
		}
		wantContents(t, s.here, want)
	}
}

// large is a driver whose objects claim to be larger than they are.
type large struct {
	*memory.Driver
	more int64
}

func (d large) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := d.Driver.Stat(ctx, key)
	info.Size += d.more
	return info, err
}

// TestTransferLargeAcross: a large item is moved within its storage only. An item whose bytes are
// not those that were compared is not moved.
func TestTransferLargeAcross(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		more    int64
		far     bool
		message string
	}{{1<<30 - 4, true, ""}, {1<<30 - 3, true, "caddy media copy"}, {1<<30 - 3, false, ""}} {
		s := closed(t, "here", large{memory.New(), c.more}, storagedrivers.Options{})
		put(t, s, "file/content/a.txt", "text")
		content, far := newAlias(t, "content", s), newAlias(t, "far", closed(t, "far", memory.New(), storagedrivers.Options{}))
		content.MaxSize = 2 << 30
		to := content
		if c.far {
			to = far
		}
		_, failures := newUploader(content, far).Transfer(t.Context(), Transfer{Request: Request{Kind: item.File, Alias: to.Name}, From: content, Filename: "a.txt", To: "b.txt", Copy: true})
		if c.message != "" {
			wantFailure(t, failures, item.TooLarge, "a.txt", c.message)
		} else if len(failures) == 0 || failures[0].Reason != item.Conflict { // its bytes are those of another object
			t.Errorf("%+v: %v", c, failures)
		}
	}
}

// TestTransferImage: the new image has a variant where its alias has variants, and the old one goes
// with its image.
func TestTransferImage(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		s := open(t, nil)
		with, without := imageAlias(t, s), imageAlias(t, s)
		with.Prefix = "img/content"
		without.Name, without.Prefix, without.WebP, without.RenameMismatched = "plain", "img/plain", nil, true
		u := newUploader(with, without)
		put(t, s, "img/content/a.png", pngOf(red))
		put(t, s, "img/content/a.png.webp", "its variant")
		transfer := func(from, to *item.Alias, transfer Transfer, want string) {
			t.Helper()
			transfer.Request, transfer.From = Request{Kind: item.Image, Alias: to.Name}, from
			items, failures := u.Transfer(t.Context(), transfer)
			if failures != nil || items[0].Filename != want {
				t.Fatalf("%v, %v, want %s", items, failures, want)
			}
		}
		transfer(with, without, Transfer{Filename: "a.png", To: "b.png"}, "b.png")
		wantContents(t, s, map[string]string{"img/plain/b.png": pngOf(red)})
		transfer(without, with, Transfer{Filename: "b.png", To: "sub/c.png"}, "sub/c.png")
		wantContents(t, s, map[string]string{"img/content/sub/c.png": pngOf(red), "img/content/sub/c.png.webp": webpOf(red)})
		transfer(with, without, Transfer{Filename: "sub/c.png", To: "d.jpg"}, "d.png") // its content is PNG
		for _, overwrite := range []bool{false, true} {
			without.Overwrite = overwrite
			transfer(without, without, Transfer{Filename: "d.png", To: "d.jpg"}, "d.png") // itself
			wantContents(t, s, map[string]string{"img/plain/d.png": pngOf(red)})
		}
		transfer(without, without, Transfer{Filename: "d.png", To: "d"}, "d.png") // itself again
		transfer(without, without, Transfer{Filename: "d.png", To: "d.jpg", Copy: true}, "d.png")
		wantContents(t, s, map[string]string{"img/plain/d.png": pngOf(red)})
	})
}

// TestTransferOrder: the new item is complete before the old one is removed. If the new one cannot
// be stored, the old one stays; if the old one cannot be removed, both are there.
func TestTransferOrder(t *testing.T) {
	t.Parallel()
	for kind, operations := range map[string][]string{
		"memory": {"open file/content/a.txt", "copy file/content/new.txt", "delete file/content/a.txt"},
		"local":  {"stat file/content/a.txt", "copy file/content/a.txt", "commit file/content/new.txt", "delete file/content/a.txt"},
	} {
		open := storages[kind]
		for _, failing := range operations {
			t.Run(kind+" "+failing, func(t *testing.T) {
				t.Parallel()
				failed, ready := false, false
				var s *transferSite
				s = newTransferSite(t, open, func(op, key string) error {
					if op == "delete" && key == "file/content/a.txt" {
						if _, err := s.here.Stat(context.Background(), "file/content/new.txt"); err != nil {
							t.Errorf("removed before the new item is complete: %v", err)
						}
					}
					if ready && (op+" "+key == failing || op == failing) {
						failed = true
						return errors.New(secret)
					}
					return nil
				})
				want := contents(t, s.here)
				ready = true
				_, failures := s.transfer(t, s.content, s.content, Transfer{Filename: "a.txt", To: "new.txt"})
				if ready = false; !failed {
					t.Error("it did not fail")
				}
				wantFailure(t, failures, item.StorageFailed, failures[0].Filename, "storage")
				actions := ""
				if strings.HasPrefix(failing, "delete") {
					want["file/content/new.txt"] = want["file/content/a.txt"]
					wantFailure(t, failures, item.StorageFailed, "a.txt", "could not remove the old one")
					actions = "stored new.txt by shop"
				}
				wantContents(t, s.here, want)
				if got := strings.Join(s.watched.actions(), " "); got != actions || len(s.watched.refusals) != 1 {
					t.Errorf("changes %q, refusals %q", got, s.watched.refusals)
				}
				if actions != "" && !s.watched.changes[0].Transfer.Copy {
					t.Error("the change counts as a move")
				}
			})
		}
	}
}

// TestTransferOfChanging: an item that is replaced while it is staged is staged again, so that an
// acknowledged overwrite is not lost. Its condition counts again.
func TestTransferOfChanging(t *testing.T) {
	t.Parallel()
	for _, copies := range []bool{false, true} {
		for _, c := range []struct {
			replacements int
			remove, tag  bool
			reason       item.Reason
		}{{replacements: 1}, {replacements: 3}, {replacements: 4, reason: item.Conflict}, {replacements: 1, tag: true, reason: item.Changed}, {remove: true, reason: item.Missing}} {
			t.Run(fmt.Sprint(copies, c), func(t *testing.T) {
				t.Parallel()
				var s *transferSite
				left := c.replacements
				s = newTransferSite(t, onMemory, nil)
				old, err := s.here.Stat(t.Context(), "file/over/a.txt")
				if err != nil {
					t.Fatal(err)
				}
				transfer := Transfer{From: s.over, Filename: "a.txt", To: "new.txt", Copy: copies}
				if c.tag {
					transfer.Matches = func(info storagedrivers.Info) bool { return info.Same(old) }
				}
				transfer.Request = Request{
					Kind: item.File, Alias: "content",
					Confirm: func(ctx context.Context, _ Commitment) (func(Outcome), *item.Failure) { // between staging and commit
						if c.remove {
							return nil, removeForTest(ctx, s)
						}
						if left > 0 {
							left--
							replace(t, s.here, "file/over/a.txt", fmt.Sprint("replacement ", left))
						}
						return nil, nil
					},
				}
				items, failures := s.u.Transfer(t.Context(), transfer)
				got := contents(t, s.here)
				if c.reason != 0 {
					wantFailure(t, failures, c.reason, "a.txt", "")
					if _, stored := got["file/content/new.txt"]; stored {
						t.Error("it is stored")
					}
					return
				}
				if failures != nil || len(items) != 1 || got["file/content/new.txt"] != "replacement 0" {
					t.Errorf("%v, stored is %q", failures, got["file/content/new.txt"])
				}
			})
		}
	}
}

func removeForTest(ctx context.Context, s *transferSite) *item.Failure {
	if err := s.here.Delete(ctx, "file/over/a.txt"); err != nil {
		return item.StorageFailure(err)
	}
	return nil
}

// TestTransferAndDelete: of a concurrent move and deletion exactly one succeeds.
func TestTransferAndDelete(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		for range 50 {
			s := newTransferSite(t, open, nil)
			s.u.Observer = NopObserver{}
			var all sync.WaitGroup
			var wins atomic.Int64
			for _, to := range []string{"new.txt", "", "newer.txt"} {
				all.Go(func() {
					err := error(nil)
					if to == "" {
						err = s.u.Delete(t.Context(), s.content, "a.txt", item.Actor{})
					} else if _, failures := s.transfer(t, s.content, s.content, Transfer{Filename: "a.txt", To: to}); failures != nil {
						if err = fs.ErrNotExist; failures[0].Reason != item.Missing {
							t.Errorf("%v", failures)
						}
					}
					if err == nil {
						wins.Add(1)
					} else if !errors.Is(err, fs.ErrNotExist) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if left := contents(t, s.here); wins.Load() != 1 || left["file/content/a.txt"] != "" || len(left) > 6 {
				t.Fatalf("%d succeed, %q are left", wins.Load(), slices.Sorted(maps.Keys(left)))
			}
		}
	})
}

// TestTransferNeedsBothAliases: the account must be allowed to use the target alias.
func TestTransferNeedsBothAliases(t *testing.T) {
	t.Parallel()
	s := newTransferSite(t, onMemory, nil)
	_, failures := s.u.Transfer(t.Context(), Transfer{Request: Request{Kind: item.File, Alias: "over", Allows: func(alias string) bool { return alias == "content" }}, From: s.content, Filename: "a.txt", To: "new.txt"})
	wantFailure(t, failures, item.Forbidden, "", "may not use")
}

// TestTransferCrosswise: moves in opposite directions do not wait for each other forever, and one
// of the items is left.
func TestTransferCrosswise(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 100 {
		s := newTransferSite(t, onMemory, nil)
		s.u.Observer = NopObserver{}
		var all sync.WaitGroup
		for from, to := range map[string]string{"a.txt": "b.txt", "b.txt": "a.txt"} {
			all.Go(func() {
				_, failures := s.u.Transfer(ctx, Transfer{Request: Request{Kind: item.File, Alias: "over"}, From: s.over, Filename: from, To: to})
				if failures != nil && failures[0].Reason != item.Missing {
					t.Errorf("%v", failures)
				}
			})
		}
		all.Wait()
		got := contents(t, s.here)
		if a, b := got["file/over/a.txt"], got["file/over/b.txt"]; (a == "") == (b == "") {
			t.Fatalf("%q and %q", a, b)
		}
	}
}

// folding is a backend that does not distinguish the case of keys.
type folding struct {
	*memory.Driver
	tags bool // it has entity tags
}

func (f *folding) info(key string, info storagedrivers.Info) storagedrivers.Info {
	info.Key = key
	if !f.tags {
		info.ETag, info.ModTime = "", info.ModTime.Truncate(time.Hour)
	}
	return info
}

func (f *folding) Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	if opts.Source != nil {
		inner, err := f.Driver.Stat(ctx, strings.ToLower(opts.Source.Key))
		if err != nil || !f.info(opts.Source.Key, inner).Same(*opts.Source) {
			return storagedrivers.Info{}, storagedrivers.ErrChanged
		}
		opts.Source = &inner
	}
	info, err := f.Driver.Put(ctx, strings.ToLower(key), r, opts)
	return f.info(key, info), err
}

func (f *folding) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := f.Driver.Open(ctx, strings.ToLower(key), rng)
	return body, f.info(key, info), err
}

func (f *folding) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := f.Driver.Stat(ctx, strings.ToLower(key))
	return f.info(key, info), err
}

func (f *folding) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	return f.Driver.Delete(ctx, strings.ToLower(key), opts)
}

// TestTransferFoldsCase: an item cannot be replaced by itself under a name that differs by case
// only, on a backend where both are one name. Under Append Time it gets another one, as the name is
// taken.
func TestTransferFoldsCase(t *testing.T) {
	t.Parallel()
	for _, overwrites := range []bool{false, true} {
		for _, tags := range []bool{false, true} {
			for _, copies := range []bool{false, true} {
				t.Run(fmt.Sprint(overwrites, tags, copies), func(t *testing.T) {
					t.Parallel()
					storage := closed(t, "folding", &folding{memory.New(), tags}, storagedrivers.Options{})
					alias := newAlias(t, "content", storage)
					alias.Overwrite, alias.Sanitize = overwrites, false
					u := newUploader(alias)
					put(t, storage, "file/content/sub/a.txt", "text")
					put(t, storage, "file/content/sub/b.txt", "text")
					for _, to := range []string{"sub/A.txt", "SUB/a.txt"} {
						items, failures := u.Transfer(t.Context(), Transfer{Request: Request{Kind: item.File, Alias: "content"}, From: alias, Filename: "sub/a.txt", To: to, Copy: copies})
						checked(t, items, failures)
						if overwrites {
							wantFailure(t, failures, item.Conflict, "sub/a.txt", "case")
						} else if failures != nil || !strings.HasPrefix(items[0].Filename, strings.TrimSuffix(to, ".txt")+"-179517600") {
							t.Errorf("%v %v", items, failures)
						}
						if !copies && !overwrites {
							put(t, storage, "file/content/sub/a.txt", "text")
						}
						if got := contents(t, storage); got["file/content/sub/a.txt"] != "text" {
							t.Errorf("stored are %q", got)
						}
					}
					if _, failures := u.Transfer(t.Context(), Transfer{Request: Request{Kind: item.File, Alias: "content"}, From: alias, Filename: "sub/a.txt", To: "sub/B.txt", Copy: copies}); failures != nil {
						t.Error(failures)
					}
				})
			}
		}
	}
}
