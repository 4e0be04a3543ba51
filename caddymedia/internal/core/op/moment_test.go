package op_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/op"
	"github.com/caddymedia/media/caddymedia/internal/core/service"
	"github.com/caddymedia/media/caddymedia/internal/core/upload"
	"github.com/caddymedia/media/caddymedia/internal/leaf/access"
	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/caddymedia/internal/leaf/moment"
	"github.com/caddymedia/media/caddymedia/internal/test/testservice"
	"github.com/caddymedia/media/caddymedia/media"
	"github.com/caddymedia/media/caddymedia/tokens"
	tokenmemory "github.com/caddymedia/media/caddymedia/tokens/memory"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
	"github.com/caddymedia/media/storagedrivers/memory"
	"github.com/caddymedia/media/storagedrivers/queue"
)

// history is what happens in an alias, with what was in it after each change.
type history struct {
	*op.Permit
	alias  *item.Alias
	random *rand.Rand
	pause  time.Duration // the most between two changes
	// isFolder means that items are files: none has the name of a folder.
	isFolder bool
	moment   []snapshot
	done     int // steps
}

// longTimeout is for hundreds of histories on a busy machine.
const longTimeout = 10 * time.Minute

// snapshot is what an alias has at a time: bytes by name.
type snapshot struct {
	at   time.Time
	tree map[string]string
}

// newHistory begins a history in an alias of a driver.
func newHistory(t *testing.T, driver storagedrivers.Driver, seed uint64) *history {
	t.Helper()
	return startHistory(t, driver, seed, media.AliasOptions{Trash: "1h"})
}

// startHistory begins a history in an alias with these options.
func startHistory(t *testing.T, driver storagedrivers.Driver, seed uint64, options media.AliasOptions) *history {
	t.Helper()
	h := &history{random: rand.New(rand.NewPCG(seed, 2))}
	keepNames, strategy := false, "overwrite"
	if seed%3 == 0 {
		strategy = "append_time"
	}
	own := storagedrivers.Options{Timeout: longTimeout, Location: storagedrivers.Location{Backend: fmt.Sprintf("%p", driver)}}
	running, err := media.New(media.Config{
		Storages:    []media.Storage{{Name: "default", Driver: driver, Options: own, SubFolderFormat: "/", Sanitize: &keepNames, OverwriteStrategy: strategy}},
		FileAliases: map[string]*media.FileAlias{"one": {AliasOptions: options}},
		Tokens:      tokenmemory.New(time.Now),
		Comparer:    tokens.CompareFunc(func(hash, plain []byte) (bool, error) { return string(hash) == string(plain), nil }),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Close(); err != nil {
			t.Error(err)
		}
	})
	s := service.Of(running)
	if options.Expires != "" {
		s.Start() // to remove what expires
	}
	h.Permit = &op.Permit{
		Caller: access.Caller{Account: access.Account{APIKey: "site", Rights: access.Rights()}}, Actor: item.Actor{Account: "site"},
		Service: s, Log: slog.New(slog.DiscardHandler), Next: func() (*service.Service, func()) { return s, func() {} },
	}
	h.Authenticate = func(context.Context, *service.Service) (access.Caller, *item.Failure) { return h.Caller, nil }
	var failure *item.Failure
	if h.alias, failure = h.Alias(item.File, "one"); failure != nil {
		t.Fatal(failure)
	}
	return h
}

// tree returns what the alias has.
func (h *history) tree(t *testing.T) map[string]string {
	t.Helper()
	tree, _ := h.trees(t)
	return tree
}

// trees returns what the alias has, and what of it has expired, but is not removed yet.
func (h *history) trees(t *testing.T) (tree, expired map[string]string) {
	t.Helper()
	tree, expired = map[string]string{}, map[string]string{}
	for info, err := range h.alias.Storage.All(t.Context(), h.alias.Below("")) {
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := h.alias.Storage.Open(t.Context(), info.Key, storagedrivers.Range{})
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(object)
		if err != nil || object.Close() != nil {
			t.Fatal(err)
		}
		if h.alias.HasExpired(info, time.Now()) {
			expired[h.alias.Filename(info.Key)] = string(content)
		} else {
			tree[h.alias.Filename(info.Key)] = string(content)
		}
	}
	return tree, expired
}

