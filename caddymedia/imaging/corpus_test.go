package imaging_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/imaging"
	"github.com/caddymedia/media/caddymedia/imaging/imagingtest"
)

func readCorpus(t testing.TB, path string) (data []byte, ext string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data, strings.TrimPrefix(filepath.Ext(path), ".")
}

func TestCorpusPasses(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"valid", "color", "orientation", "anim", "svg-good"} {
		for _, path := range imagingtest.Files(t, folder) {
			t.Run(folder+"/"+filepath.Base(path), func(t *testing.T) {
				t.Parallel()
				data, ext := readCorpus(t, path)
				info, err := check(data, ext, imaging.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if ext != "svg" && (info.Width == 0 || info.Height == 0 || info.Frames == 0) {
					t.Errorf("got %+v", info)
				}
				if err := imaging.CheckFile(bytes.NewReader(data), ext, mediaTypes[ext]); err != nil {
					t.Errorf("as a file: %v", err)
				}
			})
		}
	}
}

// TestCorpusTruncatedIsRefused: only bytes after the end marker may be missing.
func TestCorpusTruncatedIsRefused(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"valid", "color", "anim"} {
		for _, path := range imagingtest.Files(t, folder) {
			data, ext := readCorpus(t, path)
			for _, n := range []int{len(data) / 10, len(data) / 2, len(data) * 99 / 100, len(data) - 2, len(data) - 1} {
				if _, err := check(data[:n], ext, imaging.Options{}); verdictOf(err) != refused {
					t.Errorf("%s cut to %d of %d bytes: %v", path, n, len(data), err)
				}
			}
		}
	}
}

// TestCorpusBombs is not parallel, because it reads the memory counters of the process.
func TestCorpusBombs(t *testing.T) {
	for _, path := range imagingtest.Files(t, "bombs") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, ext := readCorpus(t, path)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			info, err := check(data, ext, imaging.Options{})
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			// A text or profile chunk that inflates is harmless here: nothing inflates it.
			want := tooLarge
			if strings.Contains(path, "iccp") || strings.Contains(path, "ztxt") {
				want = passes
			}
			if verdictOf(err) != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 32<<20 {
				t.Errorf("allocated %d bytes", allocated)
			}
			t.Logf("%v, %d KiB, %+v, %v", took, (after.TotalAlloc-before.TotalAlloc)>>10, info, err)
		})
	}
}
