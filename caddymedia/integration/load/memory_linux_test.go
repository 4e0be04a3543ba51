package load_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestMemoryStaysFlat: uploading and downloading a gibibyte needs no more memory than a small file.
func TestMemoryStaysFlat(t *testing.T) {
	const (
		limit = 32 << 20
		space = 4 << 30
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

// moveGibibyte uploads and downloads two files of 1 GiB, one of them as a resumable upload. The child
// may use less than limit bytes of memoryOf for it.
func moveGibibyte(t *testing.T, c *site.Child, client *site.Client, token string, limit int64) {
	t.Helper()
	const size = 1 << 30
	before, peak, ok := watchMemory(c.Cmd.Process)
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
	move := func(what string, upload func(body io.Reader) (address string, err error)) {
		t.Helper()
		sent, got := sha256.New(), sha256.New()
		address, err := upload(generated(size, sent))
		if err != nil {
			t.Fatal(err)
		}
		check("the " + what)
		answer, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		n, err := io.Copy(got, answer.Body)
		if err != nil || n != size || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
			t.Errorf("got %d bytes back with the hash %x, want %d with %x; error %v",
				n, got.Sum(nil), size, sent.Sum(nil), err)
		}
		check("its download")
	}
	move("resumable upload", func(body io.Reader) (string, error) {
		u := &site.Tus{HTTP: client.Client, Base: client.Base, Token: token}
		err := u.Create(t.Context(), size, "alias", "content", "filename", "resumed.bin")
		if err == nil {
			err = u.Patch(t.Context(), 0, body, size)
		}
		return client.Base + "/static/file/content/" + u.Filename, err
	})
	move("upload", func(body io.Reader) (string, error) {
		r, err := client.Upload(t.Context(), token, "content", site.StreamPart{Name: "large.bin", Body: body})
		if err != nil || r.Status != http.StatusOK {
			return "", fmt.Errorf("%+v: %w", r, err)
		}
		return r.Result[0].FullPath, nil
	})
}

// generated returns bytes that are generated as they are read.
func generated(size int64, hash hash.Hash) io.Reader {
	var key [32]byte
	copy(key[:], fmt.Sprint(size))
	return io.TeeReader(io.LimitReader(rand.NewChaCha8(key), size), hash)
}
