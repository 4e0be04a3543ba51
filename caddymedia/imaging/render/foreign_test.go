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

// foreign is a picture of another program, with the results of the test and of the browser.
type foreign struct {
	Picture string `json:"picture"`
	Variant string `json:"variant,omitempty"`
	message string // of the refusal
	small   bool

	Shown      bool    `json:"shown"`
	Difference float64 `json:"difference"`
}

// sameColors is the largest mean difference of a channel after lossy encoding, except in icons.
const sameColors = 6

// TestForeignPictures checks the pictures in the folder MEDIA_TEST_FOREIGN, for example from other
// programs. It lists, by reason, pictures that are refused although Chromium shows them. It fails
// for pictures whose variant has other colours. It runs only on request, with MEDIA_TEST_BROWSER as
// in the tests of the panel.
func TestForeignPictures(t *testing.T) {
	t.Parallel()
	root := os.Getenv("MEDIA_TEST_FOREIGN")
	if root == "" {
		t.Skip("MEDIA_TEST_FOREIGN names no pictures")
	}
	pictures, none := checkForeign(t, root)
	show(t, pictures)

	reasons := make(map[string][]string)
	for _, p := range pictures {
		switch {
		case p.message != "" && p.Shown:
			reasons[p.message] = append(reasons[p.message], p.Picture)
		case p.Difference > sameColors && !p.small:
			t.Errorf("colour differs by %.1f: %s", p.Difference, p.Picture)
		case p.Difference > sameColors:
			t.Logf("colour of an icon differs by %.1f: %s", p.Difference, p.Picture)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		files := reasons[reason]
		t.Logf("refused though shown, %d: %s\n\t%s", len(files), reason, strings.Join(files[:min(3, len(files))], "\n\t"))
	}
	for _, reason := range slices.Sorted(maps.Keys(none)) {
		t.Logf("no variant, %d: %s", none[reason], reason)
	}
	t.Logf("%d pictures are refused, or have a variant", len(pictures))
}

// checkForeign returns the pictures below root that are refused or have a variant. It counts those
// without a variant by reason.
func checkForeign(t *testing.T, root string) (pictures []*foreign, none map[string]int) {
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
		p := &foreign{Picture: path}
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
			p.Variant = filepath.Join(folder, fmt.Sprint(len(pictures)))
			err = os.WriteFile(p.Variant, file, 0o600)
		}
		pictures = append(pictures, p)
		if p.message != "" {
			return nil
		}
		return err
	})
	if err != nil || len(pictures) == 0 {
		t.Fatalf("%d pictures: %v", len(pictures), err)
	}
	return pictures, none
}

// show renders the pictures in Chromium.
func show(t *testing.T, pictures []*foreign) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil || os.Getenv("MEDIA_TEST_BROWSER") == "" {
		t.Fatalf("Chromium and MEDIA_TEST_BROWSER are needed: %v", err)
	}
	list, err := json.Marshal(pictures)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pictures.json")
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
	if err := json.Unmarshal(out, &pictures); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
