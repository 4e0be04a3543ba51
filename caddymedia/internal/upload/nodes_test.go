package upload

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

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
			return u.DeleteItem(t.Context(), Deletion{Alias: alias, Filename: "a.txt", Matches: matches})
		},
	}
}

func failureOf(failures item.Failures) error {
	if failures == nil {
		return nil
	}
	return failures[0]
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
					case !ok && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrOtherItem),
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