// settle waits until no item expires soon.
func (h *history) settle(t *testing.T) {
	t.Helper()
	for ends := true; ends; {
		ends = false
		for info, err := range h.alias.Storage.All(t.Context(), h.alias.Below("")) {
			if err != nil {
				t.Fatal(err)
			}
			rest, _ := h.alias.Rest(info, time.Now())
			ends = ends || rest > 0 && rest < 2*time.Minute
		}
		if ends {
			time.Sleep(2 * time.Minute)
		}
	}
}

// play changes the alias so many times at random, and waits after each.
func (h *history) play(t *testing.T, changes int) {
	t.Helper()
	h.wait() // the clock of a bubble begins with a whole second
	for range changes {
		h.change(t)
		h.wait()
		h.moment = append(h.moment, snapshot{time.Now(), h.tree(t)})
		h.wait()
	}
}

// wait is longer than the resolution of times.
func (h *history) wait() { time.Sleep(h.pause - time.Duration(h.random.Int64N(int64(h.pause/4)))) }

var names = []string{"a.txt", "b.txt", "sub/a.txt", "sub/b.txt", "sub/deep/c.txt", "sub.txt", "sub.txt/d.txt"}

// change changes something, or finds that it cannot be changed.
func (h *history) change(t *testing.T) {
	t.Helper()
	name, other := names[h.random.IntN(len(names))], names[h.random.IntN(len(names))]
	content := fmt.Sprint("content ", h.random.IntN(1000))
	base := name[strings.LastIndexByte(name, '/')+1:]
	switch h.random.IntN(9) {
	case 0, 1, 2, 3:
		req := upload.Upload{SubFolder: folderOf(name), Request: h.Permit.Request(item.File, "one", "", []access.Right{access.Upload})}
		_, _ = h.Service.Uploader().Upload(t.Context(), req, upload.Body(base, strings.NewReader(content)))
	case 4, 5:
		_, _ = h.Delete(t.Context(), op.Deletion{Alias: h.alias, Filename: name})
	case 6:
		_, _ = h.Transfer(t.Context(), op.Move{From: h.alias, Filename: name, ToAlias: h.alias, To: other, Exact: true})
	case 7:
		_, _, _ = h.DeleteFolder(t.Context(), op.Folder{Alias: h.alias, Name: "sub", Began: h.Began(), Watch: h.alias.Watch()})
	case 8:
		page, err := h.ListTrash(t.Context(), service.TrashQuery{Alias: h.alias, Limit: 10})
		if err != nil {
			t.Error(err)
		}
		if n := len(page.Entries); n > 0 {
			_, _ = h.Restore(t.Context(), op.Restoration{Alias: h.alias, IDs: []string{page.Entries[h.random.IntN(n)].ID()}, Replace: h.alias.Overwrite})
		}
	}
}

// restore brings the folder back to a time, and returns when that began and what was done.
func (h *history) restore(t *testing.T, r op.Past) (began time.Time, done []op.PastStep) {
	t.Helper()
	r.Alias = h.alias
	for {
		page, failure := h.RestorePast(t.Context(), r)
		if failure != nil {
			t.Fatal(failure)
		}
		for _, step := range page.Steps {
			if step.Failure != nil || step.Action == moment.Doubt && h.alias.Expires == 0 {
				t.Errorf("%s: %d, %v", step.Filename, step.Action, step.Failure)
			}
			h.done++
		}
		began, done = page.Began, append(done, page.Steps...)
		if r.Cursor = page.Cursor; r.Cursor == "" {
			return began, done
		}
	}
}

