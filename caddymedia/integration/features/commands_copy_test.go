package features_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
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
	"github.com/caddymedia/media/storagedrivers/drivertest"
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
		site.PutFile(t, path, string(sample.Described(uint64(i), size(i))))
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

// mustBeSame expects two folders to hold the same files.
func mustBeSame(t *testing.T, from, to string) {
	t.Helper()
	names, others := site.FilesBelow(t, from), slices.DeleteFunc(site.FilesBelow(t, to), isHidden)
	if len(names) != len(others) {
		t.Fatalf("there are %d files, want %d", len(others), len(names))
	}
	for i, name := range names {
		if others[i] != name || sumOfFile(t, filepath.Join(from, name)) != sumOfFile(t, filepath.Join(to, name)) {
			t.Errorf("%s and %s differ", name, others[i])
		}
	}
}

func sumOfFile(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		t.Fatal(err)
	}
	return string(sum.Sum(nil))
}

// isHidden reports whether name is a temporary name of an item.
func isHidden(name string) bool { return strings.HasPrefix(path.Base(name), ".") }

// killedCopy is a copy of items that is killed on its way, and run again until it is complete.
type killedCopy struct {
	*site.Child
	from, to string
	items    int64
	copied   func() int64 // the items in the destination
	empty    func()       // empties the destination, so that a copy that was too fast is begun again; nil to fail then
	flags    []string
}

// run copies all items, and expects that none of them is copied twice or missing.
func (k killedCopy) run(t *testing.T) {
	t.Helper()
	args := append([]string{"copy", k.from, k.to, "--address", k.Admin, "--json"}, k.flags...)
	first := k.Begin(args...)
	for !first.KillWhen(func() bool { return k.copied() >= k.items/4 }) {
		if k.empty == nil {
			t.Fatalf("it was done before it was killed\n%s\n%s", first.Out.String(), first.Err.String())
		}
		k.empty()
		first = k.Begin(args...)
	}
	known := k.copied()

	second := k.Begin(args...)
	got := report(t, second.Wait().Must(t))
	if got.Present.Items < known || got.Failed.Items != 0 || got.Present.Items+got.Copied.Items != k.items || !got.Complete {
		t.Errorf("%s to %s: %d were in the destination, then %+v", k.from, k.to, known, got)
	}
	third := report(t, k.Media(args...).Must(t))
	if third.Present.Items != k.items || third.Present.Bytes != got.Present.Bytes+got.Copied.Bytes {
		t.Errorf("%s to %s, again: %+v", k.from, k.to, third)
	}
	for _, run := range []*site.Command{first, second} {
		if run.Peak > copyMemory {
			t.Errorf("%s to %s took %d MiB of memory", k.from, k.to, run.Peak>>20)
		}
	}
	t.Logf("%s to %s: %d copied until it was killed, then %d copied, %d already there in %.1f s; again in %.1f s; "+
		"at most %d and %d MiB of memory",
		k.from, k.to, known, got.Copied.Items, got.Present.Items, got.Seconds, third.Seconds, first.Peak>>20, second.Peak>>20)
}

// copyMemory is the largest memory of a copy, the program itself included.
const copyMemory = 200 << 20

// TestCopyThenSwitch moves an alias to another storage under a running Caddy. The uploaded items
// keep their addresses, and uploads between the two steps are copied by the same command.
func TestCopyThenSwitch(t *testing.T) {
	t.Parallel()
	const items = 200
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Account + fromTo)
	putItems(t, c.Root, items, func(int) int { return 200 << 10 })
	before, to := answers(t, c, 10), c.Root+"-to"
	killedCopy{
		Child: c, from: "from", to: "to", items: items, flags: []string{"--alias", "file/content", "--parallel", "3"},
		copied: func() int64 {
			return int64(len(slices.DeleteFunc(site.FilesBelow(t, to), isHidden)))
		},
		empty: func() {
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
		},
	}.run(t)
	client := c.HTTP1()
	client.MustPut(t, client.MustLogin(t), "content", "late.txt", []byte("late"))
	switchAlias(t, c, "to", before)
	late := c.Media("copy", "from", "to", "--alias", "file/content", "--address", c.Admin, "--json").Must(t)
	if got := report(t, late); got.Copied.Items != 1 || got.Present.Items != items {
		t.Errorf("after the switch: %+v", got)
	}
	mustBeSame(t, c.Root, to)
}

