package mediacmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	_ "github.com/caddymedia/media/caddymedia/drivers/local"
	"github.com/caddymedia/media/caddymedia/internal/caddy/plugin"
	"github.com/caddymedia/media/caddymedia/internal/leaf/item"
)

// configured writes a configuration file with two storages in folders, main and broken, whose root
// is a file, and returns its name.
func configured(t *testing.T) (file string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "broken"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return configFile(t, folder, []string{"main", "broken"}, map[string]any{
		"trash": "14d",
		"image_aliases": map[string]any{
			"content": map[string]any{"storage": "main", "webp": map[string]any{}},
			"lost":    map[string]any{"storage": "broken", "webp": map[string]any{}},
		},
		"file_aliases": map[string]any{"docs": map[string]any{"storage": "main"}},
	})
}

// configFile writes a configuration file with storages in folders of their names, and with other
// options of the app. It returns the name of the file.
func configFile(t *testing.T, folder string, storages []string, app map[string]any) string {
	t.Helper()
	all := map[string]any{}
	for _, name := range storages {
		driver, err := json.Marshal(map[string]string{"name": "local", "root": filepath.Join(folder, name)})
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &plugin.Storage{DriverRaw: driver}
	}
	app["storages"], app["tokens"] = all, map[string]string{"store": "memory"}
	config, err := json.Marshal(map[string]any{"apps": map[string]any{"media": app}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "caddy.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

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
	}
}

// run runs a command and returns its output.
func run(t *testing.T, cmd *cobra.Command, args ...string) (out, messages string, err error) {
	t.Helper()
	var outs, errs bytes.Buffer
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(&outs)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return outs.String(), errs.String(), err
}

// TestReasons: a failure of a storage has its reason in plain words, before the error itself.
func TestReasons(t *testing.T) {
	config := configured(t)
	const reason = "The root is not a folder, or a part of its path is a file. Name a folder."
	for name, command := range map[string]struct {
		cmd     *cobra.Command
		args    []string
		json    string // in the document
		message string // in the messages, or in the error of a command that prints none
	}{
		"probe": {probeCommand(), []string{"broken"}, `","reason":"` + reason, "broken: find the folder: " + reason + "\n  check on storage"},
		"copy":  {copyCommand(), []string{"main", "broken"}, "", `storage "broken" cannot be used: ` + reason + "\n  check on storage"},
		"variants": {
			variantsCommand(), []string{"lost"}, `"stopped":"list on storage`, "Stopped: " + reason + "\n  ",
		},
		"trash": {trashCommand(), []string{"img/lost"}, `","reason":"` + reason, "img/lost: " + reason + "\n  list on storage"},
		"restore": {
			restoreCommand(), []string{"img/lost", "--folder", "/"}, `"stopped":"list on storage`, "Stopped: " + reason + "\n  ",
		},
		"sweep": {sweepCommand(), []string{"broken"}, `","reason":"` + reason, "broken: " + reason + "\n  "},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(command.args, "--config", config)
			_, messages, err := run(t, command.cmd, args...)
			if err == nil || !strings.Contains(messages+err.Error(), command.message) {
				t.Errorf("%q and error %v, want %q", messages, err, command.message)
			}
			out, _, err := run(t, command.cmd, append(args, "--json")...)
			if err == nil || !strings.Contains(out, command.json) {
				t.Errorf("%q and error %v, want %q", out, err, command.json)
			}
		})
	}
}

// TestAccountsAreIgnored: a command needs none of the variables with the hashes of accounts.
func TestAccountsAreIgnored(t *testing.T) { // not parallel: Caddy has globals
	config := configFile(t, t.TempDir(), []string{"main"}, map[string]any{
		"accounts": map[string]any{"shop": map[string]string{"password_hash": "{env.NOBODY_HAS_SET_THIS}"}},
	})
	out, _, err := run(t, probeCommand(), "--config", config)
	if err != nil || !strings.Contains(out, "main (local) can be used") {
		t.Errorf("%q and error %v", out, err)
	}
}