// limit returns the size of a page. In a folder an item has to go before another one gets the name
// of its folder, which is done in one page.
func (h *history) limit() int {
	if h.isFolder {
		return 0
	}
	return h.random.IntN(4)
}

// check brings the alias back to random moments and wants what was there, nothing more to do, and
// to undo it.
func (h *history) check(t *testing.T, times int) {
	t.Helper()
	for range times {
		then := h.moment[h.random.IntN(len(h.moment))]
		before, expired := h.trees(t)
		past := op.Past{At: then.at, Limit: h.limit(), Folder: []string{"", "", "sub"}[h.random.IntN(3)]}
		want := map[string]string{}
		inFolder := func(name string) bool { return past.Folder == "" || strings.HasPrefix(name, past.Folder+"/") }
		for name, content := range before {
			if !inFolder(name) {
				want[name] = content
			}
		}
		for name, content := range then.tree {
			if inFolder(name) {
				want[name] = content
			}
		}
		past.DryRun = true
		_, planned := h.restore(t, past)
		past.DryRun = false
		if got := h.tree(t); !maps.Equal(got, before) {
			t.Fatalf("after a dry run %v, before %v", got, before)
		}
		began, done := h.restore(t, past)
		if len(planned) != len(done) {
			t.Errorf("%d steps, %d planned", len(done), len(planned))
		}
		got := h.tree(t)
		for _, step := range done {
			// What has expired since, but is not removed yet, is named.
			if content, is := then.tree[step.Filename]; is && step.Action == moment.Doubt && expired[step.Filename] == content {
				delete(want, step.Filename)
				delete(got, step.Filename)
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%+v: %v, want %v of %v and expired %v after %+v", past, got, want, before, expired, done)
		}
		h.wait()
		_, again := h.restore(t, past)
		for _, step := range again {
			if _, is := want[step.Filename]; is || step.Action != moment.Doubt {
				t.Errorf("there is still to do %+v", step)
			}
		}
		if h.random.IntN(2) == 0 {
			past.At = began
			h.restore(t, past)
			if got := h.tree(t); !maps.Equal(got, before) {
				t.Fatalf("undone %v, want %v of %v", got, before, want)
			}
		}
		h.wait()
		h.play(t, h.random.IntN(3))
	}
}

// histories returns the number of random histories.
func histories(t *testing.T, few uint64) uint64 {
	t.Helper()
	number, err := strconv.ParseUint(cmp.Or(os.Getenv("MEDIA_TEST_HISTORIES"), fmt.Sprint(few)), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// TestRestorePast: after random histories each moment comes back, once, and can be undone.
// MEDIA_TEST_HISTORIES is their number for each clock.
func TestRestorePast(t *testing.T) {
	t.Parallel()
	for name, clock := range map[string]struct{ unit, ahead time.Duration }{
		"exact": {1, 0}, "ahead": {1, 1700 * time.Millisecond}, "seconds": {time.Second, 0}, "seconds late": {time.Second, -90700 * time.Millisecond},
	} {
		for seed := range histories(t, 50) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					driver := memory.New()
					driver.Now = func() time.Time { return time.Now().Add(clock.ahead).Truncate(clock.unit) }
					h := newHistory(t, driver, seed)
					if h.pause = 200 * time.Millisecond; clock.unit > 1 {
						h.pause = 10 * time.Second
					}
					h.play(t, 12)
					h.check(t, 4)
				})
			})
		}
	}
	for seed := range histories(t, 50) {
		t.Run(fmt.Sprint("expires ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				driver := memory.New()
				driver.Now = func() time.Time { return time.Now().Truncate([]time.Duration{1, time.Second}[seed%2]) }
				h := startHistory(t, driver, seed, media.AliasOptions{Trash: "48h", Expires: "1h"})
				for range 4 {
					h.pause = 20 * time.Minute
					h.play(t, 5)
					h.settle(t)
					h.pause = 10 * time.Second
					h.check(t, 1)
				}
			})
		})
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("local ", seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, local.New(local.Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler)), seed)
			h.pause, h.isFolder = 120*time.Millisecond, true
			h.play(t, 8)
			h.check(t, 2)
		})
	}
}

