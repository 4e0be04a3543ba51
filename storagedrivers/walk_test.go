package storagedrivers_test

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

func TestEnters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prefix, cursor, folder string
		deep, shallow          bool
	}{
		{"", "", "a/", true, false},
		{"a", "", "a/", true, false},
		{"a/", "", "a/", true, true},
		{"a/", "", "ab/", false, false},
		{"a/b", "", "a/", true, true},
		{"a/b", "", "a/b/", true, false},
		{"a/b/c", "", "a/b/", true, true},
		{"a/b/c", "", "a/c/", false, false},
		{"", "a/b", "a/", true, false},
		{"", "a0", "a/", false, false},
		{"a/", "a/b", "a/", true, true},
		{"a/b", "a0", "a/", false, false},
	} {
		opts := storagedrivers.ListOptions{Prefix: tt.prefix, Cursor: tt.cursor}
		test.Equal(t, opts.Enters(tt.folder), tt.deep, opts, "enters", tt.folder)
		opts.Shallow = true
		test.Equal(t, opts.Enters(tt.folder), tt.shallow, opts, "enters", tt.folder)
	}
}

// TestWalk: objects and folders fill a page together, and the cursor is the last name of either.
func TestWalk(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]struct {
		objects []string
		folders []string
		next    string
	}{
		1: {[]string{"a"}, nil, "a"},
		2: {[]string{"a"}, []string{"b/"}, "b/"},
		3: {[]string{"a", "c"}, []string{"b/"}, ""},
	} {
		w := storagedrivers.Walk{ListOptions: storagedrivers.ListOptions{Limit: limit, Shallow: true}}
		err := w.Take(storagedrivers.Info{Key: "a"})
		if err == nil {
			err = w.TakeFolder("b/")
		}
		if err == nil {
			err = w.Take(storagedrivers.Info{Key: "c"})
		}
		page, err := w.Page(err)
		test.Is(t, err, nil)
		if !slices.Equal(keysOf(page), want.objects) || !slices.Equal(page.Folders, want.folders) || page.Next != want.next {
			t.Errorf("a page of %d has %+v, want %+v", limit, page, want)
		}
	}
}

func TestWalkLeavesFoldersOut(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]storagedrivers.ListOptions{
		"deep": {}, "another prefix": {Shallow: true, Prefix: "c"}, "passed": {Shallow: true, Cursor: "b/"},
	} {
		w := storagedrivers.Walk{ListOptions: opts}
		page, err := w.Page(w.TakeFolder("b/"))
		if err != nil || len(page.Folders) > 0 {
			t.Errorf("%s: folders %q, error %v", name, page.Folders, err)
		}
	}
}

func TestWalkThatFails(t *testing.T) {
	t.Parallel()
	var w storagedrivers.Walk
	test.Is(t, w.Take(storagedrivers.Info{Key: "a"}), nil)
	page, err := w.Page(fs.ErrPermission)
	test.Is(t, err, fs.ErrPermission)
	if len(page.Objects) > 0 {
		t.Errorf("a walk that failed returns %+v", page)
	}
}

func keysOf(page storagedrivers.Page) []string {
	keys := make([]string, len(page.Objects))
	for i, info := range page.Objects {
		keys[i] = info.Key
	}
	return keys
}
