package drivertest

import (
	"context"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
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
			test.Must(t, err, "listing", prefix)
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

var oddNames = []string{
	"plain.txt",
	"caf\u00e9.txt",  // composed
	"cafe\u0301.txt", // decomposed: another object
	"日本語/ファイル.txt",
	"emoji 😀👩‍👩‍👧.png",
	"two  spaces and\u00a0more.txt",
	" leading space",
	`odd #?%&+='"()[]{}~!$;,@*:|<>.txt`,
	"odd #?%&+='\"()[]{}~!$;,@:|<> folder/object",
	"100%", "a%20b", "a+b", "a%2Fb", "a&amp;b",
	"~home", "$HOME", "`date`", "^caret", "semi;colon",
	"con", "NUL.txt", "-rf", "--", "a..b", "x.tar.gz", "trailing-tilde~",
	"ABC", "abc",
	strings.Repeat("n", 240),
	strings.Repeat("m", 251) + ".txt",
	strings.Repeat("é", 120) + "/" + strings.Repeat("f", 240),
	strings.Repeat("deep/", 15) + "object.txt",
}

func testOddNames(t *testing.T, e *env) {
	for i, key := range oddNames {
		e.put(t, key, content{uint64(i), 100}, create)
	}
	for i, key := range oddNames {
		e.has(t, key, content{uint64(i), 100})
		info, err := e.storage.Stat(t.Context(), key)
		if err != nil || info.Key != key || info.Size != 100 {
			t.Errorf("stat of %q: got %q of %d bytes, error %v", key, info.Key, info.Size, err)
		}
		page, err := e.storage.List(t.Context(), storagedrivers.ListOptions{Prefix: key})
		if err != nil || !slices.ContainsFunc(page.Objects, func(i storagedrivers.Info) bool { return i.Key == key }) {
			t.Errorf("listing %q does not include it, error %v", key, err)
		}
		e.put(t, key, content{uint64(i), 200}, overwrite)
	}
	e.holds(t, slices.Clone(oddNames)...)
	for _, key := range oddNames {
		succeeds(t, e.storage.Delete(t.Context(), key), "deleting "+key)
	}
	e.holds(t)
}

var invalidKeys = []string{
	"", "/", "/x", "x/", "x//y", "../x", "x/../y", "..", ".", "x/.", "./x", ".x", "x/.y/z", ".up-x.part",
	`x\y`, `..\x`, "x\x00y", "x\ny", "x\ry", "x\x7fy", "x\u0085y",
	"x.", "x ", "x./y", "x /y",
	strings.Repeat("x", 256), "a/" + strings.Repeat("x", 256), strings.Repeat("x/", 512) + "x",
	"x\xff", "\xc3", "x\xed\xa0\x80",
}

func testInvalidKeys(t *testing.T, e *env) {
	ctx := t.Context()
	staged, err := e.storage.Stage(ctx)
	test.Must(t, err)
	c := content{1, 100}
	for _, key := range invalidKeys {
		refused := func(op string, err error) {
			t.Helper()
			fails(t, err, storagedrivers.ErrInvalidKey, op+" "+key)
		}
		for _, opts := range []storagedrivers.PutOptions{create, overwrite} {
			_, err = e.storage.Put(ctx, key, newSource(c), opts)
			refused("storing", err)
			_, err = commitOne(ctx, e.storage, staged, key, opts)
			refused("committing", err)
		}
		_, _, err = e.storage.Open(ctx, key, all)
		refused("opening", err)
		_, err = e.storage.OpenSeeker(ctx, key)
		refused("opening to seek", err)
		_, err = e.storage.Stat(ctx, key)
		refused("stat of", err)
		refused("deleting", e.storage.Delete(ctx, key))
	}
	closed(t, staged)
	e.holds(t)
}

// testKeyBelowObject: if keys are paths, an object cannot be a folder too; otherwise both are
// possible.
func testKeyBelowObject(t *testing.T, e *env) {
	e.put(t, "a", content{1, 100}, create)
	e.hasNot(t, "a/b")
	succeeds(t, e.storage.Delete(t.Context(), "a/b"), "deleting below an object")
	e.eitherWay(t, "a/b", "a", content{1, 100})
}

func testKeyOfFolder(t *testing.T, e *env) {
	e.put(t, "a/b", content{1, 100}, create)
	e.hasNot(t, "a")
	succeeds(t, e.storage.Delete(t.Context(), "a"), "deleting a folder")
	e.has(t, "a/b", content{1, 100})
	e.eitherWay(t, "a", "a/b", content{1, 100})
}

// testKeyOfEmptyFolder: folders that objects leave when they are deleted are not in the way of a
// key.
func testKeyOfEmptyFolder(t *testing.T, e *env) {
	for i, opts := range []storagedrivers.PutOptions{create, overwrite} {
		for _, store := range []func(context.Context, string, content, storagedrivers.PutOptions) error{
			e.tryPut, e.tryStage,
		} {
			e.put(t, "a/b/c/d", content{1, 100}, create)
			e.put(t, "a/e/f", content{1, 100}, create)
			succeeds(t, e.storage.Delete(t.Context(), "a/e/f"), "deleting")
			e.eitherWay(t, "a", "a/b/c/d", content{1, 100})
			succeeds(t, e.storage.Delete(t.Context(), "a/b/c/d"), "deleting")
			if !e.storage.Features().EmptyFolders {
				e.lists(t, storagedrivers.ListOptions{Shallow: true}, nil)
			}
			c := content{uint64(i) + 2, 200}
			succeeds(t, store(t.Context(), "a", c, opts), "storing over empty folders")
			e.has(t, "a", c)
			e.holds(t, "a")
			succeeds(t, e.storage.Delete(t.Context(), "a"), "deleting")
		}
	}
	e.holds(t)
}

// eitherWay asserts that key can be stored beside the existing other key, or is an invalid key. The
// error must not suggest another name or a retry.
func (e *env) eitherWay(t *testing.T, key, other string, old content) {
	t.Helper()
	for i, opts := range []storagedrivers.PutOptions{create, overwrite} {
		c := content{uint64(i) + 2, 200}
		for _, store := range []func(context.Context, string, content, storagedrivers.PutOptions) error{
			e.tryPut, e.tryStage,
		} {
			err := store(t.Context(), key, c, opts)
			keys := []string{other}
			if err == nil {
				keys = append(keys, key)
				e.has(t, key, c)
			} else {
				what := "storing " + key + " beside " + other
				fails(t, err, storagedrivers.ErrInvalidKey, what)
				never(t, err, what, fs.ErrNotExist, fs.ErrExist, storagedrivers.ErrUnavailable)
			}
			e.has(t, other, old)
			e.holds(t, keys...)
			succeeds(t, e.storage.Delete(t.Context(), key), "deleting "+key)
		}
	}
	e.has(t, other, old)
	e.holds(t, other)
}

func (e *env) tryPut(ctx context.Context, key string, c content, opts storagedrivers.PutOptions) error {
	_, err := e.storage.Put(ctx, key, newSource(c), opts)
	return err
}

// behind returns a driver that adds prefix to all keys. It is a Stager or Appender if d is one.
func behind(d storagedrivers.Driver, prefix string) storagedrivers.Driver {
	if prefix == "" {
		return d
	}
	p := prefixed{d, prefix}
	stager, ok := d.(storagedrivers.Stager)
	if !ok {
		return p
	}
	staging := prefixedStager{p, stager}
	if appender, ok := d.(storagedrivers.Appender); ok {
		return struct {
			prefixedStager
			prefixedAppender
		}{staging, prefixedAppender{appender, p}}
	}
	return staging
}

type prefixed struct {
	storagedrivers.Driver
	prefix string
}

func (p prefixed) strip(info storagedrivers.Info) storagedrivers.Info {
	info.Key = strings.TrimPrefix(info.Key, p.prefix)
	return info
}

func (p prefixed) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	if opts.Source != nil {
		source := *opts.Source
		source.Key = p.prefix + source.Key
		opts.Source = &source
	}
	info, err := p.Driver.Put(ctx, p.prefix+key, r, opts)
	return p.strip(info), err
}

