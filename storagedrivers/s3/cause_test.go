package s3

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
)

func TestCauses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		code   string
		header http.Header
		want   storagedrivers.Cause
	}{
		{http.StatusNotFound, "NoSuchBucket", nil, "The bucket does not exist. Create it, or correct its name."},
		{http.StatusMovedPermanently, "PermanentRedirect", http.Header{"X-Amz-Bucket-Region": {"eu-west-1"}}, wrongRegion},
		{http.StatusForbidden, "InvalidAccessKeyId", nil, wrongKey},
		{http.StatusForbidden, "SignatureDoesNotMatch", nil, wrongKey},
		{http.StatusBadRequest, "ExpiredToken", nil, expired},
		{http.StatusForbidden, "AccessDenied", nil, ""},
		{http.StatusInternalServerError, "InternalError", nil, ""},
	} {
		drivertest.Cause(t, answering(t, tt.status, tt.code, tt.header).Check(t.Context()), tt.want)
	}
}

// TestNoCredentials: the SDK finds no credentials in the environment and in its files.
func TestNoCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "", "AWS_PROFILE": "", "AWS_CONFIG_FILE": t.TempDir() + "/none", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_SHARED_CREDENTIALS_FILE": t.TempDir() + "/none", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI": "", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "",
	} {
		t.Setenv(name, value)
	}
	d, err := New(Config{Bucket: "b", Endpoint: "http://127.0.0.1:1"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	drivertest.Cause(t, d.Check(t.Context()), noCredentials)
}