// TestRestorePastFolder: an item comes back whose name is by now that of a folder.
func TestRestorePastFolder(t *testing.T) {
	t.Parallel()
	h := newHistory(t, local.New(local.Config{Root: t.TempDir()}, slog.New(slog.DiscardHandler)), 1)
	h.pause = 120 * time.Millisecond
	store := func(folder, name string) {
		t.Helper()
		req := upload.Upload{SubFolder: folder, Request: h.Permit.Request(item.File, "one", "", []access.Right{access.Upload})}
		if _, failures := h.Service.Uploader().Upload(t.Context(), req, upload.Body(name, strings.NewReader(name))); failures != nil {
			t.Fatal(failures)
		}
		h.wait()
	}
	store("/", "sub.txt")
	at := time.Now()
	h.wait()
	if _, err := h.Delete(t.Context(), op.Deletion{Alias: h.alias, Filename: "sub.txt"}); err != nil {
		t.Fatal(err)
	}
	store("sub.txt", "a.txt")
	began, _ := h.restore(t, op.Past{At: at})
	if got := h.tree(t); len(got) != 1 || got["sub.txt"] != "sub.txt" {
		t.Errorf("%v", got)
	}
	h.wait()
	h.restore(t, op.Past{At: began})
	if got := h.tree(t); len(got) != 1 || got["sub.txt/a.txt"] != "a.txt" {
		t.Errorf("undone %v", got)
	}
}

// TestRestorePastExpired: an item that has expired since is named until it is removed, and then
// comes back, also if it has expired again.
func TestRestorePastExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver := memory.New()
		driver.Now = time.Now
		h := startHistory(t, driver, 1, media.AliasOptions{Trash: "48h", Expires: "1h"})
		began := time.Now()
		time.Sleep(10 * time.Minute)
		req := upload.Upload{SubFolder: "/", Request: h.Permit.Request(item.File, "one", "", []access.Right{access.Upload})}
		if _, failures := h.Service.Uploader().Upload(t.Context(), req, upload.Body("a.txt", strings.NewReader("a"))); failures != nil {
			t.Fatal(failures)
		}
		for _, tt := range []struct {
			after time.Duration
			want  moment.Action
		}{
			{80 * time.Minute, moment.Doubt}, {121 * time.Minute, moment.BringBack}, {200 * time.Minute, moment.Exchange}, {201 * time.Minute, moment.Nothing},
		} {
			time.Sleep(time.Until(began.Add(tt.after))) // it is removed at each full hour
			_, done := h.restore(t, op.Past{At: began.Add(30 * time.Minute)})
			got := moment.Nothing
			for _, step := range done {
				got = step.Action
			}
			if tree := h.tree(t); got != tt.want || len(tree) == 0 != (got == moment.Doubt) {
				t.Errorf("after %v: %d, want %d, of %v", tt.after, got, tt.want, tree)
			}
		}
	})
}

// TestRestorePastCut: a storage that fails in between leaves nothing lost, and the same request
// does the rest.
func TestRestorePastCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				driver, calls := memory.New(), atomic.Int64{}
				calls.Store(1 << 30)
				driver.Fail = func(op, _ string) error {
					if (op == "copy" || op == "delete") && calls.Add(-1) < 0 {
						return storagedrivers.ErrUnavailable
					}
					return nil
				}
				h := newHistory(t, driver, seed)
				h.pause = time.Second
				h.play(t, 12)
				then := h.moment[h.random.IntN(len(h.moment))]
				past := op.Past{Alias: h.alias, At: then.at}
				for most := int64(4); ; most = 20 {
					calls.Store(h.random.Int64N(most))
					page, failure := h.RestorePast(t.Context(), past)
					if failure != nil && failure.Reason != item.Unavailable {
						t.Fatal(failure)
					}
					time.Sleep(time.Minute) // the storage is asked again
					if failure == nil && len(page.Steps) == 0 {
						break
					}
				}
				if got := h.tree(t); !maps.Equal(got, then.tree) {
					t.Errorf("%v, want %v", got, then.tree)
				}
			})
		})
	}
}

