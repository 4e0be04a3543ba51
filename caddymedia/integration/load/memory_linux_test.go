package load_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// memoryOf returns a figure of a child's memory in bytes: "VmRSS" is the resident memory, "VmHWM" its
// peak. It returns false if the system does not report it.
func memoryOf(c *site.Child, name string) (int64, bool) {
	c.T.Helper()
	status, err := os.ReadFile(proc(c, "status"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		value, ok := strings.CutPrefix(line, name+":")
		if !ok {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			c.T.Fatal(err)
		}
		return kilobytes << 10, true
	}
	return 0, false
}

func proc(c *site.Child, name string) string {
	return filepath.Join("/proc", strconv.Itoa(c.Cmd.Process.Pid), name)
}

// TestMemoryStaysFlat: uploading and downloading a gibibyte needs no more memory than a small file.
func TestMemoryStaysFlat(t *testing.T) {
	const (
		limit = 32 << 20
		space = 3 << 30
	)
	c := site.NewChild(t)
	var disk unix.Statfs_t
	if err := unix.Statfs(c.Home, &disk); err != nil || int64(disk.Bavail)*disk.Bsize < space {
		site.Skip(t, "less than %d bytes are free for temporary files (%v)", space, err)
	}
	c.Start("tokens memory\n" + site.Account + `
storage keep {
	driver local $ROOT {
		sync off
	}
}
file_alias content {
	extensions bin
}
`)
	client := c.HTTP1()
	token := client.MustLogin(t)
	warm := sample.Described(1, 20<<20) // so that all code and all buffers are in memory
	client.MustFetch(t, "content", client.MustPut(t, token, "content", "warm.bin", warm), warm)

	moveGibibyte(t, c, client, token, limit)
}

// moveGibibyte uploads and downloads a file of 1 GiB. The child may use less than limit bytes of
// memoryOf for it.
func moveGibibyte(t *testing.T, c *site.Child, client *site.Client, token string, limit int64) {
	t.Helper()
	const size = 1 << 30
	peak := watchMemory(t, c, limit)
	sent := sha256.New()
	r, err := client.Upload(t.Context(), token, "content", site.StreamPart{Name: "large.bin", Body: generated(size, sent)})
	if err != nil || r.Status != http.StatusOK {
		t.Fatal(r, err)
	}
	peak("the upload")
	got := sha256.New()
	answer, err := client.Get(r.Result[0].FullPath)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	n, err := io.Copy(got, answer.Body)
	if err != nil || n != size || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
		t.Errorf("got %d bytes back with the hash %x, want %d with %x; error %v",
			n, got.Sum(nil), size, sent.Sum(nil), err)
	}
	peak("the download")
}

// watchMemory returns a function that checks that the peak of the child's memory is less than limit
// bytes above its memory now.
func watchMemory(t *testing.T, c *site.Child, limit int64) (peak func(what string)) {
	t.Helper()
	before, ok := memoryOf(c, "VmRSS")
	if !ok {
		site.Skip(t, "the system does not report the memory of a process")
	}
	if err := os.WriteFile(proc(c, "clear_refs"), []byte("5"), 0); err != nil { // resets VmHWM
		site.Skip(t, "the peak of the memory cannot be measured: %v", err)
	}
	return func(what string) {
		t.Helper()
		most, _ := memoryOf(c, "VmHWM")
		t.Logf("%s: %d KiB more than the %d KiB before", what, (most-before)>>10, before>>10)
		if most-before >= limit {
			t.Errorf("%s used %d MiB", what, (most-before)>>20)
		}
	}
}

// generated returns bytes that are generated as they are read.
func generated(size int64, hash hash.Hash) io.Reader {
	var key [32]byte
	copy(key[:], fmt.Sprint(size))
	return io.TeeReader(io.LimitReader(rand.NewChaCha8(key), size), hash)
}
