package features_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// copyReport is the last line of `caddy media copy --json`.
type copyReport struct {
	Copied    tally `json:"copied"`
	Present   tally `json:"already_there"`
	Differing tally `json:"differing"`
	Failed    tally `json:"failed"`
	Seconds   float64
	Complete  bool
	failures  map[string]string // by key, from the lines before
}

type tally struct{ Items, Bytes int64 }

func report(t *testing.T, r site.CommandReply) copyReport {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	report := copyReport{failures: map[string]string{}}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &report); err != nil {
		t.Fatalf("%v\n%s\n%s", err, r.Out, r.Err)
	}
	for _, line := range lines[:len(lines)-1] {
		var failed struct{ Key, Error string }
		if err := json.Unmarshal([]byte(line), &failed); err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		report.failures[failed.Key] = failed.Error
	}
	return report
}

// fromTo are two local folders, $ROOT and the one beside it.
const fromTo = `
storage from {
	driver local $ROOT
}
storage to {
	driver local $ROOT-to
}
image_alias content {
	storage from
}
file_alias content {
	storage from
}
`

// putItems writes n items for the alias file/content into a folder, some with unsanitized names,
// and returns their keys in order.
func putItems(t *testing.T, root string, n int, size func(i int) int) []string {
	t.Helper()
	keys := make([]string, 0, n)
	for i := range n {
		name := fmt.Sprintf("file/content/%02d/item-%05d.%s", i%50, i, []string{"txt", "pdf", "bin"}[i%3])
		if i%100 == 0 {
			name = fmt.Sprintf("file/content/names/Žluťoučký kůň & %d #.txt", i)
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, sample.Described(uint64(i), size(i)), 0o600); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

// copiedItems counts the items in a folder that is the destination of a copy.
func copiedItems(t *testing.T, folder string) int {
	t.Helper()
	if !site.Exists(folder) {
		return 0
	}
	return len(slices.DeleteFunc(site.FilesBelow(t, folder), isHidden))
}

// mustBeSame expects two folders to hold the same files.
func mustBeSame(t *testing.T, from, to string) {
	t.Helper()
	names := site.FilesBelow(t, from)
	if others := site.FilesBelow(t, to); !slices.Equal(names, others) {
		t.Fatalf("there are %d files, want %d", len(others), len(names))
	}
	for _, name := range names {
		if !bytes.Equal(site.ReadFile(t, filepath.Join(from, name)), site.ReadFile(t, filepath.Join(to, name))) {
			t.Errorf("%s differs", name)
		}
	}
}

// TestCopyIsResumed: a copy is killed and run again. Nothing is missing, and copied items are not
// copied again.
func TestCopyIsResumed(t *testing.T) {
	t.Parallel()
	const items = 200
	c := site.NewChild(t)
	config, to := c.WriteConfig(fromTo), c.Root+"-to"
	putItems(t, c.Root, items, func(int) int { return 200 << 10 })
	args := []string{"copy", "from", "to", "--config", config, "--json", "--parallel", "3"}
	enough := 20 + rand.IntN(items/2)
	for !c.Begin(args...).KillWhen(func() bool { return copiedItems(t, to) >= enough }) {
		t.Log("it finished before it was killed; trying again")
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
	}
	before := generations(t, to)
	known := int64(copiedItems(t, to))

	got := report(t, c.Media(args...).Must(t))
	if got.Present.Items != known || got.Failed.Items != 0 || got.Present.Items+got.Copied.Items != items {
		t.Errorf("%d were in the destination, then: %+v", known, got)
	}
	after := generations(t, to)
	for name, generation := range before {
		if !isHidden(name) && after[name] != generation {
			t.Errorf("%s was copied twice", name)
		}
	}
	mustBeSame(t, c.Root, to)

	for _, flags := range [][]string{nil, {"--checksum"}, {"--overwrite"}} {
		again := report(t, c.Media(append(args, flags...)...).Must(t))
		if again.Present.Items != items || again.Copied.Items != 0 {
			t.Errorf("again with %q: %+v", flags, again)
		}
	}
}

// isHidden reports whether name is a temporary name of an item.
func isHidden(name string) bool { return strings.HasPrefix(path.Base(name), ".") }

// generations identifies the files of a folder, as opposed to later files with the same names.
func generations(t *testing.T, folder string) map[string]string {
	t.Helper()
	generations := map[string]string{}
	for _, name := range site.FilesBelow(t, folder) {
		stat, err := os.Stat(filepath.Join(folder, name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		generations[name] = fmt.Sprint(stat.ModTime().UnixNano(), stat.Size())
	}
	return generations
}

// TestCopyLeavesOthersAlone: without the option, different objects in the destination are not
// replaced. The other items are copied.
func TestCopyLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config, to := c.WriteConfig(fromTo), c.Root+"-to"
	keys := putItems(t, c.Root, 10, func(i int) int { return 100 + i })
	other := filepath.Join(to, keys[3])
	if err := os.MkdirAll(filepath.Dir(other), 0o755); err != nil {
		t.Fatal(err)
	}
	different := bytes.Repeat([]byte("x"), len(site.ReadFile(t, filepath.Join(c.Root, keys[3]))))
	if err := os.WriteFile(other, different, 0o600); err != nil {
		t.Fatal(err)
	}

	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(other, old, old); err != nil {
		t.Fatal(err)
	}

	dry := report(t, c.Media("copy", "from", "to", "--dry-run", "--json", "--config", config).Must(t))
	if dry.Copied.Items != 9 || dry.Present.Items != 1 || len(site.FilesBelow(t, to)) != 1 {
		t.Errorf("a dry run: %+v, and then there are %q", dry, site.FilesBelow(t, to))
	}
	r := c.Media("copy", "from", "to", "--json", "--config", config)
	got := report(t, r)
	if r.Code != 1 || got.Copied.Items != 9 || got.Failed.Items != 1 || got.failures[keys[3]] == "" || !got.Complete {
		t.Errorf("exit code %d: %+v", r.Code, got)
	}
	if !bytes.Equal(site.ReadFile(t, other), different) {
		t.Error("an existing object was replaced")
	}
	plain := c.Media("copy", "from", "to", "--config", config)
	if plain.Code != 1 || !strings.Contains(plain.Err, keys[3]+": ") || !regexp.MustCompile(`failed +1 items`).MatchString(plain.Out) {
		t.Errorf("for people: %+v", plain)
	}
	now := time.Now().Add(time.Hour)
	if err := os.Chtimes(other, now, now); err != nil {
		t.Fatal(err)
	}
	if got := report(t, c.Media("copy", "from", "to", "--json", "--config", config).Must(t)); got.Present.Items != 10 {
		t.Errorf("with a later time: %+v", got)
	}
	r = c.Media("copy", "from", "to", "--checksum", "--json", "--config", config)
	if got := report(t, r); r.Code != 1 || got.Failed.Items != 1 || got.Present.Items != 9 {
		t.Errorf("--checksum: %+v", got)
	}
	r = c.Media("copy", "from", "to", "--checksum", "--overwrite", "--json", "--config", config)
	if got := report(t, r.Must(t)); got.Copied.Items != 1 {
		t.Errorf("--overwrite: %+v", got)
	}
	mustBeSame(t, c.Root, to)
}

// TestCopyOfAliases copies the objects of the named aliases, variants included.
func TestCopyOfAliases(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config, to := c.WriteConfig(fromTo), c.Root+"-to"
	for _, name := range []string{"img/content/a.jpg", "img/content/a.jpg.webp", "img/contents/b.jpg", "file/content/c.txt"} {
		path := filepath.Join(c.Root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.Media("copy", "from", "to", "--alias", "img/content", "--config", config).Must(t)
	site.MustHaveOnly(t, to, "img/content/a.jpg", "img/content/a.jpg.webp")
	c.Media("copy", "from", "to", "--alias", "img/content", "--alias", "file/content", "--config", config).Must(t)
	site.MustHaveOnly(t, to, "img/content/a.jpg", "img/content/a.jpg.webp", "file/content/c.txt")
	c.Media("copy", "from", "to", "--verify", "size", "--config", config).Must(t)
	mustBeSame(t, c.Root, to)
}

// TestCopyIsRefused: mistakes are refused before anything is written.
func TestCopyIsRefused(t *testing.T) {
	c := newAwayChild(t)
	link := filepath.Join(c.Home, "link")
	if err := os.Symlink(c.Root, link); err != nil {
		t.Fatal(err)
	}
	config := c.WriteConfig(strings.ReplaceAll(fromTo, "storage to {", `storage linked {
	driver local `+link+`
}
storage inner {
	driver local $ROOT/inner
}
storage to {`) + `
storage away {
	driver ftp {env.AWAY} {
		user nobody
		password {env.SECRET}
		timeout 5s
	}
}
`)
	putItems(t, c.Root, 3, func(int) int { return 10 })
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"itself":           {[]string{"from", "from"}, "same backend"},
		"a link to itself": {[]string{"from", "linked"}, "same backend"},
		"into itself":      {[]string{"from", "inner"}, "same backend"},
		"out of itself":    {[]string{"inner", "from"}, "same backend"},
		"nowhere":          {[]string{"from", "nowhere"}, `no storage "nowhere"`},
		"away":             {[]string{"from", "away"}, `storage "away" cannot be used`},
		"no alias":         {[]string{"from", "to", "--alias", "img/none"}, `no alias "img/none"`},
		"no kind":          {[]string{"from", "to", "--alias", "content"}, `no alias "content"`},
		"foreign alias":    {[]string{"to", "linked", "--alias", "img/content"}, `uses storage "from"`},
		"verify":           {[]string{"from", "to", "--verify", "hope"}, "--verify"},
		"dry checksum":     {[]string{"from", "to", "--dry-run", "--checksum"}, "dry-run checksum"},
		"parallel":         {[]string{"from", "to", "--parallel", "0"}, "--parallel"},
		"one name":         {[]string{"from"}, "copy needs <from> and <to>"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.Media(append([]string{"copy", "--config", config}, test.args...)...)
			if r.Code != 1 || !strings.Contains(r.Err, test.want) || strings.Contains(r.Err, awaySecret) {
				t.Errorf("exit code %d\n%s\n%s", r.Code, r.Out, r.Err)
			}
		})
	}
	if files := site.FilesBelow(t, c.Root); len(files) != 3 {
		t.Errorf("the storage has %q now", files)
	}
}
