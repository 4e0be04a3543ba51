package gcs

import (
	"net/http"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
)

// TestAnotherServer: a web page is no reply of the service.
func TestAnotherServer(t *testing.T) {
	cloudtest.AnotherServer(t, cloudtest.Foreign{
		Open: func(t *testing.T, endpoint string) storagedrivers.Driver {
			return opened(t, Config{Bucket: "bucket", Endpoint: endpoint})
		},
		Listing: `{"kind":"storage#objects","items":[{"kind":"storage#object","name":"key","size":"1","generation":"1"}]}`,
		Wrong:   []string{`{"kind":"storage#objects","items":[{}]}`, `{"kind":1}`},
		Header:  http.Header{"X-Goog-Generation": {"1"}, "Content-Type": {"application/json"}},
		Part:    chunkSize,
		Cause: "No Google Cloud Storage answers at this endpoint, but another server. " +
			"Check the endpoint, and proxies on the way.",
	})
}
