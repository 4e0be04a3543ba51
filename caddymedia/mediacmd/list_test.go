package mediacmd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// at is when the objects of these tests were stored.
var at = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.Local)

// stored creates objects of 1,536 bytes below root.
func stored(t *testing.T, root string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		path := filepath.Join(root, key)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 1536), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLs: a listing has one level or all, of a storage, an alias, a folder or an object.
func TestLs(t *testing.T) {
	config, root := configured(t)
	stored(t, root, "a.txt", "img/content/26-11/b.jpg", "img/content/26-11/b.jpg.webp", "img/content/26-11/21/c.jpg", "file/docs/d.pdf")
	const (
		folder = "       -  -                    "
		object = " 1.5 KiB  2026-11-20 12:00:00  "
	)
	for _, test := range []struct{ args, want string }{
		{"", "broken        storage (local)\nmain          storage (local)\nimg/content   alias in main\nfile/docs     alias in main\nfile/lost     alias in broken\n"},
		{"main", object + "a.txt\n" + folder + "file/\n" + folder + "img/\n"},
		{"main/img/", folder + "content/\n"},
		{"main/a.txt", object + "a.txt\n"},
		{"img/content", folder + "26-11/\n"},
		{"img/content/26-11", folder + "21/\n" + object + "b.jpg\n" + object + "b.jpg.webp\n"},
		{"img/content/26-11/b.jpg", object + "b.jpg\n"},
		{"-r img/content", object + "26-11/21/c.jpg\n" + object + "26-11/b.jpg\n" + object + "26-11/b.jpg.webp\n"},
		{"-q main", ""},
		{"img/content/none", "error: img/content/none: there is no such object or folder"},
		{"img/none", `error: there is no storage "img" in the configuration, nor is "img/none" an alias`},
		{"main/../x", "error: main/../x: invalid key"},
		{"file/lost", "error: file/lost: The root is not a folder"},
		{"a b", "error: ls needs at most one <storage or alias>[/<folder>]"},
	} {
		out, _, err := run(t, lsCommand(), append(strings.Fields(test.args), "--config", config)...)
		if err != nil {
			out = "error: " + err.Error()
		}
		if test.args == "" {
			out, test.want = strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(test.want), " ")
		}
		if wantsError := strings.HasPrefix(test.want, "error: "); !wantsError && out != test.want || wantsError && !strings.HasPrefix(out, test.want) {
			t.Errorf("%q:\n%s\nwant\n%s", test.args, out, test.want)
		}
	}
	out, _, err := run(t, lsCommand(), "img/content/26-11", "--json", "--config", config)
	var first, second entry
	lines := strings.Split(out, "\n")
	if err != nil || len(lines) != 4 || json.Unmarshal([]byte(lines[0]), &first) != nil || json.Unmarshal([]byte(lines[1]), &second) != nil {
		t.Fatalf("%s, %v", out, err)
	}
	if first != (entry{Path: "img/content/26-11/21/", Folder: true}) ||
		second.Path != "img/content/26-11/b.jpg" || second.Size != 1536 || !second.Modified.Equal(at) {
		t.Errorf("%+v, %+v", first, second)
	}
}

// TestDu: folders are counted down to the depth, and all in total.
func TestDu(t *testing.T) {
	config, root := configured(t)
	stored(t, root, "a.txt", "img/content/a.jpg", "img/content/a/b.jpg", "img/content/a/b/c.jpg", "img/content/a/c/d.jpg", "img/content/ab/e.jpg")
	row := func(objects int, size, name string) string {
		return fmt.Sprintf("%9d objects  %8s  %s\n", objects, size, name)
	}
	for _, test := range []struct{ args, want string }{
		{"main", row(5, "7.5 KiB", "img/") + row(6, "9.0 KiB", "total of main")},
		{"main -d 0", row(6, "9.0 KiB", "total of main")},
		{"img/content -d 2", row(1, "1.5 KiB", "a/b/") + row(1, "1.5 KiB", "a/c/") + row(3, "4.5 KiB", "a/") + row(1, "1.5 KiB", "ab/") +
			row(5, "7.5 KiB", "total of img/content")},
		{"img/content/a/b", row(1, "1.5 KiB", "total of img/content/a/b")},
		{"img/content/a.jpg", row(1, "1.5 KiB", "total of img/content/a.jpg")},
		{"file/docs", row(0, "0 B", "total of file/docs")},
		{"-q main", ""},
		{"img/content/a --json", `{"path":"img/content/a/b/","objects":1,"bytes":1536}` + "\n" + `{"path":"img/content/a/c/","objects":1,"bytes":1536}` + "\n" +
			`{"path":"img/content/a","objects":3,"bytes":4608,"total":true}` + "\n"},
		{"file/docs/none", "error: file/docs/none: there is no such object or folder"},
		{"main -d -1", "error: --depth must be 0 or more"},
		{"", "error: du needs <storage or alias>[/<folder>]"},
	} {
		out, _, err := run(t, duCommand(), append(strings.Fields(test.args), "--config", config)...)
		if err != nil {
			out = "error: " + err.Error()
		}
		if wantsError := strings.HasPrefix(test.want, "error: "); !wantsError && out != test.want || wantsError && !strings.HasPrefix(out, test.want) {
			t.Errorf("%q:\n%s\nwant\n%s", test.args, out, test.want)
		}
	}
}
