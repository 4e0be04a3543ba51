package integration

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
)

// memory returns a figure of a child's memory in bytes: "VmRSS" is the resident memory, "VmHWM" its
// peak. It returns false if the system does not report it.
func (c *child) memory(name string) (int64, bool) {
	c.t.Helper()
	status, err := os.ReadFile(c.proc("status"))
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
			c.t.Fatal(err)
		}
		return kilobytes << 10, true
	}
	return 0, false
}

func (c *child) proc(name string) string {
	return filepath.Join("/proc", strconv.Itoa(c.cmd.Process.Pid), name)
}

// TestMemoryStaysFlat: uploading and downloading a gibibyte needs no more memory than a small file.
func TestMemoryStaysFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("it moves a gibibyte")
	}
	const (
		limit = 32 << 20
		space = 3 << 30
	)
	c := newChild(t)
	var disk unix.Statfs_t
	if err := unix.Statfs(c.home, &disk); err != nil || int64(disk.Bavail)*disk.Bsize < space {
		skip(t, "less than %d bytes are free for temporary files (%v)", space, err)
	}
	c.start("tokens memory\n" + account + `
storage keep {
	driver local $ROOT {
		sync off
	}
}
file_alias content {
	extensions bin
}
`)
	client := c.http1()
	token := client.mustLogin(t)
	warm := described(1, 20<<20) // so that all code and all buffers are in memory
	client.mustFetch(t, "content", client.mustPut(t, token, "content", "warm.bin", warm), warm)

	moveGibibyte(t, c, client, token, limit)
}

// moveGibibyte uploads and downloads a file of 1 GiB. The child may use less than limit bytes of
// memory for it.
func moveGibibyte(t *testing.T, c *child, client *childClient, token string, limit int64) {
	t.Helper()
	const size = 1 << 30
	peak := c.watchMemory(t, limit)
	sent := sha256.New()
	r, err := client.upload(t.Context(), token, "content", childPart{"large.bin", generated(size, sent)})
	if err != nil || r.status != http.StatusOK {
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
func (c *child) watchMemory(t *testing.T, limit int64) (peak func(what string)) {
	t.Helper()
	before, ok := c.memory("VmRSS")
	if !ok {
		skip(t, "the system does not report the memory of a process")
	}
	if err := os.WriteFile(c.proc("clear_refs"), []byte("5"), 0); err != nil { // resets VmHWM
		skip(t, "the peak of the memory cannot be measured: %v", err)
	}
	return func(what string) {
		t.Helper()
		most, _ := c.memory("VmHWM")
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
