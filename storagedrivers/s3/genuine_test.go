package s3

import (
	"net/http"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/cloudtest"
)

// TestAnotherServer: a web page is no reply of a service.
func TestAnotherServer(t *testing.T) {
	const before = `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`
	cloudtest.AnotherServer(t, cloudtest.Foreign{
		Open: func(t *testing.T, endpoint string) storagedrivers.Driver {
			d := at(t, endpoint)
			t.Cleanup(func() { _ = d.Close() })
			return d
		},
		Listing: before + `<Name>b</Name><Contents><Key>key</Key><Size>1</Size></Contents></ListBucketResult>`,
		Wrong: []string{
			before + `</ListBucketResult>`,
			before + `<Other>1</Other></ListBucketResult>`,
			before + `<Contents></Contents></ListBucketResult>`,
			before + `<Name>b</Name><Contents><Size>1</Size></Contents></ListBucketResult>`,
		},
		Header: http.Header{"X-Amz-Request-Id": {"1"}, "Content-Type": {"application/xml"}},
		Part:   partSize,
		Cause:  "No S3 service answers at this endpoint, but another server. Check the endpoint, and proxies on the way.",
	})
}
