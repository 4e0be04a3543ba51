package s3

import (
	"net/http"
	"testing"

	"github.com/caddymedia/media/storagedrivers/drivertest"
)

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	failing := func(address string) string {
		return `{"bucket": "media", "access_key_id": "i", "secret_access_key": "s", "endpoint": "` + address + `"}`
	}
	drivertest.Describe(t, drivertest.Description{
		New:         newConfig,
		Options:     `{"bucket": "media", "region": "eu-west-1"}`,
		Where:       "media (eu-west-1)",
		Refused:     failing(startAnswering(t, http.StatusForbidden, "SignatureDoesNotMatch", nil)),
		Missing:     failing(startAnswering(t, http.StatusNotFound, "NoSuchBucket", nil)),
		Unreachable: failing("http://127.0.0.1:1"),
		NotSecret:   []string{"access_key_id"},
		Same: []string{
			`{"bucket": "media"}`,
			`{"bucket": "media", "region": "eu-west-1", "access_key_id": "i", "secret_access_key": "s", "session_token": "t"}`,
			`{"bucket": "media", "path_style": true, "checksums": "when_required", "timeout": "5s", "prefix": "/"}`,
			`{"bucket": "media", "endpoint": "https://s3.eu-central-1.amazonaws.com"}`,
			`{"bucket": "media", "endpoint": "https://s3.dualstack.us-west-2.amazonaws.com/"}`,
			`{"bucket": "media", "endpoint": "https://S3.amazonaws.com:443"}`,
			`{"bucket": "media", "endpoint": "https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com"}`,
		},
		Below: []string{`{"bucket": "media", "prefix": "below/it"}`, `{"bucket": "media", "prefix": "/below/it/"}`},
		Apart: []string{
			`{"bucket": "other"}`,
			`{"bucket": "media", "region": "cn-north-1"}`,
			`{"bucket": "media", "region": "us-gov-west-1"}`,
			`{"bucket": "media", "endpoint": "https://s3.cn-north-1.amazonaws.com.cn"}`,
			`{"bucket": "media", "endpoint": "https://s3.example.com"}`,
			`{"bucket": "media", "endpoint": "http://ec2-1-2-3-4.compute.amazonaws.com:9000"}`,
		},
	})
	drivertest.Describe(t, drivertest.Description{
		New:       newConfig,
		Options:   `{"bucket": "media", "endpoint": "https://s3.example.com", "prefix": "a"}`,
		Where:     "media/a at s3.example.com",
		NotSecret: []string{"access_key_id"},
		Same: []string{
			`{"bucket": "media", "endpoint": "http://S3.example.com/", "region": "x", "prefix": "a/"}`,
			`{"bucket": "media", "endpoint": "https://s3.example.com:443", "path_style": false, "prefix": "a"}`,
		},
		Below: []string{`{"bucket": "media", "endpoint": "https://s3.example.com", "prefix": "a/below/it"}`},
		Apart: []string{
			`{"bucket": "media", "endpoint": "https://s3.example.com", "prefix": "aa"}`,
			`{"bucket": "media", "endpoint": "https://s3.example.com:9000", "prefix": "a"}`,
			`{"bucket": "media", "endpoint": "https://s3.example.org", "prefix": "a"}`,
		},
	})
	t.Setenv("AWS_ENDPOINT_URL", "https://s3.example.com")
	drivertest.Describe(t, drivertest.Description{
		New:       newConfig,
		Options:   `{"bucket": "media"}`,
		Where:     "media",
		Same:      []string{`{"bucket": "media", "endpoint": "https://s3.example.com"}`},
		NotSecret: []string{"access_key_id"},
	})
}
