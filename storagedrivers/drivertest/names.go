package drivertest

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
