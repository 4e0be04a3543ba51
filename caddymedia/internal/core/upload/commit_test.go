package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
	"github.com/caddymedia/media/storagedrivers"
)

func overwriting(t *testing.T, s *storagedrivers.Storage) *Uploader {
	t.Helper()
	alias := newAlias(t, item.DefaultAlias, s)
	alias.Overwrite = true
	return newUploader(alias)
}

// steps returns the names of n uploads of note.txt at noon.
func steps(n int) []string {
	names := make([]string, n)
	names[0] = "note.txt"
	for i := 1; i < n; i++ {
		names[i] = fmt.Sprintf("note-%d.txt", noon.Unix()+int64(i)-1)
	}
	return names
}

func TestAppendTimeOfManyAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		s := open(t, nil)
		u := newUploader(newAlias(t, item.DefaultAlias, s))
		want := map[string]string{}
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 30 {
			group.Go(func() {
				value := fmt.Sprint("upload ", i)
				items, failures := uploadForm(t, u, file("note.txt", value))
				if failures != nil {
					t.Errorf("upload %d: %v", i, failures)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				want["file/content/"+items[0].Filename] = value
			})
		}
		group.Wait()
		if len(want) != 30 {
			t.Errorf("%d names for 30 uploads", len(want))
		}
		wantContents(t, s, want)
		for _, stored := range steps(30) {
			if want["file/content/"+stored] == "" {
				t.Errorf("nobody got %s", stored)
			}
		}
	})
}

func TestOverwriteConflict(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	put(t, s, "file/content/note.txt", "old")
	_, failures := uploadForm(t, overwriting(t, s),
		file("note.txt", "1"), file("other.txt", "2"), file("Note.TXT", "3"))
	if len(failures) != 2 {
		t.Fatalf("failures %v, want both of one name", failures)
	}
	wantFailure(t, failures, item.Conflict, "note.txt", "the same name")
	wantFailure(t, failures[1:], item.Conflict, "Note.TXT", "the same name")
	wantContents(t, s, map[string]string{"file/content/note.txt": "old"})
}

func TestCallerThatIsGoneLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, when := range []string{"before", "at the first", "at the second"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				calls := map[string]int{"before": 0, "at the first": 1, "at the second": 2}[when]
				if calls == 0 {
					cancel()
				}
				s := open(t, func(op, _ string) error {
					if op == "put" || op == "commit" {
						if calls--; calls == 0 {
							cancel()
							return ctx.Err()
						}
					}
					return nil
				})
				u := newUploader(newAlias(t, item.DefaultAlias, s))
				body := bytes.NewReader(formBody(file("a.txt", "a"), file("b.txt", "b")))
				items, failures := u.Upload(ctx, Upload{Request: Request{Kind: item.File}}, Form(body, boundary))
				checked(t, items, failures)
				if failures != nil && failures[0].Reason != item.BadRequest {
					t.Errorf("failures %v", failures)
				} else if failures == nil {
					t.Error("no failure")
				}
				wantContents(t, s, nil)
			})
		}
	}
}

// counted returns a storage that counts its commits.
func counted(t testing.TB, open opener) (*storagedrivers.Storage, *atomic.Int64) {
	t.Helper()
	var commits atomic.Int64
	return open(t, func(op, _ string) error {
		if op == "put" || op == "commit" {
			commits.Add(1)
		}
		return nil
	}), &commits
}

// TestAppendTimeTries: items of one name get the next seconds, in their order. The number of tries
// does not grow with the number of items of the name.
func TestAppendTimeTries(t *testing.T) {
	t.Parallel()
	const requests, files = 10, 20
	onEach(t, func(t *testing.T, open opener) {
		s, commits := counted(t, open)
		u := newUploader(newAlias(t, item.DefaultAlias, s))
		parts := make([]send, files)
		for i := range parts {
			parts[i] = file("note.txt", "text")
		}
		names := make([]string, 0, requests*files)
		for range requests {
			items := storeFiles(t, u, parts...)
			names = append(names, filenames(items)...)
		}
		if want := steps(requests * files); !slices.Equal(names, want) {
			t.Errorf("stored %q, want %q", names, want)
		}
		if n := commits.Load(); n > 2*requests*files {
			t.Errorf("%d commits for %d items", n, requests*files)
		}
	})
}

// TestAppendTimeBehindOthers: an item gets a random suffix after some tries, if other processes
// have used many seconds.
func TestAppendTimeBehindOthers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, open opener) {
		s, commits := counted(t, open)
		u := newUploader(newAlias(t, item.DefaultAlias, s))
		for _, taken := range steps(2 * secondTries) {
			put(t, s, "file/content/"+taken, "others'")
		}
		commits.Store(0)
		items := storeFiles(t, u, file("note.txt", "mine"))
		if !regexp.MustCompile(`^note-\d{10}-[a-z2-7]{6}\.txt$`).MatchString(items[0].Filename) {
			t.Errorf("stored as %s", items[0].Filename)
		}
		if n := commits.Load(); n > secondTries+2 {
			t.Errorf("%d commits", n)
		}
	})
}

// TestAppendTimeGivesUp: the number of tries is bounded on a storage where every name exists.
func TestAppendTimeGivesUp(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			s := open(t, func(op, _ string) error {
				if op == "put" || op == "commit" {
					tries++
					return fmt.Errorf("%s: %w", secret, fs.ErrExist)
				}
				return nil
			})
			_, failures := uploadForm(t, newUploader(newAlias(t, item.DefaultAlias, s)), file("note.txt", "text"))
			wantFailure(t, failures, item.Conflict, "note.txt", "no free name")
			if !errors.Is(failures[0], fs.ErrExist) || tries != secondTries+suffixTries+1 {
				t.Errorf("%v after %d tries", failures, tries)
			}
		})
	}
}

// TestAppendTimeSuffixFits: the key of an accepted name has room for time and suffix.
func TestAppendTimeSuffixFits(t *testing.T) {
	t.Parallel()
	s := onMemory(t, nil)
	alias := newAlias(t, item.DefaultAlias, s)
	u := newUploader(alias)
	for n := 800; n < 1024; n++ {
		alias.Prefix = strings.Repeat(strings.Repeat("p", 99)+"/", n/100) + strings.Repeat("p", n%100+1)
		if _, failures := uploadForm(t, u, file("a.txt", "text")); failures != nil {
			wantFailure(t, failures, item.BadRequest, "a.txt", "too long")
			return
		}
		for range 2 {
			for _, taken := range steps(secondTries + 1) {
				_, _ = s.Put(t.Context(), alias.Key(strings.Replace(taken, "note", "a", 1)), strings.NewReader(""), storagedrivers.PutOptions{})
			}
		}
		u.seconds.last = nil
		if _, failures := uploadForm(t, u, file("a.txt", "text")); failures != nil {
			t.Fatalf("a prefix of %d bytes: %v", n, failures)
		}
	}
	t.Error("no prefix is too long")
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	var s seconds
	for i, step := range []struct {
		name      string
		now, want int64
	}{{"a", 10, 10}, {"a", 10, 11}, {"b", 10, 10}, {"a", 9, 12}, {"a", 20, 20}} {
		if got := s.next(step.name, step.now); got != step.want {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
	for i := range maxSeconds {
		s.next(fmt.Sprint(i), 1)
	}
	if s.last.Len() != maxSeconds || s.next("a", 1) != 1 {
		t.Errorf("%d names are remembered", s.last.Len())
	}
}

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
