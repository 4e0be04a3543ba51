package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/core/derived"
	"github.com/caddymedia/media/caddymedia/internal/leaf/check"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

// watched records the calls of an observer.
type watched struct {
	changes    []Change
	refusals   []string
	requests   []Operation // refused
	failures   item.Failures
	variants   map[item.VariantResult]int
	mu         sync.Mutex
	renditions []string // name and result
	checks     []string // name and result
	underWay   int
	ended      []bool // whether stored
}

// watch makes w the observer of u.
func watch(u *Uploader) *watched {
	w := &watched{variants: map[item.VariantResult]int{}}
	u.Observer, u.Derived.Observer = w, w
	return w
}

func (w *watched) Began(Operation) (ended func(bool)) {
	w.underWay++
	return func(stored bool) {
		w.underWay--
		w.ended = append(w.ended, stored)
	}
}

func (w *watched) Changed(_ context.Context, c Change) { w.changes = append(w.changes, c) }

func (w *watched) Refused(_ context.Context, req Operation, failures item.Failures) {
	w.requests, w.failures = append(w.requests, req), append(w.failures, failures...)
	for _, f := range failures {
		w.refusals = append(w.refusals, fmt.Sprintf("%s/%s %s %q of %s", req.Kind, req.Alias, f.Reason, f.Filename, req.Actor.Account))
	}
}

func (w *watched) Variant(_ *item.Alias, result item.VariantResult, _ time.Duration) {
	w.variants[result]++
}

func (w *watched) Checked(_ *item.Alias, name string, result check.Result, _ time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks = append(w.checks, name+" "+string(result))
}

func (w *watched) Rendered(_ *item.Alias, r *item.Rendition, result derived.RenditionResult, _ time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renditions = append(w.renditions, r.Name+" "+string(result))
}

// actions lists the changes, with filename and account.
func (w *watched) actions() []string {
	all := make([]string, len(w.changes))
	for i, c := range w.changes {
		all[i] = fmt.Sprintf("%s %s by %s", c.Action, c.Item.Filename, c.Actor.Account)
	}
	return all
}

// TestReplaced: replacing an item and storing a new one are different actions. Under Append Time
// all items are new.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, overwrite := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " overwrite ", overwrite), func(t *testing.T) {
				t.Parallel()
				alias := newAlias(t, item.DefaultAlias, open(t, nil))
				alias.Overwrite = overwrite
				u := newUploader(alias)
				w := watch(u)
				for _, content := range []string{"old", "new"} {
					req := Upload{Request: Request{Kind: item.File, Actor: item.Actor{Origin: item.OriginGo, Account: "carol"}}}
					if _, failures := uploadBody(t, u, bytes.NewReader(formBody(file("a.txt", content))), req); failures != nil {
						t.Fatal(failures)
					}
				}
				stored := map[string]string{"file/content/a.txt": "new"}
				want := []string{"stored a.txt by carol", "replaced a.txt by carol"}
				if !overwrite {
					name := fmt.Sprintf("a-%d.txt", noon.Unix())
					want[1] = "stored " + name + " by carol"
					stored = map[string]string{"file/content/a.txt": "old", "file/content/" + name: "new"}
				}
				if got := w.actions(); !slices.Equal(got, want) {
					t.Errorf("changes %q, want %q", got, want)
				}
				wantContents(t, alias.Storage, stored)
			})
		}
	}
}

// TestReplacedUnseen: items can be stored in a storage that allows writes but not reads.
func TestReplacedUnseen(t *testing.T) {
	t.Parallel()
	alias := newAlias(t, item.DefaultAlias, onLocal(t, func(op, _ string) error {
		if op == "stat" {
			return fs.ErrPermission
		}
		return nil
	}))
	alias.Overwrite = true
	u := newUploader(alias)
	w := watch(u)
	for range 2 {
		storeFiles(t, u, file("a.txt", "a"))
	}
	if got := w.actions(); !slices.Equal(got, []string{"stored a.txt by ", "stored a.txt by "}) {
		t.Errorf("changes %q", got)
	}
}

// TestRefused: a refused request is reported with all failures under the alias of the form, and
// without a change.
func TestRefused(t *testing.T) {
	t.Parallel()
	other := newAlias(t, "other", onMemory(t, nil))
	u := newUploader(newAlias(t, item.DefaultAlias, onMemory(t, nil)), other)
	w := watch(u)
	by := item.Actor{Origin: item.OriginHTTP, Account: "carol", Client: "192.0.2.1"}
	body := bytes.NewReader(formBody(field("alias", "other"), file("a.exe", "a"), file("good.txt", "b"), file("b.php", "c")))
	if _, failures := uploadBody(t, u, body, Upload{Request: Request{Kind: item.File, Actor: by}}); failures == nil {
		t.Fatal("no failure")
	}
	if _, failures := uploadBody(t, u, bytes.NewReader(formBody()), Upload{Request: Request{Kind: item.File, Alias: "none", Actor: by}}); failures == nil {
		t.Fatal("no failure")
	}
	if _, failures := uploadBody(t, u, bytes.NewReader(formBody(file("a.txt", "a"))), Upload{Request: Request{Kind: item.File, Actor: by}}); failures != nil {
		t.Fatal(failures)
	}
	want := []string{
		`file/other bad_content "a.exe" of carol`, `file/other bad_content "b.php" of carol`,
		`file/none bad_request "" of carol`,
	}
	if !slices.Equal(w.refusals, want) {
		t.Errorf("refusals %q, want %q", w.refusals, want)
	}
	if got := w.actions(); !slices.Equal(got, []string{"stored a.txt by carol"}) {
		t.Errorf("changes %q", got)
	}
	if w.underWay != 0 || !slices.Equal(w.ended, []bool{false, false, true}) {
		t.Errorf("%d under way in the end, ended %t", w.underWay, w.ended)
	}
}

