package upload

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/internal/item"
	"github.com/caddymedia/media/storagedrivers"
)

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
	first, second := onMemory(t, nil), onLocal(t, func(string, string) error {
		return fmt.Errorf("%s: %w", secret, storagedrivers.ErrUnavailable)
	})
	u := newUploader(newAlias(t, item.DefaultAlias, first), newAlias(t, "docs", second))
	_, failures := uploadForm(t, u, file("a.txt", "text"), file("b.txt", "text"), field("alias", "docs"))
	if len(failures) != 2 {
		t.Errorf("failures %v, want 2", failures)
	}
	wantFailure(t, failures, item.Unavailable, "a.txt", "try again later")
	wantContents(t, first, nil)
	wantContents(t, second, nil)
}
