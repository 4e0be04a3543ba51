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
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestMemoryStaysFlat: uploading and downloading much needs no more memory than a small file.
// MEDIA_TEST_MIB sets the size in MiB.
func TestMemoryStaysFlat(t *testing.T) {
	const limit = 32 << 20
	space := 4 * sizeOfMuch(t)
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

	moveMuch(t, c, client, token, limit)
}

// sizeOfMuch is a multiple of all limits of memory.
func sizeOfMuch(t *testing.T) int64 {
	t.Helper()
	return int64(site.Number(t, "MEDIA_TEST_MIB", 256)) << 20
}

// moveMuch uploads sizeOfMuch bytes twice, first as a resumable upload, whose item it downloads. The child may
// use less than limit bytes of memoryOf for it.
func moveMuch(t *testing.T, c *site.Child, client *site.Client, token string, limit int64) {
	t.Helper()
	size := sizeOfMuch(t)
	before, peak, ok := watchMemory([]*os.Process{c.Cmd.Process})
	if !ok {
		site.Skip(t, "the system does not report the memory of a process")
	}
	check := func(what string) {
		t.Helper()
		added := peak() - before
		t.Logf("%s: %d KiB more than the %d KiB before", what, added>>10, before>>10)
		if added >= limit {
			t.Errorf("%s used %d MiB", what, added>>20)
		}
	}
	sent, got := sha256.New(), sha256.New()
	u := &site.Tus{HTTP: client.Client, Base: client.Base, Token: token}
	err := u.Create(t.Context(), size, "alias", "content", "filename", "resumed.bin")
	if err == nil {
		err = u.Patch(t.Context(), 0, generated(size, sent), size)
	}
	if err != nil {
		t.Fatal(err)
	}
	check("the resumable upload")
	answer, err := client.Get(client.Base + "/static/file/content/" + u.Filename)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	n, err := io.Copy(got, answer.Body)
	if err != nil || n != size || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
		t.Errorf("got %d bytes back with the hash %x, want %d with %x; error %v", n, got.Sum(nil), size, sent.Sum(nil), err)
	}
	check("the download")
	large := site.StreamPart{Name: "large.bin", Body: generated(size, sha256.New())}
	r, err := client.Upload(t.Context(), token, "content", large)
	if err != nil || r.Status != http.StatusOK {
		t.Fatal(r, err)
	}
	check("the upload")
}

// generated returns bytes that are generated as they are read.
func generated(size int64, hash hash.Hash) io.Reader {
	var key [32]byte
	copy(key[:], fmt.Sprint(size))
	return io.TeeReader(io.LimitReader(rand.NewChaCha8(key), size), hash)
}

// TestRemoteMemoryStaysFlat sends as much to a storage on another host and back. The other
// drivers are left out because their test servers keep it in memory, or because they work alike.
func TestRemoteMemoryStaysFlat(t *testing.T) {
	const limit = 64 << 20
	for _, kind := range site.RemoteDrivers {
		if !slices.Contains([]string{"s3", "sftp"}, kind.Name) {
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			c, client, token := site.StartOn(t, kind.Start(t))
			warm := sample.Described(1, 20<<20) // so that all code and all buffers are in memory
			client.MustFetch(t, "content", client.MustPut(t, token, "content", "warm.bin", warm), warm)
			moveMuch(t, c, client, token, limit)
		})
	}
}
