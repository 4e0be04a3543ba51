package drivertest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// listed are keys whose byte order differs from that of a walk through folders: '-' and '.' come
// before '/', digits and letters after it.
var listed = []string{
	"B", "a b", "a!/x", "a-b", "a-c/d", "a.b", "a/b", "a/b-c", "a/b.c", "a/c/d", "a/c0", "a0", "ab",
	"dir/sub!", "dir/sub-x", "dir/sub.z", "dir/sub/y", "dir/sub/y0", "dir/sub0", "z/z/z", "é", "日本",
}

func (e *env) fill(t *testing.T) {
	t.Helper()
	keys := slices.Clone(listed)
	slices.Reverse(keys)
	for i, key := range keys {
		e.put(t, key, content{uint64(i), int64(i)}, create)
	}
}

func begin(prefix string) []string {
	return slices.DeleteFunc(slices.Clone(listed), func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

var listPrefixes = []string{
	"", "a", "a/", "a/b", "a/b/", "a/c", "a/c/", "a-", "a!", "B", "B/", "b", "dir", "dir/", "dir/su", "dir/sub",
	"dir/sub/", "dir/sub/y", "é", "nope", "nope/", "nope/nope/", "z/z/z/z", "日",
}

func testList(t *testing.T, e *env) {
	e.holds(t)
	e.fill(t)
	for _, prefix := range listPrefixes {
		e.lists(t, storagedrivers.ListOptions{Prefix: prefix}, begin(prefix))
	}
	e.holds(t, slices.Clone(listed)...)
}

func testListPages(t *testing.T, e *env) {
	e.fill(t)
	for _, limit := range []int{1, 3, len(listed) - 1, len(listed), len(listed) + 1} {
		for _, prefix := range []string{"", "a", "a/", "dir/su", "nope"} {
			e.lists(t, storagedrivers.ListOptions{Prefix: prefix, Limit: limit}, begin(prefix))
		}
	}
}

// levels are the results of shallow listings of the same keys, by prefix.
var levels = map[string][]string{
	"":   {"B", "a b", "a!/", "a-b", "a-c/", "a.b", "a/", "a0", "ab", "dir/", "z/", "é", "日本"},
	"a":  {"a b", "a!/", "a-b", "a-c/", "a.b", "a/", "a0", "ab"},
	"a!": {"a!/"}, "a-": {"a-b", "a-c/"}, "a-c/": {"a-c/d"},
	"a/": {"a/b", "a/b-c", "a/b.c", "a/c/", "a/c0"}, "a/b": {"a/b", "a/b-c", "a/b.c"}, "a/b/": nil,
	"a/c": {"a/c/", "a/c0"}, "a/c/": {"a/c/d"}, "B": {"B"}, "B/": nil, "b": nil, "d": {"dir/"}, "dir": {"dir/"},
	"dir/":     {"dir/sub!", "dir/sub-x", "dir/sub.z", "dir/sub/", "dir/sub0"},
	"dir/su":   {"dir/sub!", "dir/sub-x", "dir/sub.z", "dir/sub/", "dir/sub0"},
	"dir/sub":  {"dir/sub!", "dir/sub-x", "dir/sub.z", "dir/sub/", "dir/sub0"},
	"dir/sub/": {"dir/sub/y", "dir/sub/y0"}, "dir/sub/y": {"dir/sub/y", "dir/sub/y0"},
	"é": {"é"}, "nope": nil, "nope/": nil, "nope/nope/": nil, "z": {"z/"}, "z/": {"z/z/"}, "z/z/z/z": nil, "日": {"日本"},
}

func testListLevel(t *testing.T, e *env) {
	e.lists(t, storagedrivers.ListOptions{Shallow: true}, nil)
	e.fill(t)
	for prefix, want := range levels {
		e.lists(t, storagedrivers.ListOptions{Prefix: prefix, Shallow: true}, want)
	}
}

func testListLevelPages(t *testing.T, e *env) {
	e.fill(t)
	for _, limit := range []int{1, 2, 3, len(levels[""]) - 1, len(levels[""])} {
		for _, prefix := range []string{"", "a", "a/", "dir/su", "nope"} {
			e.lists(t, storagedrivers.ListOptions{Prefix: prefix, Limit: limit, Shallow: true}, levels[prefix])
		}
	}
}

// lists asserts the concatenated pages of a listing, and their order.
func (e *env) lists(t *testing.T, opts storagedrivers.ListOptions, want []string) {
	t.Helper()
	var got []string
	e.pages(t, &opts, func(names []string) { got = append(got, names...) })
	if opts.Cursor != "" || !slices.Equal(got, want) {
		t.Errorf("listing %+v: got %q, want %q", opts, got, want)
	}
}

// pages calls f for each page of a listing with its keys and folders, up to the last page or a
// failure. The cursor is empty after the last.
func (e *env) pages(t *testing.T, opts *storagedrivers.ListOptions, f func(names []string)) {
	t.Helper()
	for range 10 * len(listed) {
		page, err := e.storage.List(t.Context(), *opts)
		if err != nil {
			t.Errorf("listing %+v: %v", *opts, err)
			return
		}
		f(e.names(t, *opts, page))
		if opts.Cursor = page.Next; opts.Cursor == "" {
			return
		}
	}
}

// names returns the keys and folders of a page in byte order.
func (e *env) names(t *testing.T, opts storagedrivers.ListOptions, page storagedrivers.Page) []string {
	t.Helper()
	keys := make([]string, 0, len(page.Objects)+len(page.Folders))
	for _, info := range page.Objects {
		keys = append(keys, info.Key)
	}
	for _, folder := range page.Folders {
		if !strings.HasPrefix(folder, opts.Prefix) {
			t.Errorf("listing %+v has the folder %q, want the prefix in front", opts, folder)
		}
	}
	if !slices.IsSorted(keys) || !slices.IsSorted(page.Folders) {
		t.Errorf("listing %+v: got %q and %q, want each in byte order", opts, keys, page.Folders)
	}
	names := append(keys, page.Folders...)
	if len(names) > opts.PageLimit() {
		t.Errorf("listing %+v has a page of %d, want at most %d", opts, len(names), opts.PageLimit())
	}
	slices.Sort(names)
	return names
}

// testListWhileDeleting: a cursor stays valid after the objects of its page are deleted.
func testListWhileDeleting(t *testing.T, e *env) {
	for _, limit := range []int{1, 3} {
		e.listsWhileDeleting(t, storagedrivers.ListOptions{Limit: limit}, listed)
		e.listsWhileDeleting(t, storagedrivers.ListOptions{Limit: limit, Shallow: true}, levels[""])
	}
}

func (e *env) listsWhileDeleting(t *testing.T, opts storagedrivers.ListOptions, want []string) {
	t.Helper()
	e.fill(t)
	var got []string
	e.pages(t, &opts, func(names []string) {
		got = append(got, names...)
		for _, name := range names {
			e.removes(t, name)
		}
	})
	if opts.Cursor != "" || !slices.Equal(got, want) {
		t.Errorf("listing %+v while deleting: got %q, want %q", opts, got, want)
	}
	e.holds(t)
}

// removes deletes an object, or all objects in a folder.
func (e *env) removes(t *testing.T, name string) {
	t.Helper()
	keys := []string{name}
	if strings.HasSuffix(name, "/") {
		keys = begin(name)
	}
	for _, key := range keys {
		succeeds(t, e.storage.Delete(t.Context(), key), "deleting between pages")
	}
}

func testListOddPrefixes(t *testing.T, e *env) {
	e.put(t, "object", content{1, 1}, create)
	e.put(t, "folder/object", content{1, 1}, create)
	for _, prefix := range []string{
		"/", "//", "../", "..", ".", "./", "folder//", "folder/../", "folder/.", `folder\`, "folder/\x00", "\xff",
		strings.Repeat("x", 2000),
	} {
		e.lists(t, storagedrivers.ListOptions{Prefix: prefix}, nil)
		e.lists(t, storagedrivers.ListOptions{Prefix: prefix, Shallow: true}, nil)
	}
}

func testAll(t *testing.T, e *env) {
	e.fill(t)
	for _, prefix := range []string{"", "a/", "nope"} {
		var got []string
		for info, err := range e.storage.All(t.Context(), prefix) {
			if err != nil {
				t.Fatalf("listing %q: %v", prefix, err)
			}
			got = append(got, info.Key)
		}
		if want := begin(prefix); !slices.Equal(got, want) {
			t.Errorf("all of %q: %q, want %q", prefix, got, want)
		}
	}
	n := 0
	for _, err := range e.storage.All(t.Context(), "") {
		succeeds(t, err, "listing")
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("stopped after %d objects, want 2", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for info, err := range e.storage.All(ctx, "") {
		fails(t, err, context.Canceled, "listing after cancellation "+info.Key)
	}
}
