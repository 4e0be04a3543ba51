package features_test

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
	"github.com/caddymedia/media/caddymedia/internal/test/testcaddy"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// shell runs a command to its end.
func shell(c *site.Child, args ...string) (code int, out, messages string) {
	c.T.Helper()
	r := c.Media(args...)
	return r.Code, r.Out, r.Err
}

// linesOf decodes JSON lines.
func linesOf[T any](t *testing.T, out string) []T {
	t.Helper()
	var all []T
	for line := range strings.Lines(out) {
		var one T
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, one)
	}
	return all
}

// localFile creates a file in the home of the child and returns its path.
func localFile(c *site.Child, name, content string) string {
	c.T.Helper()
	path := filepath.Join(c.Home, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.T.Fatal(err)
	}
	return path
}

// twoStorages has a usable and an unusable storage.
const twoStorages = `
storage good {
	driver local $ROOT
}
storage away {
	driver sftp {env.AWAY} {
		user nobody
		password {env.SECRET}
		insecure_skip_host_key on
		timeout 5s
	}
}
file_alias content {
	storage good
}
`

// awaySecret is the password of the unusable storage.
const awaySecret = "the-secret-of-nobody"

func newAwayChild(t *testing.T) *site.Child {
	t.Helper()
	return site.NewChild(t, "AWAY="+servers.FreeAddress(t), "SECRET="+awaySecret)
}

// TestProbeCommand probes the storages of a file: a table, failures only, or a JSON document with
// all steps.
func TestProbeCommand(t *testing.T) {
	t.Parallel()
	c := newAwayChild(t)
	config := c.WriteConfig(twoStorages)

	all := c.Media("probe", "--config", config)
	if all.Code != 1 || !strings.Contains(all.Out, "good (local) can be used") ||
		!strings.Contains(all.Out, "away (sftp) CANNOT") || !strings.Contains(all.Out, "refuse a second object") ||
		strings.Index(all.Out, "away (sftp)") > strings.Index(all.Out, "good (local)") {
		t.Errorf("exit code %d\n%s\n%s", all.Code, all.Out, all.Err)
	}
	if !strings.Contains(all.Err, "away: connect, log in and find the folder: ") || !strings.Contains(all.Err, "connection refused") ||
		strings.Contains(all.Out+all.Err, awaySecret) {
		t.Errorf("the failure is reported as %q", all.Err)
	}
	if quiet := c.Media("probe", "--quiet", "--config", config); quiet.Code != 1 || quiet.Out != "" || quiet.Err != all.Err {
		t.Errorf("--quiet: %+v", quiet)
	}
	if none := c.Media("probe", "nowhere", "--config", config); none.Code != 1 || !strings.Contains(none.Err, `no storage "nowhere"`) {
		t.Errorf("an unknown storage: %+v", none)
	}
	r := c.Media("probe", "--json", "--config", config)
	var got struct {
		OK       bool
		Storages []struct {
			Name, Driver string
			OK           bool
			Steps        []struct {
				Name, Error string
				OK          bool
			}
			Features map[string]any
		}
	}
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil || r.Code != 1 || r.Err != "" || got.OK || len(got.Storages) != 2 {
		t.Fatalf("%v: %+v", err, r)
	}
	away, good := got.Storages[0], got.Storages[1]
	if away.Name != "away" || away.OK || len(away.Steps) != 1 || away.Steps[0].Error == "" {
		t.Errorf("%+v", away)
	}
	if good.Name != "good" || good.Driver != "local" || !good.OK || len(good.Steps) != 9 || good.Features["create"] != "atomic" {
		t.Errorf("%+v", good)
	}
	for _, folder := range []string{"config", "data"} { // of saved configurations, and of tokens
		if _, err := os.Stat(filepath.Join(c.Home, folder)); !os.IsNotExist(err) {
			t.Errorf("the folder %s was made: %v", folder, err)
		}
	}
}