// TestWrongArguments: a command names the arguments that it needs, and those that are wrong.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		cmd  *cobra.Command
		args string
	}{
		"copy needs <from> and <to>": {copyCommand(), "main"},
		"variants needs <alias>":     {variantsCommand(), "a b"},
	} {
		if _, _, err := run(t, test.cmd, strings.Fields(test.args)...); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestPrefixes: the prefixes are sorted, and none lies within another.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prefixes   []string // of the aliases
		everything bool
		want       []string
	}{
		"no alias":     {nil, true, []string{""}},
		"one":          {[]string{"img/a"}, false, []string{"img/a/"}},
		"sorted":       {[]string{"img/b", "file/c", "img/a"}, false, []string{"file/c/", "img/a/", "img/b/"}},
		"twice":        {[]string{"img/a", "img/a"}, false, []string{"img/a/"}},
		"one within":   {[]string{"img/a/b", "img/a", "img/ab"}, false, []string{"img/a/", "img/ab/"}},
		"at the root":  {[]string{"img/a", ""}, false, []string{""}},
		"by the bytes": {[]string{"a", "a-b"}, false, []string{"a-b/", "a/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := make([]*item.Alias, len(test.prefixes))
			for i, prefix := range test.prefixes {
				all[i] = &item.Alias{Prefix: prefix}
			}
			if got := prefixesOf(all, test.everything, false); !slices.Equal(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// filesIn returns the paths of the files below root.
func filesIn(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestRenditionFolders: a sweep removes, and a copy leaves out, what lies in the folder of
// renditions of an alias. Items of other aliases may have similar keys.
func TestRenditionFolders(t *testing.T) { // not parallel: Caddy has globals
	for _, c := range []struct {
		name          string
		aliases       map[string][2]string // storage and prefix
		keys          []string             // in storage a
		swept, copied []string
	}{
		{
			name:    "of the aliases",
			aliases: map[string][2]string{"here": {"a", "img/here"}, "switched": {"b", "img/switched"}, "far": {"c", "img/far"}},
			keys: []string{
				"img/far@renditions/1/x.png/y.webp", "img/here/z.png", "img/here@renditions/1/x.png/y.webp",
				"img/other@renditions/1/x.png/y.webp", "img/switched@renditions/1/x.png/y.webp",
			},
			swept:  []string{"img/here@renditions/1/x.png/y.webp"},
			copied: []string{"img/far@renditions/1/x.png/y.webp", "img/here/z.png", "img/other@renditions/1/x.png/y.webp"},
		},
		{
			name:    "items at the root",
			aliases: map[string][2]string{"root": {"a", "/"}, "switched": {"b", "img"}},
			keys:    []string{"@renditions/1/x/a.png", "img@renditions/1/x/a.png"},
			copied:  []string{"@renditions/1/x/a.png", "img@renditions/1/x/a.png"},
		},
		{
			name:    "items in a folder",
			aliases: map[string][2]string{"outer": {"a", "img"}, "switched": {"b", "img/x"}},
			keys:    []string{"img/x@renditions/1/x/a.png", "img@renditions/1/x/a.png"},
			swept:   []string{"img@renditions/1/x/a.png"},
			copied:  []string{"img/x@renditions/1/x/a.png"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			images := map[string]any{}
			for name, alias := range c.aliases {
				images[name] = map[string]string{"storage": alias[0], "prefix": alias[1]}
			}
			config := configFile(t, folder, []string{"a", "b", "c"}, map[string]any{"image_aliases": images})
			a, b := filepath.Join(folder, "a"), filepath.Join(folder, "b")
			stored(t, a, c.keys...)
			if _, messages, err := run(t, copyCommand(), "a", "b", "--config", config); err != nil {
				t.Fatal(err, messages)
			}
			if got := filesIn(t, b); !slices.Equal(got, c.copied) {
				t.Errorf("copied %q, want %q", got, c.copied)
			}
			out, messages, err := run(t, sweepCommand(), "a", "--delete", "--older-than", "0s", "--config", config)
			if err != nil {
				t.Fatal(err, messages)
			}
			kept := slices.DeleteFunc(slices.Clone(c.keys), func(key string) bool { return slices.Contains(c.swept, key) })
			if got := filesIn(t, a); !slices.Equal(got, kept) || strings.Count(out, "  removed") != len(c.swept) {
				t.Errorf("the sweep leaves %q, want %q; it printed %q", got, kept, out)
			}
		})
	}
}

// TestCache: the command shows what the running Caddy says of its caches, and empties them.
func TestCache(t *testing.T) {
	t.Parallel()
	const filled = `{"entries": 5, "bytes": 1258291, "max_size": 10737418240, "hits": 4, "misses": 3, "in_use": true}`
	caches := `{"bucket": ` + filled + `, "other": {"max_size": 67108864}}`
	var emptied []string
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet && r.URL.Path == "/media/caches":
			_, _ = io.WriteString(w, caches)
		case r.Method == http.MethodDelete && r.URL.Path == "/media/caches/bucket":
			emptied = append(emptied, r.URL.Path)
			_, _ = io.WriteString(w, `{"max_size": 10737418240, "hits": 4, "misses": 3, "in_use": true}`)
		default:
			http.Error(w, `{"error":"The folder cannot be used."}`, http.StatusConflict)
		}
	}))
	t.Cleanup(admin.Close)
	for _, test := range []struct{ args, want string }{
		{"", "storage  size     of      entries  hits  misses\n" +
			"bucket   1.2 MiB  10 GiB  5        4     3\n" +
			"other    0 B      64 MiB  0        0     0  not in use, the log says why\n"},
		{"bucket --json", `{"storage":"bucket","entries":5,"bytes":1258291,"max_size":10737418240,"hits":4,"misses":3,"evicted":0,"damaged":0,"in_use":true}` + "\n"},
		{"bucket --empty", "bucket   0 B   10 GiB  0        4     3\n"},
		{"other --empty", "emptying the cache of other: asking the running Caddy: The folder cannot be used."},
		{"none", `no storage "none" of the running Caddy has a cache`},
	} {
		args := append(strings.Fields(test.args), "--address", strings.TrimPrefix(admin.URL, "http://"))
		out, messages, err := run(t, cacheCommand(), args...)
		if !strings.Contains(fmt.Sprint(out, messages, err), test.want) {
			t.Errorf("%q: %q, %q, %v; want %q", test.args, out, messages, err, test.want)
		}
	}
	if len(emptied) != 1 {
		t.Errorf("emptied %q, want one", emptied)
	}
	caches = `{}`
	if out, _, err := run(t, cacheCommand(), "--address", strings.TrimPrefix(admin.URL, "http://")); err != nil || out != "no storage has a cache\n" {
		t.Errorf("%q, error %v", out, err)
	}
}

// TestHealth: the command shows what the running Caddy says of its storages and tokens, and fails
// if one cannot be used.
func TestHealth(t *testing.T) {
	t.Parallel()
	const since = `"since": "2026-11-28T10:00:00Z"`
	for _, tt := range []struct {
		name, answer, args, out, messages string
		fails                             bool
	}{
		{
			"up", `{"storages": [{"name": "default", "health": {"state": "up", ` + since + `}}], "tokens": {"ok": true}}`,
			"", "default  up  2026-11-28T10:00:00Z\n", "", false,
		},
		{
			"first check", `{"storages": [{"name": "default", "health": {"state": "unknown"}}], "tokens": {"ok": true}}`,
			"", "default  unknown  \n", "", false,
		},
		{
			"storage down", `{"storages": [{"name": "bucket", "health": {"state": "down", ` + since + `, "message": "The key is wrong."}}], "tokens": {"ok": true}}`,
			"--quiet", "", "bucket: The key is wrong.\n", true,
		},
		{
			"tokens down", `{"storages": [], "tokens": {"ok": false, "message": "The token store cannot be used."}}`,
			"", "", "The token store cannot be used.\n", true,
		},
		{
			"JSON", `{"storages": [{"name": "default", "health": {"state": "down", ` + since + `, "message": "m", "detail": "d"}}], "tokens": {"ok": true}}`,
			"--json", `{"storages":[{"name":"default","health":{"state":"down","since":"2026-11-28T10:00:00Z","message":"m"}}],"tokens":{"ok":true,"message":""}}` + "\n", "", true,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/media/health" {
					t.Errorf("%s is asked", r.URL.Path)
				}
				_, _ = io.WriteString(w, tt.answer)
			}))
			t.Cleanup(admin.Close)
			out, messages, err := run(t, healthCommand(), append(strings.Fields(tt.args), "--address", strings.TrimPrefix(admin.URL, "http://"))...)
			if out != tt.out || messages != tt.messages || errors.Is(err, errReported) != tt.fails || (err != nil) != tt.fails {
				t.Errorf("%q, %q, %v", out, messages, err)
			}
		})
	}
	if _, _, err := run(t, healthCommand(), "--address", "localhost:1"); err == nil || !strings.Contains(err.Error(), "asking the running Caddy") {
		t.Errorf("without a Caddy: %v", err)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, versionCommand())
	if err != nil || out != plugin.Version()+"\n" {
		t.Errorf("%q, %v", out, err)
	}
}