// TestDeletionReported: deletions are reported with their actor, failed ones too.
func TestDeletionReported(t *testing.T) {
	t.Parallel()
	var broken error
	s := onMemory(t, func(op, _ string) error {
		if op == "delete" {
			return broken
		}
		return nil
	})
	u, images, _ := withItems(t, s, false)
	w := watch(u)
	by := item.Actor{Origin: item.OriginPanel, Account: "alice", Client: "192.0.2.1"}
	broken = errors.New("broken")
	if err := u.Delete(t.Context(), images, "a.png", by); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	broken = nil
	if err := u.Delete(t.Context(), images, "a.png", by); err != nil {
		t.Error(err)
	}
	if err := u.Delete(t.Context(), images, "a.png", by); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if len(w.changes) != 3 {
		t.Fatalf("changes %v", w.changes)
	}
	for i, c := range w.changes {
		if c.Action != Deleted || c.Actor != by || c.Alias != images || c.Item.Filename != "a.png" || (c.Err == nil) != (i == 1) {
			t.Errorf("change %d: %+v", i, c)
		}
	}
	address := images.URL("", "a.png")
	if got, want := w.changes[1].Item, (Item{FullPath: address, Filename: "a.png", Size: w.changes[1].Item.Size, WebP: address + ".webp"}); !reflect.DeepEqual(got, want) || got.Size == 0 {
		t.Errorf("deleted %+v, want %+v", got, want)
	}
}

// TestReplacedWhileAway: after one operation fails because the storage is unavailable, no other is
// tried.
func TestReplacedWhileAway(t *testing.T) {
	t.Parallel()
	asked := 0
	storage := onMemory(t, func(op, _ string) error {
		asked++
		return storagedrivers.ErrUnavailable
	})
	alias := newAlias(t, item.DefaultAlias, storage)
	alias.Overwrite = true
	_, failures := uploadForm(t, newUploader(alias), file("a.txt", "a"))
	if len(failures) != 1 || failures[0].Reason != item.Unavailable || failures[0].Filename != "a.txt" {
		t.Errorf("failures %v, want that the storage cannot be reached", failures)
	}
	if asked != 3 {
		t.Errorf("the storage is asked %d times, want one operation with its repetitions: 3", asked)
	}
}

// panicking is a source that panics.
type panicking struct{}

func (panicking) receive(context.Context, *batch) error { panic("broken") }

// TestEndedByPanic: a request that panics ends without items.
func TestEndedByPanic(t *testing.T) {
	t.Parallel()
	u := newUploader(newAlias(t, item.DefaultAlias, onMemory(t, nil)))
	w := watch(u)
	func() {
		defer func() { _ = recover() }()
		_, _ = u.Upload(t.Context(), Upload{Request: Request{Kind: item.File}}, panicking{})
	}()
	if w.underWay != 0 || !slices.Equal(w.ended, []bool{false}) {
		t.Errorf("%d are under way, ended well: %v", w.underWay, w.ended)
	}
}

// TestStorageErrors: an error at any step leaves nothing. One of staging is of the whole request.
func TestStorageErrors(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, op := range []string{"stage", "commit", "closed"} {
			if name == "memory" && op == "stage" {
				continue // stages in memory only
			}
			t.Run(name+" "+op, func(t *testing.T) {
				t.Parallel()
				s := open(t, func(asked, _ string) error {
					if asked == op || op == "commit" && asked == "put" {
						return fmt.Errorf("%s: %w", secret, storagedrivers.ErrUnavailable)
					}
					return nil
				})
				u := newUploader(newAlias(t, item.DefaultAlias, s))
				filename, cause := "", storagedrivers.ErrUnavailable
				switch op {
				case "commit":
					filename = "a.txt"
				case "closed":
					cause = storagedrivers.ErrClosed
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				_, failures := uploadForm(t, u, file("a.txt", "text"))
				wantFailure(t, failures, item.Unavailable, filename, "try again later")
				if !errors.Is(failures[0], cause) {
					t.Errorf("%v lacks the detail for the log", failures)
				}
				if op != "closed" {
					wantContents(t, s, nil)
				}
			})
		}
	}
}

// TestUnforeseenError: an error of no known kind is a failure, never a success without items.
func TestUnforeseenError(t *testing.T) {
	t.Parallel()
	s := onLocal(t, func(op, _ string) error {
		if op == "close" {
			return errors.New(secret)
		}
		return nil
	})
	_, failures := uploadForm(t, newUploader(newAlias(t, item.DefaultAlias, s)), file("a.txt", strings.Repeat("x", 2<<20)))
	wantFailure(t, failures, item.Internal, "", "internal error")
}

// TestStorageAwayAtTheMove: the upload fails if the form names, after its files, an alias whose
// storage is unavailable.
func TestStorageAwayAtTheMove(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("%s: %w", secret, storagedrivers.ErrUnavailable)
	first, second := onMemory(t, nil), onLocal(t, func(string, string) error { return away })
	u := newUploader(newAlias(t, item.DefaultAlias, first), newAlias(t, "docs", second))
	_, failures := uploadForm(t, u, file("a.txt", "text"), file("b.txt", "text"), field("alias", "docs"))
	if len(failures) != 2 {
		t.Errorf("failures %v, want 2", failures)
	}
	wantFailure(t, failures, item.Unavailable, "a.txt", "try again later")
	away = nil
	wantContents(t, first, nil)
	wantContents(t, second, nil)
}
