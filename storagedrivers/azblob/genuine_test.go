package azblob

import (
	"net/http"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
)

// TestAnotherServer: a web page is no reply of the service.
func TestAnotherServer(t *testing.T) {
	const before = `<?xml version="1.0"?><EnumerationResults ContainerName="c">`
	cloudtest.AnotherServer(t, cloudtest.Foreign{
		Open: func(t *testing.T, endpoint string) storagedrivers.Driver {
			d := (&account{endpoint: endpoint + "/" + servers.AzuriteAccount}).open(t, "pictures")
			t.Cleanup(func() { _ = d.Close() })
			return d
		},
		Listing: before + `<Blobs><Blob><Name>key</Name><Properties><Content-Length>1</Content-Length><Etag>1</Etag>` +
			`</Properties></Blob></Blobs><NextMarker/></EnumerationResults>`,
		Wrong: []string{
			before + `</EnumerationResults>`,
			before + `<NextMarker>next</NextMarker></EnumerationResults>`,
			before + `<Blobs><Blob></Blob></Blobs></EnumerationResults>`,
			before + `<Blobs><Blob><Name>key</Name></Blob></Blobs></EnumerationResults>`,
			before + `<Blobs><Blob><Name></Name><Properties/></Blob></Blobs></EnumerationResults>`,
		},
		Header: http.Header{"X-Ms-Request-Id": {"1"}, "Content-Type": {"application/xml"}},
		Part:   blockSize,
		Cause: "No Azure Blob Storage answers at this endpoint, but another server. " +
			"Check the endpoint, and proxies on the way.",
	})
}