// TestRestorePastMeanwhile: what is uploaded while a folder is brought back stays, also under a
// name that the moment has.
func TestRestorePastMeanwhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		driver, h := memory.New(), (*history)(nil)
		isBack := atomic.Bool{} // the first item
		want := map[string]string{"a.txt": "a.txt", "b.txt": "b.txt", "c.txt": "c.txt"}
		driver.Fail = func(op, key string) error {
			if op != "copy" || h == nil || isBack.Swap(true) {
				return nil
			}
			for _, name := range []string{"a.txt", "b.txt", "c.txt", "new.txt"} {
				req := upload.Upload{SubFolder: "/", Request: h.Permit.Request(item.File, "one", "", []access.Right{access.Upload})}
				if key == h.alias.Key(name) { // whose lock is held
					continue
				}
				if _, failures := h.Service.Uploader().Upload(t.Context(), req, upload.Body(name, strings.NewReader("new"))); failures != nil {
					t.Error(failures)
				}
				want[name] = "new"
			}
			return nil
		}
		made := newHistory(t, driver, 1)
		time.Sleep(time.Second + time.Millisecond)
		for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
			req := upload.Upload{SubFolder: "/", Request: made.Permit.Request(item.File, "one", "", []access.Right{access.Upload})}
			_, _ = made.Service.Uploader().Upload(t.Context(), req, upload.Body(name, strings.NewReader(name)))
		}
		time.Sleep(time.Second)
		at := time.Now()
		time.Sleep(time.Second)
		for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
			if _, err := made.Delete(t.Context(), op.Deletion{Alias: made.alias, Filename: name}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		h = made
		page, failure := h.RestorePast(t.Context(), op.Past{Alias: h.alias, At: at})
		if failure != nil || !isBack.Load() {
			t.Fatal(failure)
		}
		if tree := h.tree(t); !maps.Equal(tree, want) {
			t.Errorf("%v, want %v after %+v", tree, want, page.Steps)
		}
	})
}

// TestRestorePastGone: an item that another request takes away meanwhile is no failure.
func TestRestorePastGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, memory.New(), 1)
		time.Sleep(time.Second + time.Millisecond)
		at := time.Now()
		time.Sleep(time.Second)
		for _, name := range []string{"a.txt", "b.txt"} {
			req := upload.Upload{SubFolder: "/", Request: h.Permit.Request(item.File, "one", "", []access.Right{access.Upload})}
			_, _ = h.Service.Uploader().Upload(t.Context(), req, upload.Body(name, strings.NewReader(name)))
		}
		time.Sleep(time.Second)
		go func() {
			time.Sleep(time.Millisecond) // the restore has looked, and waits
			if _, err := h.Delete(t.Context(), op.Deletion{Alias: h.alias, Filename: "b.txt"}); err != nil {
				t.Error(err)
			}
		}()
		if _, done := h.restore(t, op.Past{At: at}); len(done) != 2 {
			t.Errorf("%+v", done)
		}
		if tree := h.tree(t); len(tree) > 0 {
			t.Errorf("%v", tree)
		}
	})
}

// silent is a program that has no answer about one file.
type silent string

