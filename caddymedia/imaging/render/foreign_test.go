package render_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
)

// foreign is an image of another program, with the results of the test and of the browser.
type foreign struct {
	Image   string `json:"image"`
	Variant string `json:"variant,omitempty"`
	message string // of the refusal
	small   bool

	Shown      bool    `json:"shown"`
	Difference float64 `json:"difference"`
}

// sameColors is the largest mean difference of a channel after lossy encoding, except in icons.
const sameColors = 6

// TestForeignImages checks the images in the folder MEDIA_TEST_FOREIGN, for example from other
// programs. It lists, by reason, images that are refused although Chromium shows them. It fails
// for images whose variant has other colours. It runs only on request, with MEDIA_TEST_BROWSER as
// in the tests of the panel.
func TestForeignImages(t *testing.T) {
	t.Parallel()
	root := os.Getenv("MEDIA_TEST_FOREIGN")
	if root == "" {
		t.Skip("MEDIA_TEST_FOREIGN names no images")
	}
	images, none := checkForeign(t, root)
	show(t, images)

	reasons := make(map[string][]string)
	for _, p := range images {
		switch {
		case p.message != "" && p.Shown:
			reasons[p.message] = append(reasons[p.message], p.Image)
		case p.Difference > sameColors && !p.small:
			t.Errorf("colour differs by %.1f: %s", p.Difference, p.Image)
		case p.Difference > sameColors:
			t.Logf("colour of an icon differs by %.1f: %s", p.Difference, p.Image)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		files := reasons[reason]
		t.Logf("refused though shown, %d: %s\n\t%s", len(files), reason, strings.Join(files[:min(3, len(files))], "\n\t"))
	}
	for _, reason := range slices.Sorted(maps.Keys(none)) {
		t.Logf("no variant, %d: %s", none[reason], reason)
	}
	t.Logf("%d images are refused, or have a variant", len(images))
}

// checkForeign returns the images below root that are refused or have a variant. It counts those
// without a variant by reason.
func checkForeign(t *testing.T, root string) (images []*foreign, none map[string]int) {
	t.Helper()
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	maker, folder := render.NewMaker(encoder, render.Limits{}), t.TempDir()
	none = make(map[string]int)
	seen := make(map[[sha256.Size]byte]bool)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
		if err != nil || !entry.Type().IsRegular() || !slices.Contains([]string{"jpg", "jpeg", "png", "gif", "svg"}, ext) {
			return err
		}
		data, err := os.ReadFile(path)
		if sum := sha256.Sum256(data); err != nil || seen[sum] {
			return err
		} else {
			seen[sum] = true
		}
		p := &foreign{Image: path}
		r := bytes.NewReader(data)
		info, err := imaging.CheckImage(r, int64(len(data)), ext, imaging.Options{})
		if err == nil && info.Format == imaging.SVG {
			return nil
		}
		var file []byte
		if err == nil {
			p.small = max(info.Width, info.Height) < 64
			file, err = variantOf(t.Context(), maker, r, info, render.Options{})
		}
		switch {
		case errors.Is(err, render.ErrNone):
			none[err.Error()]++
			return nil
		case err != nil:
			p.message = err.Error()
		default:
			p.Variant = filepath.Join(folder, fmt.Sprint(len(images)))
			err = os.WriteFile(p.Variant, file, 0o600)
		}
		images = append(images, p)
		if p.message != "" {
			return nil
		}
		return err
	})
	if err != nil || len(images) == 0 {
		t.Fatalf("%d images: %v", len(images), err)
	}
	return images, none
}

// show renders the images in Chromium.
func show(t *testing.T, images []*foreign) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil || os.Getenv("MEDIA_TEST_BROWSER") == "" {
		t.Fatalf("Chromium and MEDIA_TEST_BROWSER are needed: %v", err)
	}
	list, err := json.Marshal(images)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "images.json")
	if err := os.WriteFile(file, list, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join("testdata", "foreign.mjs"), file)
	cmd.Env = append(os.Environ(), "MEDIA_TEST_CHROMIUM="+chromium)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &images); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
