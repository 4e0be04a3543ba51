package features_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

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
	code, out, messages := shell(c, nil, append([]string{"sweep", "--json"}, args...)...)
	lines := linesOf[sweepLine](c.T, out)
	if code != 0 || len(lines) == 0 {
		c.T.Fatalf("%q: exit code %d with %q and %q", args, code, out, messages)
	}
	for _, line := range lines[:len(lines)-1] {
		names = append(names, line.Storage+": "+line.Kind+" "+line.Name)
	}
	return names, lines[len(lines)-1]
}

// TestSweepCommand: variants without pictures and leftovers of uploads are found. Only --remove
// removes them.
func TestSweepCommand(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config := site.ImageConfig("") + "storage other {\ndriver local $ROOT/../other\n}\n"
	c.Start(config)
	client := c.HTTP1()
	answer, err := client.SendImage(t.Context(), client.MustLogin(t), strings.NewReader(site.ImageForm("kept.jpg", sample.PhotoJPEG(64, 48))))
	if err != nil || answer.Status != http.StatusOK {
		t.Fatal(answer, err)
	}
	old := time.Now().Add(-48 * time.Hour)
	aged := func(name, content string) string {
		t.Helper()
		path := filepath.Join(c.Root, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, old, old))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	orphan := aged("pictures/sub/gone.jpg.webp", "12345")
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
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) == want {
				t.Errorf("%s: %v, want it there: %t", path, err, want)
			}
		}
	}
	found := []string{"keep: variant pictures/sub/gone.jpg.webp"}

	names, totals := sweep(c)
	if !slices.Equal(names, found) || totals.Variants != 1 || totals.Bytes != 5 || !totals.DryRun || totals.Removed != 0.0 {
		t.Errorf("found %q, %+v, want %q", names, totals, found)
	}
	if names, _ = sweep(c, "other"); names != nil {
		t.Errorf("another storage: %q", names)
	}
	wantThere(true, append(stays, orphan, young)...)

	names, totals = sweep(c, "--delete", "keep")
	if !slices.Equal(names, found) || totals.DryRun || totals.Removed != 1.0 || totals.Failed != 0 {
		t.Errorf("found %q, %+v, want %q", names, totals, found)
	}
	wantThere(false, orphan)
	wantThere(true, append(stays, young)...)

	code, out, messages := shell(c, nil, "sweep", "--address", c.Admin, "--older-than", "0s")
	if code != 0 || messages != "" || !strings.Contains(out, "pictures/young.png.webp") || !strings.Contains(out, "--delete") {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
	if code, out, messages = shell(c, nil, "sweep", "--address", c.Admin, "-q"); code != 0 || out+messages != "" {
		t.Errorf("quiet: exit code %d with %q and %q", code, out, messages)
	}
	for want, args := range map[string][]string{
		`no storage "none"`:    {"none"},
		"must not be negative": {"--older-than", "-1h"},
	} {
		code, out, messages := shell(c, nil, append([]string{"sweep", "--address", c.Admin}, args...)...)
		if code != 1 || !strings.Contains(messages, want) {
			t.Errorf("%q: exit code %d with %q and %q, want %q", args, code, out, messages, want)
		}
	}
	if got := client.FetchURL(t, "http://"+c.Plain+"/static/img/content/kept.jpg.webp"); got.Status != http.StatusOK {
		t.Errorf("a variant with its picture: %d", got.Status)
	}
}

// TestSweepCommandLeftovers: leftovers of a killed upload are shown, and removed with --remove; the
// rest of the folder stays.
func TestSweepCommandLeftovers(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start("tokens memory\n" + site.Account + site.LocalDefault + "image_alias content\nfile_alias small {\nextensions bin\n}\n")
	client := c.HTTP1()
	stored := client.MustPut(t, client.MustLogin(t), "small", "x.bin", []byte("x")) // Caddy has swept by itself
	left := filepath.Join(c.Root, ".media-tmp-LEFT", "1")
	old := time.Now().Add(-48 * time.Hour)
	err := errors.Join(
		os.MkdirAll(filepath.Dir(left), 0o700), os.WriteFile(left, []byte("123"), 0o600),
		os.Chtimes(left, old, old), os.Chtimes(filepath.Dir(left), old, old),
	)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{"default: leftover .media-tmp-LEFT"}
	if names, totals := sweep(c); !slices.Equal(names, found) || totals.Leftovers != 1 || totals.Bytes != 3 {
		t.Errorf("found %q, %+v, want %q", names, totals, found)
	}
	if names, _ := sweep(c, "--older-than", "72h"); names != nil {
		t.Errorf("found %q, which are young", names)
	}
	if names, _ := sweep(c, "--older-than", "72h", "--delete"); names != nil {
		t.Errorf("removed %q, which are young", names)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("removed without --remove: %v", err)
	}
	if names, totals := sweep(c, "--delete"); !slices.Equal(names, found) || totals.Removed != 1.0 {
		t.Errorf("found %q, %+v, want %q removed", names, totals, found)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it still exists: %v", err)
	}
	client.MustFetch(t, "small", stored, []byte("x"))
}

// TestSweepCommandResumable: expired resumable uploads, the results of finished ones and data without an
// upload are shown, and removed with --delete. Others stay.
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

// TestSweepCommandFails: a storage that cannot be swept does not stop the others.
func TestSweepCommandFails(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	if err := os.WriteFile(filepath.Join(c.Home, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config := localFile(c, "Caddyfile", c.Caddyfile(site.ImageConfig("")+"storage broken {\ndriver local $ROOT/../file\n}\n"))
	orphan := filepath.Join(c.Root, "pictures", "gone.png.webp")
	err := errors.Join(os.MkdirAll(filepath.Dir(orphan), 0o700), os.WriteFile(orphan, []byte("x"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	code, out, messages := shell(c, nil, "sweep", "--config", config, "--older-than", "0s", "--delete")
	if code != 1 || !strings.Contains(out, "pictures/gone.png.webp") || !strings.HasPrefix(messages, "broken: ") {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
	if _, err := os.Stat(orphan); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it still exists: %v", err)
	}
}
