package azblob

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	complete := func(c Config) *Config {
		t.Helper()
		test.Must(t, c.Complete())
		_, err := c.NewDriver(slog.New(slog.DiscardHandler))
		test.Must(t, err)
		return &c
	}
	key := complete(Config{Account: "media", Key: "a2V5", Container: "pictures", Prefix: "/a/b/", Timeout: options.Duration(time.Minute)})
	if key.Limits().Timeout != time.Minute || key.folder() != "a/b/" {
		t.Errorf("limits %+v, folder %q", key.Limits(), key.folder())
	}
	test.Equal(t, key.serviceURL(), "https://media.blob.core.windows.net", "the service is at")
	complete(Config{Account: "media", Container: "pictures"}) // default credentials
	complete(Config{ConnectionString: "AccountName=media;AccountKey=a2V5;", Container: "$web"})
	complete(Config{ConnectionString: "BlobEndpoint=https://media.example;SharedAccessSignature=sv=1&sig=x", Container: "pictures"})
	complete(Config{Endpoint: "https://media.example/", Container: "pictures"})
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options Config
		want    string
	}{
		{Config{Account: "media"}, "container is missing"},
		{Config{Account: "media", Container: "a_b"}, "container:"},
		{Config{Account: "media", Container: "ab"}, "container:"},
		{Config{Account: "media", Container: "a--b"}, "container:"},
		{Config{Account: "media", Container: strings.Repeat("a", 64)}, "container:"},
		{Config{Container: "pictures"}, "without an account"},
		{Config{Container: "pictures", Key: "a2V5"}, "key: without the account"},
		{Config{Container: "pictures", Account: "media", Key: "not base64!"}, "key:"},
		{Config{Container: "pictures", Account: "media", Prefix: "../x"}, "prefix:"},
		{Config{Container: "pictures", Account: "media", Endpoint: "media.example"}, "endpoint is an address"},
		{Config{Container: "pictures", Account: "media", Endpoint: "ftp://media.example"}, "endpoint is an address"},
		{Config{Container: "pictures", Account: "media", Endpoint: "https://media.example?sig=x"}, "endpoint is an address"},
		{Config{Container: "pictures", Account: "media", Endpoint: "http://media.example"}, "only sent over https"},
		{Config{Container: "pictures", ConnectionString: "AccountName=a;AccountKey=a2V5", Account: "a"}, "stands alone"},
		{Config{Container: "pictures", ConnectionString: "AccountName=a;AccountKey=a2V5", Key: "a2V5"}, "stands alone"},
		{Config{Container: "pictures", ConnectionString: "AccountName=a;AccountKey=a2V5", Endpoint: "https://x"}, "stands alone"},
		{Config{Container: "pictures", ConnectionString: "nonsense"}, "connection_string:"},
		{Config{Container: "pictures", ConnectionString: "AccountName=a"}, "connection_string:"},
	} {
		err := tt.options.Complete()
		if err == nil {
			_, err = tt.options.NewDriver(slog.New(slog.DiscardHandler))
		}
		test.Says(t, err, tt.want, tt.options)
	}
}

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
