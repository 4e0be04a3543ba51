package local

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
)

// openReader opens a new object of ten bytes in a folder below root. It is closed at the end of the
// test.
func openReader(t *testing.T, root string) *reader {
	t.Helper()
	test.Must(t, os.MkdirAll(filepath.Join(root, "a"), 0o755))
	test.Must(t, os.WriteFile(filepath.Join(root, "a", "b"), []byte("0123456789"), 0o600))
	d := New(Config{Root: root}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { test.Must(t, d.Close()) })
	body, _, err := d.Open(t.Context(), "a/b", storagedrivers.Range{})
	test.Must(t, err)
	t.Cleanup(func() { _ = body.Close() }) // the test may have closed it
	return body.(*reader)
}

// TestReaderKeepsItsOffset: the offset of the file itself is only set for File.
func TestReaderKeepsItsOffset(t *testing.T) {
	t.Parallel()
	r := openReader(t, t.TempDir())
	for _, tt := range []struct {
		offset int64
		whence int
		at     int64
		want   string
	}{
		{3, io.SeekStart, 3, "34"},
		{1, io.SeekCurrent, 6, "67"},
		{-2, io.SeekEnd, 8, "89"},
		{5, io.SeekEnd, 15, ""},
		{0, io.SeekStart, 0, "01"},
	} {
		at, err := r.Seek(tt.offset, tt.whence)
		test.Is(t, err, nil)
		test.Equal(t, at, tt.at, "seeking", tt.offset, "from", tt.whence, "at")
		if b, err := io.ReadAll(io.LimitReader(r, 2)); err != nil || string(b) != tt.want {
			t.Errorf("at %d: read %q, want %q, error %v", at, b, tt.want, err)
		}
	}
	for _, whence := range []int{io.SeekStart, -1, 3} {
		_, err := r.Seek(-1, whence)
		test.Fails(t, err, "seeking to -1 from", whence, "succeeded")
	}
	file, err := r.File()
	test.Must(t, err)
	if b, err := io.ReadAll(file); err != nil || string(b) != "23456789" {
		t.Errorf("the file has %q from the offset on, error %v", b, err)
	}
}

// TestTruncatedWhileRead: a file that becomes shorter is an error, not a shorter object.
func TestTruncatedWhileRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	test.Must(t, put(t, s, "a", "0123456789", storagedrivers.CreateOnly))
	o, err := s.OpenSeeker(t.Context(), "a")
	test.Must(t, err)
	defer o.Close()
	_, err = io.ReadFull(o, make([]byte, 4))
	test.Must(t, err)
	test.Must(t, os.Truncate(filepath.Join(root, "a"), 6))
	b, err := io.ReadAll(o)
	if string(b) != "45" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q, error %v, want the rest and an unexpected end", b, err)
	}
}

// TestCompareAfterSyncing: an object that another process replaces or removes while a commit is
// made durable stays as it is, and so do the other objects of the commit.
func TestCompareAfterSyncing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ keys, removed []string }{
		"one": {keys: []string{"a"}}, "two": {keys: []string{"a", "new"}}, "with a removal": {keys: []string{"a"}, removed: []string{"b"}},
		"removal": {keys: []string{"new"}, removed: []string{"a"}}, "removals": {removed: []string{"b", "a"}},
	} {
		for _, theirs := range []string{"theirs", ""} {
			t.Run(fmt.Sprintf("%s %q", name, theirs), func(t *testing.T) {
				t.Parallel()
				root := t.TempDir()
				d, other := New(Config{Root: root}, slog.New(slog.DiscardHandler)), New(Config{Root: root}, slog.New(slog.DiscardHandler))
				over := storagedrivers.PutOptions{Mode: storagedrivers.Overwrite}
				want := map[string]string{"a": theirs, "b": "old b"}
				tags := map[string]string{}
				for _, key := range []string{"a", "b"} {
					info, err := d.Put(t.Context(), key, strings.NewReader("old "+key), over)
					test.Must(t, err)
					tags[key] = info.ETag
				}
				changes := make([]storagedrivers.Change, 0, len(c.keys)+len(c.removed))
				for _, key := range append(c.keys, c.removed...) {
					changes = append(changes, storagedrivers.Change{Key: key, Options: over})
					changes[len(changes)-1].Options.IfMatch = tags[key]
				}
				for i := range c.keys {
					changes[i].Staged = stageOn(t, d, "ours")
				}
				overtaken := false
				d.step = func(step string) {
					if overtaken || step != "sealed" && step != "prepared" {
						return
					}
					overtaken = true
					var err error
					if theirs == "" {
						err = other.Delete(t.Context(), "a", storagedrivers.DeleteOptions{})
					} else {
						_, err = other.Put(t.Context(), "a", strings.NewReader(theirs), over)
					}
					test.Is(t, err, nil)
				}
				_, err := d.Commit(t.Context(), changes)
				if failed, ok := errors.AsType[*storagedrivers.CommitError](err); !errors.Is(err, storagedrivers.ErrChanged) || !ok ||
					len(failed.Replaced)+len(failed.Stored) > 0 || !overtaken {
					t.Errorf("error %v, overtaken: %v", err, overtaken)
				}
				if theirs == "" {
					delete(want, "a")
				}
				got := files(t, root)
				maps.DeleteFunc(got, func(name, _ string) bool {
					return strings.HasPrefix(filepath.Base(name), ".") || strings.HasPrefix(name, ".")
				})
				if !maps.Equal(got, want) {
					t.Errorf("left are %q, want %q", got, want)
				}
				test.Is(t, errors.Join(d.Close(), other.Close()), nil)
			})
		}
	}
}

// TestCompareLink: the condition of a symbolic link is the ETag of the object that is read through
// it. The change is that of the link.
func TestCompareLink(t *testing.T) {
	t.Parallel()
	for _, staged := range []bool{false, true} {
		for _, alone := range []bool{false, true} {
			for _, same := range []bool{false, true} {
				t.Run(fmt.Sprint(staged, alone, same), func(t *testing.T) {
					t.Parallel()
					root := t.TempDir()
					d := New(Config{Root: root}, slog.New(slog.DiscardHandler))
					info, err := d.Put(t.Context(), "target", strings.NewReader("old"), storagedrivers.PutOptions{})
					if err = errors.Join(err, os.Symlink("target", filepath.Join(root, "link"))); err != nil {
						t.Fatal(err)
					}
					change := storagedrivers.Change{Key: "link", Options: storagedrivers.PutOptions{Mode: storagedrivers.Overwrite, IfMatch: info.ETag}}
					want, wantErr := map[string]string{"target": "old"}, error(nil)
					if staged {
						change.Staged, want["link"] = stageOn(t, d, "new"), "new"
					}
					if !same {
						change.Options.IfMatch, want["link"], wantErr = `"other"`, "old", storagedrivers.ErrChanged
					}
					changes := []storagedrivers.Change{change}
					if !alone {
						_, err := d.Put(t.Context(), "second", strings.NewReader("second"), storagedrivers.PutOptions{})
						test.Must(t, err)
						if changes = append(changes, storagedrivers.Change{Key: "second"}); !same {
							want["second"] = "second"
						}
					}
					_, err = d.Commit(t.Context(), changes)
					test.Is(t, err, wantErr)
					for _, name := range []string{"target", "link", "second"} {
						if got, err := os.ReadFile(filepath.Join(root, name)); string(got) != want[name] || (err == nil) != (want[name] != "") {
							t.Errorf("%s holds %q, want %q, error %v", name, got, want[name], err)
						}
					}
					test.Is(t, d.Close(), nil)
				})
			}
		}
	}
}
