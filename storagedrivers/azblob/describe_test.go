package azblob

import (
	"net/http"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	failing := func(key, address string) string {
		return `{"container": "media", "account": "` + servers.AzuriteAccount + `", "key": "` + key + `", "endpoint": "` + address + `"}`
	}
	drivertest.Describe(t, drivertest.Description{
		New:         newConfig,
		Options:     `{"container": "media", "account": "name"}`,
		Where:       "media (name)",
		Refused:     failing("d3Jvbmc=", startAnswering(t, http.StatusForbidden, "AuthenticationFailed")),
		Missing:     failing(servers.AzuriteKey, startAnswering(t, http.StatusNotFound, "ContainerNotFound")),
		Unreachable: failing(servers.AzuriteKey, "http://127.0.0.1:1/"+servers.AzuriteAccount),
		Same: []string{
			`{"container": "media", "account": "name", "key": "a2V5", "timeout": "5s"}`,
			`{"container": "media", "endpoint": "https://name.blob.core.windows.net/"}`,
			`{"container": "media", "connection_string": "AccountName=name;AccountKey=a2V5"}`,
			`{"container": "media", "connection_string": "DefaultEndpointsProtocol=http;AccountName=Name;AccountKey=b3RoZXI="}`,
			`{"container": "media", "connection_string": "BlobEndpoint=https://name.blob.core.windows.net;SharedAccessSignature=sv=1&sig=x"}`,
		},
		Below: []string{
			`{"container": "media", "account": "name", "prefix": "below/it/"}`,
			`{"container": "media", "connection_string": "AccountName=name;AccountKey=a2V5", "prefix": "/below/it"}`,
		},
		Apart: []string{
			`{"container": "other", "account": "name"}`,
			`{"container": "media", "account": "other"}`,
			`{"container": "media", "connection_string": "AccountName=other;AccountKey=a2V5"}`,
			`{"container": "media", "connection_string": "AccountName=name;AccountKey=a2V5;EndpointSuffix=core.chinacloudapi.cn"}`,
			`{"container": "media", "account": "name", "endpoint": "https://127.0.0.1:10000/name"}`,
		},
	})
}