// TestUnknownCommand is an error, and a missing command prints a list.
func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	if r := c.Media("prob"); r.Code != 1 || !strings.Contains(r.Err, `unknown command "prob"`) {
		t.Errorf("%+v", r)
	}
	if r := c.Media().Must(t); !strings.Contains(r.Out, "probe") || !strings.Contains(r.Out, "copy") {
		t.Errorf("%+v", r)
	}
}

// TestProbeOfRunningCaddy: the command reads the configuration of a running Caddy and does not open
// its locked token file.
func TestProbeOfRunningCaddy(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(site.OnBolt)
	client := c.HTTP1()
	token := client.MustLogin(t)
	if r := c.Media("probe", "--address", c.Admin).Must(t); !strings.Contains(r.Out, "keep (local) can be used") || r.Err != "" {
		t.Errorf("%+v", r)
	}
	if r, _ := client.Put(t, token, "content", "after.bin", []byte("x")); r.Status != http.StatusOK {
		t.Errorf("an upload after the probe: %v", r)
	}
	site.MustHaveOnly(t, c.Root, slices.DeleteFunc(site.FilesBelow(t, c.Root), func(name string) bool {
		return strings.Contains(name, "media-probe")
	})...)
	c.Stop()
	if r := c.Media("probe", "--address", c.Admin); r.Code != 1 || !strings.Contains(r.Err, "--config") {
		t.Errorf("of a Caddy that does not run: %+v", r)
	}
}

// TestProbeOverSocket: the admin API may be a Unix socket.
func TestProbeOverSocket(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Admin = "unix/" + filepath.Join(testcaddy.SocketFolder(t), "admin.sock")
	c.Start("tokens memory\n" + site.Account + site.Binaries)
	c.Media("probe", "--address", c.Admin).Must(t)
}

// sweepLine is a line of `caddy media sweep --json`, that of a leftover or the last one.
type sweepLine struct {
	Storage, Kind, Name, Message string
	Size                         int64
	Modified                     time.Time
	Removed                      any // whether, or how many

	DryRun                      bool `json:"dry_run"`
	Variants, Leftovers, Failed int
	Renditions, Uploads         int
	Bytes                       int64
}

// sweep runs the command and returns the found names and the last line.
func sweep(c *site.Child, args ...string) (names []string, totals sweepLine) {
	c.T.Helper()
	if !slices.Contains(args, "--config") {
		args = append(args, "--address", c.Admin)
	}
	code, out, messages := shell(c, append([]string{"sweep", "--json"}, args...)...)
	lines := linesOf[sweepLine](c.T, out)
	if code != 0 || len(lines) == 0 {
		c.T.Fatalf("%q: exit code %d with %q and %q", args, code, out, messages)
	}
	for _, line := range lines[:len(lines)-1] {
		names = append(names, line.Storage+": "+line.Kind+" "+line.Name)
	}
	return names, lines[len(lines)-1]
}

