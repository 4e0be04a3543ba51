//go:build unix

package imaging_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging"
	"github.com/caddymedia/media/caddymedia/internal/leaf/imaging/imagingtest"
)

// Limits for handling a bomb: the check, and the full decode if the check passes.
const (
	costTime   = 2 * time.Second // some milliseconds, but a decoded bomb takes minutes
	costMemory = 32 << 20
)

// processorTime returns the time used by all threads of the process so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	imagingtest.Must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// answer does all the work on the pixels of an upload before encoding.
func answer(data []byte, ext string) (imaging.Info, error) {
	info, err := check(data, ext, imaging.Options{})
	if err == nil && info.Format != imaging.SVG {
		_, err = decodeFully(data, info)
	}
	return info, err
}

// TestCorpusBombsAreCheap is not parallel, because it reads counters of the process.
func TestCorpusBombsAreCheap(t *testing.T) {
	for _, path := range imagingtest.Files(t, "bombs") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, ext := readCorpus(t, path)
			var info imaging.Info
			var err error
			start := processorTime(t)
			memory := allocated(func() { info, err = check(data, ext, imaging.Options{}) })
			// A text or profile chunk that inflates is harmless here: nothing inflates it.
			want := tooLarge
			if strings.Contains(path, "iccp") || strings.Contains(path, "ztxt") {
				want = passes
			}
			imagingtest.Equal(t, verdictOf(err), want, err)
			memory += allocated(func() { info, err = answer(data, ext) })
			took := processorTime(t) - start
			if verdictOf(err) == failed {
				t.Errorf("got %v", err)
			}
			if memory > costMemory {
				t.Errorf("allocated %d bytes", memory)
			}
			if took > costTime {
				t.Errorf("took %v", took)
			}
			t.Logf("%v, %d KiB, %d x %d, %v", took, memory>>10, info.Width, info.Height, err)
		})
	}
}
