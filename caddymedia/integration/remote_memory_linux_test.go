package integration

import (
	"slices"
	"testing"
)

// TestRemoteMemoryStaysFlat sends a gibibyte to a storage on another host and back. The other
// drivers are left out because their test servers keep it in memory, or because they work alike.
func TestRemoteMemoryStaysFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("it moves gibibytes")
	}
	limit := int64(64 << 20)
	if raceDetector {
		limit *= 2
	}
	for _, kind := range remoteDrivers {
		if !slices.Contains([]string{"s3", "sftp"}, kind.name) {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			c, client, token := startOn(t, kind.start(t))
			warm := described(1, 20<<20) // so that all code and all buffers are in memory
			client.mustFetch(t, "content", client.mustPut(t, token, "content", "warm.bin", warm), warm)
			moveGibibyte(t, c, client, token, limit)
		})
	}
}
