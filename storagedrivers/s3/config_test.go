package s3

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/internal/test"
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
		test.Says(t, s.Complete(), want, s)
	}
}

func TestRegion(t *testing.T) {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	log := slog.New(slog.DiscardHandler)
	if _, err := newDriver(Config{Bucket: "b"}, log); err == nil || !strings.Contains(err.Error(), "region option") {
		t.Errorf("without a region: error %v", err)
	}
	region := func(c Config) string {
		d, err := newDriver(c, log)
		test.Must(t, err)
		return d.client.Options().Region
	}
	test.Equal(t, region(Config{Bucket: "b", Endpoint: "http://localhost"}), endpointRegion, "with an endpoint: region")
	t.Setenv("AWS_REGION", "eu-west-1")
	test.Equal(t, region(Config{Bucket: "b"}), "eu-west-1", "with AWS_REGION: region")
	test.Equal(t, region(Config{Bucket: "b", Region: "eu-west-2"}), "eu-west-2", "with the option: region")
}

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

// TestPresignByRole: credentials that expire before the lifetime of the address cannot sign.
func TestPresignByRole(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		expires time.Duration // 0: never
		want    error
	}{
		"key":             {0, nil},
		"long session":    {2 * time.Hour, nil},
		"session to end":  {59 * time.Minute, errors.ErrUnsupported},
		"session of old":  {-time.Minute, errors.ErrUnsupported},
		"just as long as": {time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := newDriver(Config{Bucket: "bucket", Endpoint: "http://127.0.0.1:1"}, slog.New(slog.DiscardHandler))
			test.Must(t, err)
			d.now = func() time.Time { return now }
			options := d.client.Options()
			options.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{
					AccessKeyID: "id", SecretAccessKey: "secret", SessionToken: "session",
					CanExpire: tt.expires != 0, Expires: now.Add(tt.expires),
				}, nil
			})
			d.client = awss3.New(options)
			d.presigner = newPresigner(d.client)
			address, err := d.Presign(t.Context(), "object", storagedrivers.PresignOptions{Lifetime: time.Hour})
			test.Is(t, err, tt.want)
			test.Equal(t, address != "", tt.want == nil, "address", address)
		})
	}
}

// TestPresignShort: a lifetime below a second is refused. The SDK would make 0 s of it, or 15
// minutes.
func TestPresignShort(t *testing.T) {
	t.Parallel()
	d := at(t, "http://127.0.0.1:1")
	for lifetime, ok := range map[time.Duration]bool{-time.Second: false, 0: false, time.Second - 1: false, time.Second: true} {
		address, err := d.Presign(t.Context(), "object", storagedrivers.PresignOptions{Lifetime: lifetime})
		if (err == nil) != ok || (address != "") != ok {
			t.Errorf("%v: address %q, error %v", lifetime, address, err)
		}
	}
}

// TestPresignBesideRequests: signing shares nothing with other requests that it writes to. The race
// detector would find it.
func TestPresignBesideRequests(t *testing.T) {
	t.Parallel()
	d := at(t, "http://127.0.0.1:1")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			_, err := d.Presign(t.Context(), "object", storagedrivers.PresignOptions{Lifetime: time.Hour})
			test.Is(t, err, nil)
		})
		all.Go(func() {
			_, err := d.Stat(t.Context(), "object")
			test.Fails(t, err, "there is an object at a port without a service")
		})
	}
	all.Wait()
}
