package drivertest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

// listed are keys whose byte order is not that of a walk through folders: '-' and '.'
// come before '/', digits and letters behind it.
var listed = []string{
	"B", "a b", "a!/x", "a-b", "a-c/d", "a.b", "a/b", "a/b-c", "a/b.c", "a/c/d", "a/c0", "a0", "ab",
	"dir/sub!", "dir/sub-x", "dir/sub.z", "dir/sub/y", "dir/sub/y0", "dir/sub0", "z/z/z", "é", "日本",
}

func (p *place) fill(t *testing.T) {
	t.Helper()
	keys := slices.Clone(listed)
	slices.Reverse(keys)
	for i, key := range keys {
		p.put(t, key, content{uint64(i), int64(i)}, create)
	}
}

func begin(prefix string) []string {
	return slices.DeleteFunc(slices.Clone(listed), func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

var listPrefixes = []string{
	"", "a", "a/", "a/b", "a/b/", "a/c", "a/c/", "a-", "a!", "B", "B/", "b", "dir", "dir/", "dir/su", "dir/sub",
	"dir/sub/", "dir/sub/y", "é", "nope", "nope/", "nope/nope/", "z/z/z/z", "日",
}

func testList(t *testing.T, p *place) {
	p.holds(t)
	p.fill(t)
	for _, prefix := range listPrefixes {
		p.lists(t, prefix, 0)
	}
	p.holds(t, slices.Clone(listed)...)
}

func testListPages(t *testing.T, p *place) {
	p.fill(t)
	for _, limit := range []int{1, 3, len(listed) - 1, len(listed), len(listed) + 1} {
		for _, prefix := range []string{"", "a", "a/", "dir/su", "nope"} {
			p.lists(t, prefix, limit)
		}
	}
}

// lists asserts what pages of limit objects give together, and their order.
func (p *place) lists(t *testing.T, prefix string, limit int) {
	t.Helper()
	opts := storagedrivers.ListOptions{Prefix: prefix, Limit: limit}
	var got []string
	for range 10 * len(listed) {
		page, err := p.storage.List(t.Context(), opts)
		if err != nil {
			t.Errorf("listing %q: %v", prefix, err)
			return
		}
		if len(page.Objects) > opts.PageLimit() {
			t.Errorf("a page of %d objects, want at most %d", len(page.Objects), opts.PageLimit())
		}
		for _, info := range page.Objects {
			got = append(got, info.Key)
		}
		opts.Cursor = page.Next
		if page.Next == "" {
			break
		}
	}
	if want := begin(prefix); opts.Cursor != "" || !slices.Equal(got, want) {
		t.Errorf("listing %q by %d gives %q, want %q; then cursor %q", prefix, limit, got, want, opts.Cursor)
	}
}

// testListWhileDeleting: the cursor outlives the objects that it was given with.
func testListWhileDeleting(t *testing.T, p *place) {
	p.fill(t)
	opts := storagedrivers.ListOptions{Limit: 3}
	var got []string
	for range 10 * len(listed) {
		page, err := p.storage.List(t.Context(), opts)
		if err != nil {
			t.Fatalf("listing: %v", err)
		}
		for _, info := range page.Objects {
			got = append(got, info.Key)
			succeeds(t, p.storage.Delete(t.Context(), info.Key), "deleting between pages")
		}
		if opts.Cursor = page.Next; opts.Cursor == "" {
			break
		}
	}
	if !slices.Equal(got, listed) {
		t.Errorf("listing while deleting gives %q, want %q", got, listed)
	}
	p.holds(t)
}

func testListOddPrefixes(t *testing.T, p *place) {
	p.put(t, "object", content{1, 1}, create)
	p.put(t, "folder/object", content{1, 1}, create)
	for _, prefix := range []string{
		"/", "//", "../", "..", ".", "./", "folder//", "folder/../", "folder/.", `folder\`, "folder/\x00", "\xff",
		strings.Repeat("x", 2000),
	} {
		page, err := p.storage.List(t.Context(), storagedrivers.ListOptions{Prefix: prefix})
		if err != nil || len(page.Objects) > 0 || page.Next != "" {
			t.Errorf("listing %q gives %d objects, cursor %q, error %v", prefix, len(page.Objects), page.Next, err)
		}
	}
}

func testAll(t *testing.T, p *place) {
	p.fill(t)
	for _, prefix := range []string{"", "a/", "nope"} {
		var got []string
		for info, err := range p.storage.All(t.Context(), prefix) {
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
	for _, err := range p.storage.All(t.Context(), "") {
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
	for info, err := range p.storage.All(ctx, "") {
		fails(t, err, context.Canceled, "listing in vain "+info.Key)
	}
}
