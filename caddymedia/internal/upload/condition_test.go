package upload

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

// Conditions of an upload under a name.
var (
	isMissing = func(info storagedrivers.Info) bool { return info.Key == "" }
	isThere   = func(info storagedrivers.Info) bool { return info.Key != "" }
)

// TestCondition: an upload is stored only if the item of its name meets its condition. Under Append
// Time that is the item of the plain name.
func TestCondition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		overwrite bool
		old       string // the present item; empty for none
		matches   func(storagedrivers.Info) bool
		want      string // the filename; empty if it is refused
	}{
		{"overwrite, free", true, "", isMissing, "a.txt"},
		{"overwrite, taken", true, "old", isMissing, ""},
		{"overwrite, there", true, "old", isThere, "a.txt"},
		{"overwrite, not there", true, "", isThere, ""},
		{"append, free", false, "", isMissing, "a.txt"},
		{"append, taken", false, "old", isMissing, ""},
		{"append, there", false, "old", isThere, fmt.Sprintf("a-%d.txt", noon.Unix())},
		{"append, not there", false, "", isThere, ""},
	} {
		for kind, open := range storages {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				t.Parallel()
				s := open(t, nil)
				want := map[string]string{}
				if c.old != "" {
					put(t, s, "file/content/a.txt", c.old)
					want["file/content/a.txt"] = c.old
				}
				alias := newAlias(t, item.DefaultAlias, s)
				alias.Overwrite = c.overwrite
				u := newUploader(alias)
				req := Upload{Request: Request{Kind: item.File}, Matches: c.matches, SubFolder: "/"}
				early := u.Precheck(t.Context(), req, "a.txt", 3)
				name, failures := uploadSingle(t, u, "a.txt", strings.NewReader("new"), req)
				if c.want == "" {
					wantFailure(t, early, item.Changed, "a.txt", "condition")
					wantFailure(t, failures, item.Changed, "a.txt", "condition")
				} else {
					want["file/content/"+c.want] = "new"
				}
				if name != c.want || c.want != "" && early != nil {
					t.Errorf("got %q, %v, and %v in advance, want %q", name, failures, early, c.want)
				}
				wantContents(t, s, want)
			})
		}
	}
}

// TestConditionOvertaken: if another node changes the item between the comparison and the change,
// its item stays, and the upload is refused.
func TestConditionOvertaken(t *testing.T) {
	t.Parallel()
	for _, overwrite := range []bool{true, false} {
		for name, matches := range map[string]func(storagedrivers.Info) bool{"missing": isMissing, "there": isThere} {
			if !overwrite && name == "there" {
				continue // the item is not replaced anyway
			}
			t.Run(fmt.Sprint(name, overwrite), func(t *testing.T) {
				t.Parallel()
				var armed atomic.Bool
				var other *item.Alias
				want := map[string]string{}
				uploaders, nodes := twoNodes(t, func(doing, key string) error {
					if doing != "put" || key != "file/over/a.txt" || !armed.CompareAndSwap(true, false) {
						return nil
					}
					if name == "there" {
						return other.Storage.Delete(t.Context(), key)
					}
					put(t, other.Storage, key, "theirs")
					return nil
				})
				other = nodes[1]
				nodes[0].Overwrite = overwrite
				if name == "there" {
					put(t, other.Storage, "file/over/a.txt", "old")
				} else {
					want["file/over/a.txt"] = "theirs"
				}
				armed.Store(true)
				_, failures := uploadSingle(t, uploaders[0], "a.txt", strings.NewReader("ours"), Upload{Request: Request{Kind: item.File, Alias: "over"}, SubFolder: "/", Matches: matches})
				wantFailure(t, failures, item.Changed, "a.txt", "condition")
				if armed.Load() {
					t.Error("it was not overtaken")
				}
				wantContents(t, other.Storage, want)
			})
		}
	}
}

// TestConditionAtOnce: of many uploads for a free name, or for one version of an item, by two nodes
// at the same time, exactly one succeeds.
func TestConditionAtOnce(t *testing.T) {
	t.Parallel()
	for _, overwrite := range []bool{true, false} {
		t.Run(fmt.Sprint(overwrite), func(t *testing.T) {
			t.Parallel()
			uploaders, nodes := twoNodes(t, nil)
			for _, alias := range nodes {
				alias.Overwrite = overwrite
			}
			race := func(filename string, matches func(storagedrivers.Info) bool) {
				var all sync.WaitGroup
				var wins atomic.Int32
				for i := range 8 {
					all.Go(func() {
						_, failures := uploaders[i%2].Upload(t.Context(), Upload{Request: Request{Kind: item.File, Alias: "over"}, SubFolder: "/", Matches: matches}, Body(filename, strings.NewReader(fmt.Sprint("ours ", i))))
						switch {
						case failures == nil:
							wins.Add(1)
						case failures[0].Reason != item.Changed && failures[0].Reason != item.Conflict:
							t.Error(failures)
						}
					})
				}
				all.Wait()
				if wins.Load() != 1 {
					t.Fatalf("%s: %d uploads have succeeded, left are %q", filename, wins.Load(), contents(t, nodes[0].Storage))
				}
			}
			for round := range 200 {
				filename := fmt.Sprintf("%d.txt", round)
				race(filename, isMissing)
				if overwrite {
					race(filename, same(t, nodes[0], filename))
				}
			}
		})
	}
}
