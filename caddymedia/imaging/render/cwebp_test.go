package render_test

import (
	"image/color"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/caddymedia/imaging/imagingtest"
	"github.com/caddymedia/media/caddymedia/imaging/render"
	"github.com/caddymedia/media/caddymedia/imaging/webp"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// cwebp runs the program of libwebp at the default quality and method.
func cwebp(t testing.TB, name string) []byte {
	t.Helper()
	path := servers.Program(t, "cwebp")
	out := filepath.Join(t.TempDir(), "out.webp")
	if said, err := exec.CommandContext(t.Context(), path, "-quiet", "-q", "80", "-m", "4", name, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("cwebp: %v: %s", err, said)
	}
	file, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestBesideCwebp compares size and quality with the output of cwebp. Variants may be at most 3 %
// larger and 0.5 dB worse.
func TestBesideCwebp(t *testing.T) {
	t.Parallel()
	root := imagingtest.Corpus(t)
	encoder, err := webp.New()
	if err != nil {
		t.Fatal(err)
	}
	larger, worse := 1.03, 0.5
	if !encoder.Stops() { // the pure Go encoder uses another method, which differs by 2 %
		larger, worse = 1.10, 1.0
	}
	for _, folder := range []string{"valid", "color"} {
		files, err := fs.Glob(os.DirFS(root), folder+"/*.[jp][pn]*g")
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files (%v)", len(files), err)
		}
		for _, name := range files {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(root, name)
				file, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				ext := strings.TrimPrefix(filepath.Ext(name), ".")
				info := checked(t, file, ext)
				if info.Width < 100 || info.Components == 4 || info.Profile != nil {
					t.Skip("too small to compare, or cwebp reads it in another way")
				}
				theirs, ours := cwebp(t, path), made(t, file, ext, render.Options{})
				want := reference(t, file, info)
				our, their := psnr(t, decodedWebP(t, ours), want, color.Gray{Y: 255}), psnr(t, decodedWebP(t, theirs), want, color.Gray{Y: 255})
				t.Logf("%d bytes and %.2f dB, cwebp %d and %.2f", len(ours), our, len(theirs), their)
				const chunks = 200 // bytes that matter to small files only
				if float64(len(ours)) > float64(len(theirs))*larger+chunks && our < their+2 {
					t.Error("it is larger than that of cwebp")
				}
				if our < their-worse {
					t.Error("it looks worse than that of cwebp")
				}
			})
		}
	}
}
