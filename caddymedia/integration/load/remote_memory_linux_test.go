package load_test

import (
	"slices"
	"testing"

	"github.com/caddymedia/media/caddymedia/integration/sample"
	"github.com/caddymedia/media/caddymedia/integration/site"
)

// TestRemoteMemoryStaysFlat sends a gibibyte to a storage on another host and back. The other
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
			moveGibibyte(t, c, client, token, limit)
		})
	}
}
