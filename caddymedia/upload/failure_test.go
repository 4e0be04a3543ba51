package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/aliases"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/local"
)

// TestStorageErrors: messages name the kind of an error and do not contain its text.
func TestStorageErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		err     error
		reason  aliases.Reason
		message string
	}{
		{"full", storagedrivers.ErrNoSpace, aliases.NoSpace, "full"},
		{"away", storagedrivers.ErrUnavailable, aliases.Unavailable, "try again later"},
		{"closed", storagedrivers.ErrClosed, aliases.Unavailable, "try again later"},
		{"too slow", context.DeadlineExceeded, aliases.Unavailable, "try again later"},
		{"key", storagedrivers.ErrInvalidKey, aliases.BadRequest, "item of this name"},
		{"forbidden", fs.ErrPermission, aliases.StorageFailed, "refuses to be written to"},
		{"size", storagedrivers.ErrSizeMismatch, aliases.StorageFailed, "could not store"},
		{"unforeseen", errors.New("unforeseen"), aliases.StorageFailed, "could not store"},
	} {
		for name, open := range storages {
			for _, op := range []string{"stage", "commit"} {
				if name == "memory" && op == "stage" {
					continue // stages in memory only
				}
				t.Run(c.name+" "+name+" "+op, func(t *testing.T) {
					t.Parallel()
					s := open(t, func(asked, _ string) error {
						if asked == op || asked == "put" {
							return fmt.Errorf("%s: %w", secret, c.err)
						}
						return nil
					})
					_, failures := uploadForm(t, newUploader(newAlias(t, aliases.DefaultAlias, s)), file("a.txt", "text"))
					filename := "a.txt"
					if op == "stage" {
						filename = "" // the whole request ends there
					}
					wantFailure(t, failures, c.reason, filename, c.message)
					if !strings.Contains(failures.Error(), secret) || !errors.Is(failures[0], c.err) {
						t.Errorf("%v lacks the detail for the log", failures)
					}
					wantContents(t, s, nil)
				})
			}
		}
	}
}

func TestStorageThatIsClosed(t *testing.T) {
	t.Parallel()
	for name, open := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			_, failures := uploadForm(t, newUploader(newAlias(t, aliases.DefaultAlias, s)), file("a.txt", "text"))
			wantFailure(t, failures, aliases.Unavailable, "", "try again later")
		})
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
	_, failures := uploadForm(t, newUploader(newAlias(t, aliases.DefaultAlias, s)), file("a.txt", strings.Repeat("x", 2<<20)))
	wantFailure(t, failures, aliases.Internal, "", "internal error")
}

// TestStorageAwayAtTheMove: the upload fails if the form names, after its files, an alias whose
// storage is unavailable.
func TestStorageAwayAtTheMove(t *testing.T) {
	t.Parallel()
	first, second := onMemory(t, nil), onLocal(t, func(string, string) error {
		return fmt.Errorf("%s: %w", secret, storagedrivers.ErrUnavailable)
	})
	u := newUploader(newAlias(t, aliases.DefaultAlias, first), newAlias(t, "docs", second))
	_, failures := uploadForm(t, u, file("a.txt", "text"), file("b.txt", "text"), field("alias", "docs"))
	if len(failures) != 2 {
		t.Errorf("failures %v, want 2", failures)
	}
	wantFailure(t, failures, aliases.Unavailable, "a.txt", "try again later")
	wantContents(t, first, nil)
	wantContents(t, second, nil)
}

// TestLocalLeavesNoFile: failed requests leave no file in the folder of the storage.
func TestLocalLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := storagedrivers.New("local", local.New(local.Config{Root: dir}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	u := newUploader(newAlias(t, aliases.DefaultAlias, s))
	for _, parts := range [][]send{
		{file("a.txt", "text"), file("b.exe", "text")},
		{file("a.txt", "text"), field("alias", "nobody")},
		{file("a.txt", "text"), file("b.txt", strings.Repeat("x", 2<<20))},
	} {
		if _, failures := uploadForm(t, u, parts...); failures == nil {
			t.Errorf("%v is stored", parts)
		}
	}
	body := formBody(file("a.txt", "text"), file("b.txt", "text"))
	if _, failures := uploadBody(t, u, bytes.NewReader(body[:len(body)-10]), Request{Kind: aliases.File}); failures == nil {
		t.Error("half a form is stored")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRootThatCannotBeMade: the message does not contain the path.
func TestRootThatCannotBeMade(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(t.TempDir(), "blocked")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := closed(t, "local",
		local.New(local.Config{Root: filepath.Join(blocked, "below")}, slog.New(slog.DiscardHandler)), storagedrivers.Options{})
	_, failures := uploadForm(t, newUploader(newAlias(t, aliases.DefaultAlias, s)), file("a.txt", "text"))
	wantFailure(t, failures, aliases.StorageFailed, "", "")
	if strings.Contains(failures[0].Message, blocked) {
		t.Errorf("the message is %q", failures[0].Message)
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	var gifFile bytes.Buffer
	if err := gif.Encode(&gifFile, image.NewGray(image.Rect(0, 0, 4, 4)), nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		filename, content string
		pixels            int64
		reason            aliases.Reason
		message           string
	}{
		{"a.gif", gifFile.String(), 16, 0, ""},
		{"a.gif", gifFile.String(), 15, aliases.TooLarge, "pixels"},
		{"a.jpg", gifFile.String(), 0, aliases.BadContent, "GIF"},
		{"a.gif", "text", 0, aliases.BadContent, ""},
		{"a.gif", "", 0, aliases.BadContent, "empty"},
		{"a.pdf", gifFile.String(), 0, aliases.BadContent, ".pdf"},
		{"a.svg", "<svg><script/></svg>", 0, aliases.BadContent, ""},
	} {
		t.Run(c.filename+" "+c.message, func(t *testing.T) {
			t.Parallel()
			s := onLocal(t, nil)
			alias := newAlias(t, aliases.DefaultAlias, s)
			alias.Kind, alias.Prefix = aliases.Image, "img/content"
			alias.Extensions = map[string]bool{"gif": true, "jpg": true, "svg": true}
			alias.Imaging.MaxPixels = c.pixels
			_, failures := uploadBody(t, newUploader(alias), bytes.NewReader(formBody(file(c.filename, c.content))), Request{Kind: aliases.Image})
			if c.message == "" && c.reason == 0 {
				if failures != nil {
					t.Error(failures)
				}
				wantContents(t, s, map[string]string{"img/content/" + c.filename: c.content})
				return
			}
			wantFailure(t, failures, c.reason, c.filename, c.message)
			wantContents(t, s, nil)
		})
	}
}