func (s silent) Ask(_ context.Context, f check.File) error {
	if f.Filename == string(s) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// TestRestorePastUnanswered: an item for which a check has no answer does not stop the others.
func TestRestorePastUnanswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, memory.New(), 1)
		const items = 200 // more than are brought back side by side
		for i := range items {
			req := upload.Upload{SubFolder: "/", Request: h.Permit.Request(item.File, "one", "", []access.Right{access.Upload})}
			name := fmt.Sprintf("%03d.txt", i)
			if _, failures := h.Service.Uploader().Upload(t.Context(), req, upload.Body(name, strings.NewReader(name))); failures != nil {
				t.Fatal(failures)
			}
		}
		time.Sleep(3*time.Second + time.Millisecond)
		at := time.Now()
		time.Sleep(time.Second)
		for i := range items {
			if _, err := h.Delete(t.Context(), op.Deletion{Alias: h.alias, Filename: fmt.Sprintf("%03d.txt", i)}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		h.alias.Checks = []*check.Check{{
			Name: "silent", Program: silent("000.txt"), Timeout: time.Second, MaxSize: 100, Turns: queue.New(queue.Options{Slots: 4}),
		}}
		page, failure := h.RestorePast(t.Context(), op.Past{Alias: h.alias, At: at})
		if failure != nil || page.Cursor != "" || len(page.Steps) != items || page.Steps[0].Failure == nil {
			t.Errorf("%d steps, %q, %v", len(page.Steps), page.Cursor, failure)
		}
		if tree := h.tree(t); len(tree) != items-1 {
			t.Errorf("%d items are there", len(tree))
		}
	})
}

// TestRestorePastRefused: a caller without one of the rights changes nothing, and learns nothing.
func TestRestorePastRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(b *bench, past *op.Past)
		reason item.Reason
	}{
		"restore":    {func(b *bench, _ *op.Past) { b.Account.Rights = lacking(access.Restore) }, item.Forbidden},
		"delete":     {func(b *bench, _ *op.Past) { b.Account.Rights = lacking(access.Delete) }, item.Forbidden},
		"replace":    {func(b *bench, _ *op.Past) { b.Account.Rights = lacking(access.Replace) }, item.Forbidden},
		"lost since": {func(b *bench, _ *op.Past) { b.now.Account.Rights = lacking(access.Delete) }, item.Forbidden},
		"alias":      {func(b *bench, _ *op.Past) { b.now.Account.Aliases = []string{"two"} }, item.Forbidden},
		"ticket":     {func(b *bench, _ *op.Past) { b.Caller.Ticket = &access.Ticket{} }, item.Forbidden},
		"other folder": {func(b *bench, past *op.Past) {
			b.Account.Folder, b.now.Account.Folder, past.Folder = "users/bob", "users/bob", "users/alice"
		}, item.Missing},
		"no trash":  {func(b *bench, past *op.Past) { without := *b.alias; without.Trash, past.Alias = 0, &without }, item.Conflict},
		"too early": {func(b *bench, past *op.Past) { past.At = testservice.Noon.Add(-time.Hour - time.Second) }, item.BadRequest},
		"too late":  {func(b *bench, past *op.Past) { past.At = testservice.Noon.Add(time.Second) }, item.BadRequest},
		"cursor": {func(b *bench, past *op.Past) {
			past.Cursor = fmt.Sprint(testservice.Noon.Add(time.Hour).UnixMicro(), "/a")
		}, item.BadRequest},
		"cursor name": {func(b *bench, past *op.Past) { past.Cursor = fmt.Sprint(testservice.Noon.UnixMicro(), "/../a") }, item.BadRequest},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", dry), func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				past := op.Past{Alias: b.alias, At: testservice.Noon.Add(-time.Minute), DryRun: dry}
				tt.change(b, &past)
				before := b.Objects(t)
				_, failure := b.RestorePast(t.Context(), past)
				isAsked := !dry || name != "lost since" && name != "alias" // a dry run changes nothing
				if isAsked && (failure == nil || failure.Reason != tt.reason) || !maps.Equal(before, b.Objects(t)) {
					t.Errorf("%v", failure)
				}
				if !dry && b.refused.number.Load() != 1 {
					t.Errorf("%d refusals are reported", b.refused.number.Load())
				}
			})
		}
	}
}