// TestSweepCommand: variants without pictures and leftovers of a killed upload are found, and
// removed only with --delete. A storage that cannot be swept does not stop the others.
func TestSweepCommand(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config := site.ImageConfig("") + "storage other {\ndriver local $ROOT/../other\n}\n"
	c.Start(config)
	client := c.HTTP1()
	answer, err := client.Send(t.Context(), client.MustLogin(t), "image", strings.NewReader(site.ImageForm("kept.jpg", sample.PhotoJPEG(64, 48))))
	if err != nil || answer.Status != http.StatusOK {
		t.Fatal(answer, err)
	}
	old := time.Now().Add(-48 * time.Hour)
	aged := func(name, content string) string {
		t.Helper()
		path := filepath.Join(c.Root, name)
		site.PutFile(t, path, content)
		if err := errors.Join(os.Chtimes(path, old, old), os.Chtimes(filepath.Dir(path), old, old)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	gone := []string{aged("pictures/sub/gone.jpg.webp", "12345"), aged(".media-tmp-LEFT/1", "123")}
	stays := []string{
		aged("pictures/a.webp", "x"), aged("pictures/there.png", "x"), aged("pictures/there.png.webp", "x"), aged("small/a.jpg.webp", "x"),
		filepath.Join(c.Root, "pictures", "kept.jpg"), filepath.Join(c.Root, "pictures", "kept.jpg.webp"),
	}
	young := aged("pictures/young.png.webp", "123")
	if err := os.Chtimes(young, time.Time{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	wantThere := func(want bool, paths ...string) {
		t.Helper()
		for _, path := range paths {
			if site.Exists(path) != want {
				t.Errorf("%s: want it there: %t", path, want)
			}
		}
	}
	wantFound := func(removed float64, args ...string) {
		t.Helper()
		names, totals := sweep(c, args...)
		slices.Sort(names)
		if want := []string{"keep: leftover .media-tmp-LEFT", "keep: variant pictures/sub/gone.jpg.webp"}; !slices.Equal(names, want) {
			t.Errorf("%q: found %q, want %q", args, names, want)
		}
		if totals.Variants != 1 || totals.Leftovers != 1 || totals.Bytes != 8 || totals.DryRun != (removed == 0) || totals.Removed != removed || totals.Failed != 0 {
			t.Errorf("%q: %+v", args, totals)
		}
	}

	wantFound(0)
	for _, args := range [][]string{{"other"}, {"--older-than", "72h"}, {"--older-than", "72h", "--delete"}} {
		if names, _ := sweep(c, args...); names != nil {
			t.Errorf("%q: found %q", args, names)
		}
	}
	wantThere(true, append(append(stays, gone...), young)...)
	wantFound(2, "--delete", "keep")
	wantThere(false, gone...)
	wantThere(true, append(stays, young)...)

	code, out, messages := shell(c, "sweep", "--address", c.Admin, "--older-than", "0s")
	if code != 0 || messages != "" || !strings.Contains(out, "pictures/young.png.webp") || !strings.Contains(out, "--delete") {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
	if code, out, messages = shell(c, "sweep", "--address", c.Admin, "-q"); code != 0 || out+messages != "" {
		t.Errorf("quiet: exit code %d with %q and %q", code, out, messages)
	}
	for want, args := range map[string][]string{
		`no storage "none"`:    {"none"},
		"must not be negative": {"--older-than", "-1h"},
	} {
		code, out, messages := shell(c, append([]string{"sweep", "--address", c.Admin}, args...)...)
		if code != 1 || !strings.Contains(messages, want) {
			t.Errorf("%q: exit code %d with %q and %q, want %q", args, code, out, messages, want)
		}
	}
	broken := localFile(c, "broken.caddyfile", c.Caddyfile(config+"storage broken {\ndriver local "+localFile(c, "file", "")+"\n}\n"))
	code, out, messages = shell(c, "sweep", "--config", broken, "--adapter", "caddyfile", "--older-than", "0s", "--delete")
	if code != 1 || !strings.Contains(out, "pictures/young.png.webp") || !strings.HasPrefix(messages, "broken: ") {
		t.Errorf("with a broken storage: exit code %d with %q and %q", code, out, messages)
	}
	wantThere(false, young)
	wantThere(true, stays...)
}

// TestSweepCommandResumable: expired resumable uploads, the results of finished ones and data
// without an upload are shown, and removed with --delete. Others stay.
func TestSweepCommandResumable(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	expires := func(after string) (media string) {
		return "tokens memory\n" + site.Account + site.LocalDefault + "file_alias content {\nextensions bin\n}\nresumable {\nexpires " + after + "\n}\n"
	}
	c.Start(expires("1h"))
	client := c.HTTP1()
	token := client.MustLogin(t)
	var last string
	for _, sent := range []int{0, 2, 1, 1} { // one is finished
		u := &site.Tus{HTTP: client.Client, Base: client.Base, Token: token}
		err := u.Create(t.Context(), 2, "alias", "content", "filename", "x.bin", "sub_folder", "/")
		if err := errors.Join(err, u.Patch(t.Context(), 0, strings.NewReader("xx"[:sent]), int64(sent))); err != nil {
			t.Fatal(err)
		}
		last = path.Base(u.Location)
	}
	c.Stop()
	for _, name := range site.FilesBelow(t, c.Root) {
		if strings.Contains(name, "/open/") && strings.HasSuffix(name, last) {
			if err := os.Remove(filepath.Join(c.Root, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		expires                   string
		args                      []string
		uploads, leftovers, files int // files that remain
	}{
		{"1h", nil, 0, 0, 7},
		{"1h", []string{"--older-than", "0s"}, 0, 1, 7},
		{"1h", []string{"--older-than", "0s", "--delete"}, 0, 1, 6},
		{"1ms", []string{"--older-than", "1h", "--delete"}, 0, 0, 6},
		{"1ms", []string{"--older-than", "0s"}, 3, 0, 6},
		{"1ms", []string{"--older-than", "0s", "--delete"}, 3, 0, 1},
	} {
		config := localFile(c, "sweep.caddyfile", c.Caddyfile(expires(tt.expires)))
		names, totals := sweep(c, append([]string{"--config", config, "--adapter", "caddyfile"}, tt.args...)...)
		files := slices.DeleteFunc(site.FilesBelow(t, c.Root), func(name string) bool { return strings.HasPrefix(name, ".") })
		if totals.Uploads != tt.uploads || totals.Leftovers != tt.leftovers || totals.Failed != 0 || len(files) != tt.files {
			t.Errorf("%+v: found %q, %+v; files %q", tt, names, totals, files)
		}
	}
}

// TestTrashCommands: a command restores what the running Caddy has deleted, with the variant and
// the eager rendition, and Caddy serves it. Another one shows and empties the trash.
func TestTrashCommands(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(picturesWith("trash 1h\nwebp\nrendition soon {\nwidth 30\neager on\n}"))
	client, photo := c.HTTP1(), sample.PhotoJPEG(64, 48)
	answer, err := client.Send(t.Context(), client.MustLogin(t), "image", strings.NewReader(site.ImageForm("a.jpg", photo)))
	if err != nil || answer.Status != http.StatusOK {
		t.Fatal(answer, err)
	}
	address := "http://" + c.Plain + "/static/img/content/a.jpg"
	before := len(site.FilesBelow(t, c.Root))
	if status, body := c.Ask(http.MethodDelete, "/media/items/img/content/a.jpg", ""); status != http.StatusOK {
		t.Fatal(status, body)
	}
	if got := client.FetchURL(t, address); got.Status == http.StatusOK {
		t.Error("the item is not deleted")
	}

	if code, out, messages := shell(c, "trash", "--address", c.Admin); code != 0 || !strings.HasPrefix(out, "img/content  a.jpg  ") {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
	for range 2 { // the second one changes nothing
		code, out, messages := shell(c, "restore", "img/content", "--removed-within", "1h", "--address", c.Admin)
		if code != 0 || !strings.HasPrefix(out, "restored  1 items") || messages != "" {
			t.Errorf("exit code %d with %q and %q", code, out, messages)
		}
		if got := client.FetchURL(t, address); got.Status != http.StatusOK || got.Body != photo {
			t.Errorf("the restored item: %d", got.Status)
		}
		if files := site.FilesBelow(t, c.Root); len(files) != before+1 { // and the entry in the trash
			t.Errorf("there are %q, before %d", files, before)
		}
	}
	if code, out, messages := shell(c, "trash", "img/content", "--purge", "--address", c.Admin); code != 0 || !strings.HasSuffix(out, "1 purged, 0 failed\n") {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
	if files := site.FilesBelow(t, c.Root); len(files) != before {
		t.Errorf("there are %q, before %d", files, before)
	}
}

// variantLine is a line of `caddy media variants --json`, that of a picture or the last one.
type variantLine struct {
	Filename, Before, Result, Message string
	Size                              int64
	Renditions                        int

	Alias                               string
	DryRun                              bool `json:"dry_run"`
	Current, Made, Larger, None, Failed int
	Images                              int `json:"images"`
	Complete                            bool
	Stopped                             string
}

// variants runs the command and returns the lines of the pictures by their names, and the last one.
func variants(c *site.Child, wantCode int, args ...string) (pictures map[string]variantLine, totals variantLine) {
	c.T.Helper()
	code, out, messages := shell(c, append([]string{"variants", "--address", c.Admin, "--json"}, args...)...)
	lines := linesOf[variantLine](c.T, out)
	if code != wantCode || len(lines) == 0 {
		c.T.Fatalf("%q: exit code %d with %q and %q, want %d", args, code, out, messages, wantCode)
	}
	pictures = map[string]variantLine{}
	for _, line := range lines[:len(lines)-1] {
		pictures[line.Filename] = line
	}
	return pictures, lines[len(lines)-1]
}

// picturesWith returns a configuration for pictures with additional lines of the alias.
func picturesWith(lines string) string {
	return strings.Replace(site.ImageConfig(""), "webp 80 small", lines, 1)
}

// TestVariantsCommand makes the variants of pictures that were stored before the alias had
// variants. Later it makes only missing and stale ones.
func TestVariantsCommand(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(picturesWith(""))
	files := map[string]string{
		"photo.jpg": sample.PhotoJPEG(64, 48), "drawing.png": sample.EncodePNG(t, sample.Quartered(65, 48)), "moving.gif": sample.MovingGIF(t, 4),
		"wide.png": sample.PNG(t, 16_384, 1), "icon.svg": `<svg xmlns="http://www.w3.org/2000/svg"/>`,
	}
	client := c.HTTP1()
	token := client.MustLogin(t)
	for name, file := range files {
		if answer, err := client.Send(t.Context(), token, "image", strings.NewReader(site.ImageForm(name, file))); err != nil || answer.Status != http.StatusOK {
			t.Fatal(answer, err)
		}
	}
	folder := filepath.Join(c.Root, "pictures")
	if code, _, messages := shell(c, "variants", "--address", c.Admin, "content"); code != 1 || !strings.Contains(messages, "add webp or rendition") {
		t.Errorf("without webp: exit code %d with %q", code, messages)
	}
	c.MustLoad(picturesWith("webp\nnegotiate on"))
	damaged := filepath.Join(folder, "damaged.png")
	if err := os.WriteFile(damaged, []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}

	lines, totals := variants(c, 0, "content", "--dry-run")
	if len(lines) != 5 || lines["photo.jpg"].Before != "missing" || totals.Made != 5 || !totals.DryRun || !totals.Complete {
		t.Errorf("dry run: %+v, %+v", lines, totals)
	}
	wantVariants(t, folder)

	lines, totals = variants(c, 1, "img/content")
	want := variantLine{Alias: "img/content", Images: 5, Made: 3, Larger: totals.Larger, None: 1, Failed: 1, Complete: true}
	if totals != want || lines["wide.png"].Result != "none" || lines["wide.png"].Message == "" || lines["damaged.png"].Result != "failed" {
		t.Errorf("%+v, %+v, want %+v", lines, totals, want)
	}
	wantVariants(t, folder, "photo.jpg", "drawing.png", "moving.gif")
	if f := sample.WebPFeatures(t, string(site.ReadFile(t, filepath.Join(folder, "moving.gif.webp")))); f.FrameCount != 4 {
		t.Errorf("the variant of moving.gif has %+v", f)
	}
	address := "http://" + c.Plain + "/static/img/content/photo.jpg"
	if got := client.FetchURL(t, address, "Accept", "image/webp"); got.Header.Get("Content-Type") != "image/webp" {
		t.Errorf("the variant is not negotiated: %d %v", got.Status, got.Header)
	}

	if err := os.Remove(damaged); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(folder, "photo.jpg"), later, later); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(folder, "moving.gif.webp")); err != nil {
		t.Fatal(err)
	}
	lines, totals = variants(c, 0, "content")
	befores := map[string]string{}
	for name, line := range lines {
		befores[name] = line.Before
	}
	wantBefores := map[string]string{"photo.jpg": "stale", "moving.gif": "missing", "wide.png": "missing"}
	if !maps.Equal(befores, wantBefores) || totals.Made != 2 || totals.Current != 1 {
		t.Errorf("%+v, %+v", lines, totals)
	}
	wantVariants(t, folder, "photo.jpg", "drawing.png", "moving.gif")

	fine := string(site.ReadFile(t, filepath.Join(folder, "photo.jpg.webp")))
	c.MustLoad(picturesWith("webp 1"))
	if _, totals = variants(c, 0, "content", "--all"); totals.Made != 3 {
		t.Errorf("all: %+v", totals)
	}
	if coarse := string(site.ReadFile(t, filepath.Join(folder, "photo.jpg.webp"))); len(coarse) >= len(fine) {
		t.Errorf("the variant has %d bytes, as before %d", len(coarse), len(fine))
	}
}

// wantVariants expects the variants of these pictures in a folder, and no others.
func wantVariants(t *testing.T, folder string, pictures ...string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*.webp"))
	if err != nil || len(found) != len(pictures) {
		t.Errorf("variants %q, %v, want those of %q", found, err, pictures)
	}
	for _, name := range pictures {
		sample.WebPFeatures(t, string(site.ReadFile(t, filepath.Join(folder, name+".webp"))))
	}
}

// TestVariantsCommandFile: the command works with a configuration file, with small limits on
// workers and queue, and explains impossible requests.
func TestVariantsCommandFile(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config := c.WriteConfig(site.ImageConfig("image_workers 2\nimage_queue 1\nimage_wait 1ms\nimage_memory 3MiB"))
	const pictures = 20
	for i := range pictures {
		site.PutFile(t, filepath.Join(c.Root, "pictures", "sub folder", strconv.Itoa(i)+".jpg"), sample.PhotoJPEG(400, 300+i))
	}
	code, out, messages := shell(c, "variants", "content", "--config", config, "--dry-run")
	if code != 0 || !strings.Contains(out, "sub folder/0.jpg: missing\n") || !strings.Contains(out, "would be made") {
		t.Errorf("dry run: exit code %d with %q and %q", code, out, messages)
	}
	if strings.ContainsAny(out+messages, "\x1b\r█") {
		t.Errorf("a progress bar without a terminal: %q", out+messages)
	}
	code, out, messages = shell(c, "variants", "content", "--config", config, "--json")
	lines := linesOf[variantLine](t, out)
	// An encoder without cgo may need more memory than available for one of them.
	if totals := lines[len(lines)-1]; code != 0 || totals.Made+totals.None != pictures {
		t.Errorf("exit code %d with %+v and %q", code, totals, messages)
	}
	for want, args := range map[string][]string{
		`no image alias "none"`:     {"none", "--config", config},
		`no alias "film/content"`:   {"film/content", "--config", config},
		"only images have variants": {"file/small", "--config", config},
		"no such file or directory": {"content", "--config", c.Home + "/none"},
	} {
		code, out, messages := shell(c, append([]string{"variants"}, args...)...)
		if code != 1 || !strings.Contains(messages, want) {
			t.Errorf("%q: exit code %d with %q and %q, want %q", args, code, out, messages, want)
		}
	}
}
