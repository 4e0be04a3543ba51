package features_test

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

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
	code, out, messages := shell(c, nil, append([]string{"variants", "--address", c.Admin, "--json"}, args...)...)
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
		if answer, err := client.SendImage(t.Context(), token, strings.NewReader(site.ImageForm(name, file))); err != nil || answer.Status != http.StatusOK {
			t.Fatal(answer, err)
		}
	}
	folder := filepath.Join(c.Root, "pictures")
	if code, _, messages := shell(c, nil, "variants", "--address", c.Admin, "content"); code != 1 || !strings.Contains(messages, "add webp or rendition") {
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

// TestVariantsCommandFile: the command works with a configuration file, and explains impossible
// requests.
func TestVariantsCommandFile(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config := localFile(c, "Caddyfile", c.Caddyfile(site.ImageConfig("")))
	picture := filepath.Join(c.Root, "pictures", "sub folder", "a.png")
	if err := os.MkdirAll(filepath.Dir(picture), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(picture, []byte(sample.EncodePNG(t, sample.Quartered(8, 8))), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"dry run", []string{"content", "--dry-run"}, 0, "sub folder/a.png: missing\n"},
		{"made", []string{"content"}, 0, ""},
		{"no alias", []string{"none"}, 1, `no image alias "none"`},
		{"no such kind", []string{"film/content"}, 1, `no alias "film/content"`},
		{"files", []string{"file/small"}, 1, "only images have variants"},
		{"which alias", nil, 1, "variants needs <alias>"},
		{"no such file", []string{"content", "--config", c.Home + "/none"}, 1, "none"},
	} {
		args := append([]string{"variants"}, one.args...)
		if one.name != "no such file" {
			args = append(args, "--config", config)
		}
		code, out, messages := shell(c, nil, args...)
		if code != one.code || !strings.Contains(out+messages, one.want) {
			t.Errorf("%s: exit code %d with %q and %q, want %d and %q", one.name, code, out, messages, one.code, one.want)
		}
		if one.name == "dry run" && !strings.Contains(out, "would be made") {
			t.Errorf("%s: %q", one.name, out)
		}
	}
	code, out, messages := shell(c, nil, "variants", "content", "--config", config)
	if _, err := os.Stat(picture + ".webp"); err != nil || code != 0 {
		t.Errorf("%v; exit code %d with %q and %q", err, code, out, messages)
	}
	if strings.ContainsAny(out+messages, "\x1b\r█") {
		t.Errorf("a progress bar without a terminal: %q", out+messages)
	}
}

// TestVariantsCommandLimits: with small limits on workers and queue all pictures are still
// processed.
func TestVariantsCommandLimits(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	config := c.WriteConfig(site.ImageConfig("image_workers 2\nimage_queue 1\nimage_wait 1ms\nimage_memory 3MiB"))
	const pictures = 20
	if err := os.MkdirAll(filepath.Join(c.Root, "pictures"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range pictures {
		localFile(c, filepath.Join("storage", "pictures", strconv.Itoa(i)+".jpg"), sample.PhotoJPEG(400, 300+i))
	}
	code, out, messages := shell(c, nil, "variants", "content", "--config", config, "--json")
	lines := linesOf[variantLine](t, out)
	// An encoder without cgo may need more memory than available for one of them.
	if totals := lines[len(lines)-1]; code != 0 || totals.Made+totals.None != pictures {
		t.Errorf("exit code %d with %+v and %q", code, totals, messages)
	}
}

// TestVariantsCommandUnreachable: with an unreachable storage the command fails, and its message
// does not contain the password.
func TestVariantsCommandUnreachable(t *testing.T) {
	t.Parallel()
	c := newAwayChild(t)
	config := c.WriteConfig(twoStorages + "image_alias content {\nstorage away\nwebp\n}\n")
	code, out, messages := shell(c, nil, "variants", "content", "--config", config, "--json")
	lines := linesOf[variantLine](t, out)
	if code != 1 || len(lines) != 1 || lines[0].Complete || !strings.Contains(lines[0].Stopped, "connection refused") {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
	code, out, messages = shell(c, nil, "variants", "content", "--config", config)
	if code != 1 || !strings.HasPrefix(messages, "Stopped: ") || strings.Contains(out+messages, awaySecret) {
		t.Errorf("exit code %d with %q and %q", code, out, messages)
	}
}

// TestVariantsCommandAmongUploads: the command makes variants while uploads replace the pictures.
// In the end each picture has its own variant, or none if none can be made.
func TestVariantsCommandAmongUploads(t *testing.T) {
	t.Parallel()
	c := site.NewChild(t)
	c.Start(strings.Replace(picturesWith("webp 80 fast"), "sub_folder_format /", "sub_folder_format /\noverwrite_strategy overwrite", 1))
	client := c.HTTP1()
	token := client.MustLogin(t)
	const names, turns = 4, 12
	var bodies [turns]string
	for i := range bodies {
		bodies[i] = sample.EncodePNG(t, sample.Photo(100+i*20, 50))
	}
	bodies[3] = sample.PNG(t, 16_384, 1)
	var uploads sync.WaitGroup
	for n := range names {
		uploads.Go(func() {
			for i := range turns {
				form := site.ImageForm(strconv.Itoa(n)+".png", bodies[(i+n)%turns])
				if answer, err := client.SendImage(t.Context(), token, strings.NewReader(form)); err != nil || answer.Status != http.StatusOK {
					t.Error(answer, err)
				}
			}
		})
	}
	var uploaded atomic.Bool
	go func() {
		uploads.Wait()
		uploaded.Store(true)
	}()
	made := 0
	for !uploaded.Load() {
		_, totals := variants(c, 0, "content", "--all")
		made += totals.Made
	}
	t.Logf("%d variants made meanwhile", made)
	folder := filepath.Join(c.Root, "pictures")
	found := site.Files(t, folder)
	for n := range names {
		name := strconv.Itoa(n) + ".png"
		width := sample.Decode(t, string(found[name])).Bounds().Dx()
		variant, has := found[name+".webp"]
		if has != (width < 16_384) || has && sample.WebPFeatures(t, string(variant)).Width != width {
			t.Errorf("%s, %d pixels wide, has the variant of another picture, or none: %d bytes", name, width, len(variant))
		}
	}
}
