package features_test

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

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
		answer, err := client.SendImage(t.Context(), token, strings.NewReader(site.ImageForm(name, sample.PhotoJPEG(64, 48))))
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
	if code, out, messages := shell(c, nil, "copy", "--address", c.Admin, "keep", "other"); code != 0 {
		t.Errorf("copy: exit code %d with %q and %q", code, out, messages)
	}
	site.MustHaveOnly(t, filepath.Join(filepath.Dir(c.Root), "other"), "pictures/a.jpg", "pictures/b.jpg")
}