func (p prefixed) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	body, info, err := p.Driver.Open(ctx, p.prefix+key, rng)
	return body, p.strip(info), err
}

func (p prefixed) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, err := p.Driver.Stat(ctx, p.prefix+key)
	return p.strip(info), err
}

func (p prefixed) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	return p.Driver.Delete(ctx, p.prefix+key, opts)
}

func (p prefixed) List(ctx context.Context, opts storagedrivers.ListOptions) (storagedrivers.Page, error) {
	opts.Prefix = p.prefix + opts.Prefix
	page, err := p.Driver.List(ctx, opts)
	for i, info := range page.Objects {
		page.Objects[i] = p.strip(info)
	}
	for i, folder := range page.Folders {
		page.Folders[i] = strings.TrimPrefix(folder, p.prefix)
	}
	return page, err
}

type prefixedStager struct {
	prefixed
	stager storagedrivers.Stager
}

func (p prefixedStager) Stage(ctx context.Context) (storagedrivers.Staged, error) {
	return p.stager.Stage(ctx)
}

func (p prefixedStager) StageCopy(ctx context.Context, source storagedrivers.Info) (storagedrivers.Staged, error) {
	source.Key = p.prefix + source.Key
	return p.stager.StageCopy(ctx, source)
}

func (p prefixedStager) Commit(ctx context.Context, changes []storagedrivers.Change) ([]storagedrivers.Info, error) {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Key = p.prefix + changes[i].Key
	}
	infos, err := p.stager.Commit(ctx, changes)
	for i, info := range infos {
		infos[i] = p.strip(info)
	}
	return infos, err
}

// prefixedAppender has only the methods of an Appender.
type prefixedAppender struct {
	appender storagedrivers.Appender
	driver   prefixed
}

func (p prefixedAppender) Append(ctx context.Context, key string, size int64) (storagedrivers.Appended, error) {
	return p.appender.Append(ctx, p.driver.prefix+key, size)
}
