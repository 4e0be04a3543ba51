package integration

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"
)

// TestRemoteMemoryStaysFlat moves a gibibyte to a storage on another host and back.
func TestRemoteMemoryStaysFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("it moves gibibytes")
	}
	const (
		size  = 1 << 30
		limit = 64 << 20
	)
	for _, kind := range remoteKinds {
		if !slices.Contains([]string{"s3", "sftp"}, kind.name) { // the others' servers keep it in memory, or are like them
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			c, client, token := startOn(t, kind.start(t))
			warm := described(1, 20<<20) // so that all code and all buffers are in memory
			client.mustFetch(t, "content", client.mustPut(t, token, "content", "warm.bin", warm), warm)
			before, ok := c.memory("VmRSS")
			if !ok {
				skip(t, "the system does not tell how much memory a process has")
			}
			if err := os.WriteFile(c.proc("clear_refs"), []byte("5"), 0); err != nil { // sets VmHWM back
				skip(t, "the peak of the memory cannot be measured: %v", err)
			}
			peak := func(what string) {
				t.Helper()
				most, _ := c.memory("VmHWM")
				t.Logf("%s: %d KiB more than the %d KiB before", what, (most-before)>>10, before>>10)
				if most-before >= limit {
					t.Errorf("%s has taken %d MiB", what, (most-before)>>20)
				}
			}
			sent, got := sha256.New(), sha256.New()
			r, err := client.upload(t.Context(), token, "content", childPart{"large.bin", generated(size, sent)})
			if err != nil || r.status != http.StatusOK {
				t.Fatal(r, err)
			}
			peak("the upload")
			answer, err := client.Get(r.Result[0].FullPath)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			n, err := io.Copy(got, answer.Body)
			if err != nil || n != size || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
				t.Errorf("got %d other bytes back, want %d, error %v", n, size, err)
			}
			peak("the download")
		})
	}
}
