package integration

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// sweepLine is a line of `caddy media sweep --json`, that of a leftover or the last one.
type sweepLine struct {
	Storage, Kind, Name, Message string
	Size                         int64
	Modified                     time.Time
	Removed                      any // whether, or how many

	DryRun                      bool `json:"dry_run"`
	Variants, Leftovers, Failed int
	Bytes                       int64
}

// sweep runs the command and returns the found names and the last line.
func (c *child) sweep(args ...string) (names []string, totals sweepLine) {
	c.t.Helper()
	code, out, messages := c.shell(nil, append([]string{"sweep", "--address", c.admin, "--json"}, args...)...)
	lines := linesOf[sweepLine](c.t, out)
	if code != 0 || len(lines) == 0 {
		c.t.Fatalf("%q: exit code %d with %q and %q", args, code, out, messages)
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
	c := newChild(t)
	config := withPictures("") + "storage other {\ndriver local $ROOT/../other\n}\n"
	c.start(config)
	client := c.http1()
	answer, err := client.sendPicture(t.Context(), client.mustLogin(t), strings.NewReader(pictureForm("kept.jpg", drawnJPEG(64, 48))))
	if err != nil || answer.status != http.StatusOK {
		t.Fatal(answer, err)
	}
	old := time.Now().Add(-48 * time.Hour)
	aged := func(name, content string) string {
		t.Helper()
		path := filepath.Join(c.root, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, old, old))
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	orphan := aged("pictures/sub/gone.jpg.webp", "12345")
	stays := []string{
		aged("pictures/a.webp", "x"), aged("pictures/there.png", "x"), aged("pictures/there.png.webp", "x"), aged("small/a.jpg.webp", "x"),
		filepath.Join(c.root, "pictures", "kept.jpg"), filepath.Join(c.root, "pictures", "kept.jpg.webp"),
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

	names, totals := c.sweep()
	if !slices.Equal(names, found) || totals.Variants != 1 || totals.Bytes != 5 || !totals.DryRun || totals.Removed != 0.0 {
		t.Errorf("found %q, %+v, want %q", names, totals, found)
	}
	if names, _ = c.sweep("other"); names != nil {
		t.Errorf("another storage: %q", names)
	}
	wantThere(true, append(stays, orphan, young)...)

	names, totals = c.sweep("--delete", "keep")
	if !slices.Equal(names, found) || totals.DryRun || totals.Removed != 1.0 || totals.Failed != 0 {
		t.Errorf("found %q, %+v, want %q", names, totals, found)
	}
	wantThere(false, orphan)
	wantThere(true, append(stays, young)...)

	code, out, messages := c.shell(nil, "sweep", "--address", c.admin, "--older-than", "0s")
	if code != 0 || messages != "" || !strings.Contains(out, "pictures/young.png.webp") || !strings.Contains(out, "--delete") {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
	if code, out, messages = c.shell(nil, "sweep", "--address", c.admin, "-q"); code != 0 || out+messages != "" {
		t.Errorf("quiet: exit code %d with %q and %q", code, out, messages)
	}
	for want, args := range map[string][]string{
		`no storage "none"`:    {"none"},
		"no negative duration": {"--older-than", "-1h"},
	} {
		code, out, messages := c.shell(nil, append([]string{"sweep", "--address", c.admin}, args...)...)
		if code != 1 || !strings.Contains(messages, want) {
			t.Errorf("%q: exit code %d with %q and %q, want %q", args, code, out, messages, want)
		}
	}
	if got := client.get(t, "http://"+c.plain+"/static/img/content/kept.jpg.webp"); got.status != http.StatusOK {
		t.Errorf("a variant with its picture: %d", got.status)
	}
}

// TestSweepCommandLeftovers: leftovers of a killed upload are shown, and removed with --remove; the
// rest of the folder stays.
func TestSweepCommandLeftovers(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	c.start("tokens memory\n" + account + localDefault + "image_alias content\nfile_alias small {\nextensions bin\n}\n")
	client := c.http1()
	stored := client.mustPut(t, client.mustLogin(t), "small", "x.bin", []byte("x")) // Caddy has swept by itself
	left := filepath.Join(c.root, ".media-tmp-LEFT", "1")
	old := time.Now().Add(-48 * time.Hour)
	err := errors.Join(
		os.MkdirAll(filepath.Dir(left), 0o700), os.WriteFile(left, []byte("123"), 0o600),
		os.Chtimes(left, old, old), os.Chtimes(filepath.Dir(left), old, old),
	)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{"default: leftover .media-tmp-LEFT"}
	if names, totals := c.sweep(); !slices.Equal(names, found) || totals.Leftovers != 1 || totals.Bytes != 3 {
		t.Errorf("found %q, %+v, want %q", names, totals, found)
	}
	if names, _ := c.sweep("--older-than", "72h"); names != nil {
		t.Errorf("found %q, which are young", names)
	}
	if names, _ := c.sweep("--older-than", "72h", "--delete"); names != nil {
		t.Errorf("removed %q, which are young", names)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("removed without --remove: %v", err)
	}
	if names, totals := c.sweep("--delete"); !slices.Equal(names, found) || totals.Removed != 1.0 {
		t.Errorf("found %q, %+v, want %q removed", names, totals, found)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it still exists: %v", err)
	}
	client.mustFetch(t, "small", stored, []byte("x"))
}

// TestSweepCommandFails: a storage that cannot be swept does not stop the others.
func TestSweepCommandFails(t *testing.T) {
	t.Parallel()
	c := newChild(t)
	if err := os.WriteFile(filepath.Join(c.home, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	config := c.localFile("Caddyfile", c.caddyfile(withPictures("")+"storage broken {\ndriver local $ROOT/../file\n}\n"))
	orphan := filepath.Join(c.root, "pictures", "gone.png.webp")
	err := errors.Join(os.MkdirAll(filepath.Dir(orphan), 0o700), os.WriteFile(orphan, []byte("x"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	code, out, messages := c.shell(nil, "sweep", "--config", config, "--older-than", "0s", "--delete")
	if code != 1 || !strings.Contains(out, "pictures/gone.png.webp") || !strings.HasPrefix(messages, "broken: ") {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
	if _, err := os.Stat(orphan); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it still exists: %v", err)
	}
}
