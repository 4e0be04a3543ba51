package upload

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

// counted returns a storage that counts its commits.
func counted(t testing.TB, open func(testing.TB, func(op, key string) error) *storagedrivers.Storage) (*storagedrivers.Storage, *atomic.Int64) {
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
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, commits := counted(t, open)
			u := newUploader(newAlias(t, item.DefaultAlias, s))
			parts := make([]send, files)
			for i := range parts {
				parts[i] = file("note.txt", "text")
			}
			names := make([]string, 0, requests*files)
			for range requests {
				items, failures := uploadForm(t, u, parts...)
				if failures != nil {
					t.Fatal(failures)
				}
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
}

// TestAppendTimeBehindOthers: an item gets a random suffix after some tries, if other processes
// have used many seconds.
func TestAppendTimeBehindOthers(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, commits := counted(t, open)
			u := newUploader(newAlias(t, item.DefaultAlias, s))
			for _, taken := range steps(2 * secondTries) {
				put(t, s, "file/content/"+taken, "others'")
			}
			commits.Store(0)
			items, failures := uploadForm(t, u, file("note.txt", "mine"))
			if failures != nil {
				t.Fatal(failures)
			}
			if !regexp.MustCompile(`^note-\d{10}-[a-z2-7]{6}\.txt$`).MatchString(items[0].Filename) {
				t.Errorf("stored as %s", items[0].Filename)
			}
			if n := commits.Load(); n > secondTries+2 {
				t.Errorf("%d commits", n)
			}
		})
	}
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
