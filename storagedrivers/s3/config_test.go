package s3

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	on, off := true, false
	for _, tt := range []struct {
		config    Config
		pathStyle bool
	}{
		{Config{Bucket: "b"}, false},
		{Config{Bucket: "b", Endpoint: "http://localhost:9000"}, true},
		{Config{Bucket: "b", Endpoint: "http://localhost:9000", PathStyle: &off}, false},
		{Config{Bucket: "b", PathStyle: &on}, true},
	} {
		if err := tt.config.Complete(); err != nil || *tt.config.PathStyle != tt.pathStyle || tt.config.Limits().Timeout != network.DefaultTimeout {
			t.Errorf("%+v: error %v", tt.config, err)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*Config{
		"bucket is missing":             {},
		"go together":                   {Bucket: "b", AccessKeyID: "id"},
		"secret_access_key go together": {Bucket: "b", SecretAccessKey: "secret"},
		"session_token goes with":       {Bucket: "b", SessionToken: "token"},
		"prefix: invalid key":           {Bucket: "b", Prefix: "a/../b"},
		"checksums is one of":           {Bucket: "b", Checksums: "always"},
		"above zero, not -1s":           {Bucket: "b", Timeout: options.Duration(-time.Second)},
		"endpoint is an address":        {Bucket: "b", Endpoint: "s3.example.com"},
		`not "ftp://example.com"`:       {Bucket: "b", Endpoint: "ftp://example.com"},
		`not "http://[::1"`:             {Bucket: "b", Endpoint: "http://[::1"},
		`not "https://"`:                {Bucket: "b", Endpoint: "https://"},
	} {
		if err := s.Complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", s, err, want)
		}
	}
}

func TestRegion(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	log := slog.New(slog.DiscardHandler)
	if _, err := New(Config{Bucket: "b"}, log); err == nil || !strings.Contains(err.Error(), "region option") {
		t.Errorf("without a region: error %v", err)
	}
	region := func(c Config) string {
		d, err := New(c, log)
		if err != nil {
			t.Fatal(err)
		}
		return d.client.Options().Region
	}
	if got := region(Config{Bucket: "b", Endpoint: "http://localhost"}); got != endpointRegion {
		t.Errorf("with an endpoint: region %q", got)
	}
	t.Setenv("AWS_REGION", "eu-west-1")
	if got := region(Config{Bucket: "b"}); got != "eu-west-1" {
		t.Errorf("with AWS_REGION: region %q", got)
	}
	if got := region(Config{Bucket: "b", Region: "eu-west-2"}); got != "eu-west-2" {
		t.Errorf("with the option: region %q", got)
	}
}