// TestCopyOfMuchInLittleMemory copies many small items and a large one from a folder to S3 and from
// there to SFTP. Then the alias is switched, and its addresses must answer as before.
// MEDIA_TEST_ITEMS sets the number of items, and MEDIA_TEST_MIB the size of the large one in MiB.
func TestCopyOfMuchInLittleMemory(t *testing.T) {
	if testing.Short() || drivertest.RaceDetector {
		t.Skip("it moves some gibibytes")
	}
	t.Parallel()
	items, size := site.Number(t, "MEDIA_TEST_ITEMS", 1000), int64(site.Number(t, "MEDIA_TEST_MIB", 512))<<20
	s3, sftp := site.StartS3(t), site.StartSFTP(t)
	c := site.NewChild(t)
	storage := func(name, driver string) string { return "storage " + name + " {\n" + driver + "\n}\n" }
	putItems(t, c.Root, items, func(i int) int { return 1 + i%3000 })
	putBig(t, filepath.Join(c.Root, "file/content/12/big.bin"), size) // a little before the item at which a copy is killed
	c.Start("tokens memory\n" +
		storage("local", "driver local $ROOT") + storage("s3", s3.Driver(s3.Address, "media", "")) +
		storage("sftp", sftp.Driver(sftp.Address, "media", "")) +
		"file_alias content {\nstorage local\n}\n")
	before := answers(t, c, 250)
	for _, step := range []struct{ from, to string }{{"local", "s3"}, {"s3", "sftp"}} {
		killedCopy{
			Child: c, from: step.from, to: step.to, items: int64(items) + 1, flags: []string{"--parallel", "4"},
			copied: func() int64 {
				return report(t, c.Media("copy", step.from, step.to, "--dry-run", "--json", "--address", c.Admin)).Present.Items
			},
		}.run(t)
		switchAlias(t, c, step.to, before)
	}
	mustBeSame(t, c.Root, filepath.Join(sftp.Folder, "media"))
}

// putBig writes a sparse file, so that it needs little space.
func putBig(t *testing.T, path string, size int64) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const piece = 1 << 20
	for i, offset := range []int64{0, size / 3, size / 2, size - piece} {
		if _, err := file.WriteAt(sample.Described(uint64(i), piece), offset); err != nil {
			t.Fatal(err)
		}
	}
}

// switchAlias sets another storage for file/content, and expects its addresses to answer as before.
func switchAlias(t *testing.T, c *site.Child, to string, before map[string]string) {
	t.Helper()
	status, body := c.Change(http.MethodPatch, "file_aliases/content/storage", fmt.Sprintf("%q", to))
	if status != http.StatusOK {
		t.Fatalf("switching the alias: %d %s", status, body)
	}
	for _, address := range slices.Sorted(maps.Keys(before)) {
		if got := answer(t, c, address); got != before[address] {
			t.Errorf("%s answers %q on %s, want %q", address, got, to, before[address])
		}
	}
}

// answers returns the site's answers for the big item and every each-th of the others, by address.
func answers(t *testing.T, c *site.Child, each int) map[string]string {
	t.Helper()
	found := map[string]string{}
	for i, name := range site.FilesBelow(t, c.Root) {
		if i%each == 0 || filepath.Base(name) == "big.bin" {
			address := (&url.URL{Path: "/static/" + name}).String()
			found[address] = answer(t, c, address)
		}
	}
	return found
}

// answer returns the status, the headers and the hash of the body of an answer.
func answer(t *testing.T, c *site.Child, address string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + c.Plain + address)
	if errors.Is(err, io.EOF) { // the server before a reload has accepted the connection, and ended
		r, err = client.Get("http://" + c.Plain + address)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", address, r.Status)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s %s %d %x",
		r.StatusCode, r.Header.Get("Content-Type"), r.Header.Get("Cache-Control"), n, sum.Sum(nil))
}

