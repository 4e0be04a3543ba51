package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		for _, submitted := range []string{"a.txt", "b.txt", "c.txt"} {
			t.Run(fmt.Sprintf("%s fails at %s", name, submitted), func(t *testing.T) {
				t.Parallel()
				s := open(t, storing("file/content/"+submitted, errors.New(secret)))
				there(t, name, s, "file/content/old.txt", "old")
				_, failures := uploadForm(t, newUploader(newAlias(t, item.DefaultAlias, s)),
					file("a.txt", "a"), file("b.txt", "b"), file("c.txt", "c"))
				if len(failures) != 1 {
					t.Errorf("%d failures, want 1: %v", len(failures), failures)
				}
				wantFailure(t, failures, item.StorageFailed, submitted, "the storage could not store the item")
				wantContents(t, s, map[string]string{"file/content/old.txt": "old"})
			})
		}
	}
}

// there puts an object by one commit on both sorts of storages.
func there(t *testing.T, sort string, s *storagedrivers.Storage, key, value string) {
	t.Helper()
	if sort == "memory" {
		put(t, s, key, value)
		return
	}
	staged, err := s.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = staged.Write([]byte(value))
	if err == nil {
		_, err = s.Commit(t.Context(), storagedrivers.Change{Staged: staged, Key: key})
	}
	if err := errors.Join(err, staged.Close()); err != nil {
		t.Fatal(err)
	}
}

func overwriting(t *testing.T, s *storagedrivers.Storage) *Uploader {
	t.Helper()
	alias := newAlias(t, item.DefaultAlias, s)
	alias.Overwrite = true
	return newUploader(alias)
}

// TestIncompleteRollback: a failure names each item that stays, and the other items are rolled
// back.
func TestIncompleteRollback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old     map[string]string
		stays   string // an item that cannot be removed
		message string
		want    map[string]string
	}{
		"replaced": {
			map[string]string{"file/content/a.txt": "old a"},
			"a.txt", "it stays replaced",
			map[string]string{"file/content/a.txt": "new a"},
		},
		"stored": {nil, "b.txt", "it may stay stored", map[string]string{"file/content/b.txt": "new b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			puts := storing("file/content/c.txt", errors.New(secret))
			s := onMemory(t, func(op, key string) error {
				if op == "delete" && c.old == nil && strings.HasSuffix(key, c.stays) {
					return errors.New(secret)
				}
				return puts(op, key)
			})
			for key, value := range c.old {
				put(t, s, key, value)
			}
			alias := newAlias(t, item.DefaultAlias, s)
			alias.Overwrite = c.old != nil
			_, failures := uploadForm(t, newUploader(alias), file("a.txt", "new a"), file("b.txt", "new b"), file("c.txt", "new c"))
			wantFailure(t, failures, item.StorageFailed, "c.txt", "could not store")
			if len(failures) != 2 {
				t.Fatalf("%d failures, want 2: %v", len(failures), failures)
			}
			wantFailure(t, failures[1:], item.StorageFailed, c.stays, c.message)
			wantContents(t, s, c.want)
		})
	}
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

func TestAppendTimeSteps(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			u := newUploader(newAlias(t, item.DefaultAlias, s))
			want := map[string]string{}
			for i, stored := range steps(30) {
				value := fmt.Sprint("upload ", i)
				items, failures := uploadForm(t, u, file("Note.TXT", value))
				if failures != nil || !slices.Equal(filenames(items), []string{stored}) {
					t.Fatalf("upload %d is stored as %v (%v), want %s", i, items, failures, stored)
				}
				if address := "https://cdn.example/static/file/content/" + stored; items[0].FullPath != address {
					t.Errorf("address %s, want %s", items[0].FullPath, address)
				}
				want["file/content/"+stored] = value
			}
			wantContents(t, s, want)
		})
	}
}

func TestAppendTimeOfManyAtOnce(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