// TestCopyLeavesOthersAlone: without the option, different objects in the destination are not
// replaced. The other items of the named aliases are copied, variants included.
func TestCopyLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config, to := c.WriteConfig(fromTo), c.Root+"-to"
	keys := putItems(t, c.Root, 10, func(i int) int { return 100 + i })
	for _, name := range []string{"img/content/a.jpg", "img/content/a.jpg.webp", "img/contents/b.jpg"} {
		site.PutFile(t, filepath.Join(c.Root, name), name)
	}
	site.PutFile(t, filepath.Join(to, keys[3]), strings.Repeat("x", len(site.ReadFile(t, filepath.Join(c.Root, keys[3])))))
	since := func(stored time.Time) {
		t.Helper()
		if err := os.Chtimes(filepath.Join(to, keys[3]), stored, stored); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want copyReport, args ...string) {
		t.Helper()
		r := c.Media(append([]string{"copy", "from", "to", "--alias", "file/content", "--json", "--config", config}, args...)...)
		got := report(t, r)
		if got.Copied.Items != want.Copied.Items || got.Present.Items != want.Present.Items || got.Failed.Items != want.Failed.Items ||
			!got.Complete || (r.Code == 1) != (want.Failed.Items > 0) || (got.failures[keys[3]] == "") != (want.Failed.Items == 0) {
			t.Errorf("%q: exit code %d, %+v, want %+v", args, r.Code, got, want)
		}
	}
	since(time.Now().Add(-time.Hour))
	run(copyReport{Copied: tally{Items: 9}, Present: tally{Items: 1}}, "--dry-run")
	site.MustHaveOnly(t, to, keys[3])
	run(copyReport{Copied: tally{Items: 9}, Failed: tally{Items: 1}})
	plain := c.Media("copy", "from", "to", "--alias", "file/content", "--config", config)
	if plain.Code != 1 || !strings.Contains(plain.Err, keys[3]+": ") || !regexp.MustCompile(`failed +1 objects`).MatchString(plain.Out) {
		t.Errorf("for people: %+v", plain)
	}
	since(time.Now().Add(time.Hour))
	run(copyReport{Present: tally{Items: 10}})
	run(copyReport{Present: tally{Items: 9}, Failed: tally{Items: 1}}, "--checksum")
	if b := site.ReadFile(t, filepath.Join(to, keys[3])); strings.Trim(string(b), "x") != "" {
		t.Error("an existing object was replaced")
	}
	run(copyReport{Present: tally{Items: 9}, Copied: tally{Items: 1}}, "--checksum", "--overwrite")
	run(copyReport{Present: tally{Items: 10}, Copied: tally{Items: 2}}, "--alias", "img/content")
	site.MustHaveOnly(t, to, append(keys, "img/content/a.jpg", "img/content/a.jpg.webp")...)
	c.Media("copy", "from", "to", "--verify", "size", "--config", config).Must(t)
	mustBeSame(t, c.Root, to)
}

// TestCopyIsRefused: mistakes are refused before anything is written.
func TestCopyIsRefused(t *testing.T) { //nolint:tparallel // its subtests are runs of a command
	t.Parallel()
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
		"nowhere":          {[]string{"from", "nowhere"}, `no storage "nowhere"`},
		"away":             {[]string{"from", "away"}, `storage "away" cannot be used`},
		"no alias":         {[]string{"from", "to", "--alias", "img/none"}, `no alias "img/none"`},
		"foreign alias":    {[]string{"to", "linked", "--alias", "img/content"}, `uses storage "from"`},
		"verify":           {[]string{"from", "to", "--verify", "hope"}, "--verify"},
		"dry checksum":     {[]string{"from", "to", "--dry-run", "--checksum"}, "dry-run checksum"},
		"parallel":         {[]string{"from", "to", "--parallel", "0"}, "--parallel"},
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

// TestRenditionCommands makes the renditions of stored pictures, removes outdated ones, and leaves
// them out of a copy.
func TestRenditionCommands(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config := func(lines string) string {
		return picturesWith(lines) + "storage other {\ndriver local $ROOT/../other\n}\n"
	}
	c.Start(config(""))
	client := c.HTTP1()
	token := client.MustLogin(t)
	for _, name := range []string{"a.jpg", "b.jpg"} {
		answer, err := client.Send(t.Context(), token, "image", strings.NewReader(site.ImageForm(name, sample.PhotoJPEG(64, 48))))
		if err != nil || answer.Status != http.StatusOK {
			t.Fatal(answer, err)
		}
	}
	const renditions = "rendition soon {\nwidth 30\neager on\n}\nrendition later 20x20 cover\n"
	c.MustLoad(config(renditions))
	for _, step := range []struct {
		args []string
		made int
	}{
		{[]string{"--dry-run"}, 2}, {nil, 2}, {nil, 0}, {[]string{"--all", "--dry-run"}, 2}, {[]string{"--all"}, 2}, {[]string{"--all"}, 0},
	} {
		lines, totals := variants(c, 0, append([]string{"content"}, step.args...)...)
		if totals.Renditions != step.made || totals.Made != 0 || totals.Images != 2 || lines["a.jpg"].Renditions != step.made/2 {
			t.Errorf("%q: %+v, %+v, want %d renditions", step.args, lines, totals, step.made)
		}
	}
	if names, _ := sweep(c, "--older-than", "0s"); names != nil {
		t.Errorf("current renditions are outdated: %q", names)
	}

	c.MustLoad(config(strings.Replace(renditions, "30", "31", 1)))
	names, totals := sweep(c, "--older-than", "0s", "--delete")
	slices.Sort(names)
	if len(names) != 2 || totals.Renditions != 2 || totals.Removed != 2.0 ||
		!strings.HasPrefix(names[0], "keep: rendition pictures@renditions/1/a.jpg/soon.") {
		t.Errorf("outdated: %q, %+v", names, totals)
	}
	if code, out, messages := shell(c, "copy", "--address", c.Admin, "keep", "other"); code != 0 {
		t.Errorf("copy: exit code %d with %q and %q", code, out, messages)
	}
	site.MustHaveOnly(t, filepath.Join(filepath.Dir(c.Root), "other"), "pictures/a.jpg", "pictures/b.jpg")
}
