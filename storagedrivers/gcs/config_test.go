package gcs

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key.json")
	test.Must(t, os.WriteFile(key, []byte(serviceAccountKey(t, "http://127.0.0.1:1/token")), 0o600))
	other := filepath.Join(t.TempDir(), "other.json")
	test.Must(t, os.WriteFile(other, []byte(`{"type":"authorized_user"}`), 0o600))
	for name, tt := range map[string]struct {
		config Config
		want   Config
		err    string
	}{
		"bucket": {config: Config{Bucket: "my-media"}, want: Config{Bucket: "my-media"}},
		"slashes": {
			config: Config{Bucket: "b", Endpoint: "http://localhost:4443/", Prefix: "/a/b/", Timeout: 5},
			want:   Config{Bucket: "b", Endpoint: "http://localhost:4443", Prefix: "a/b", Timeout: 5},
		},
		"no bucket":        {err: "bucket is missing"},
		"address":          {config: Config{Bucket: "gs://my-media"}, err: "bucket is a name"},
		"hidden prefix":    {config: Config{Bucket: "b", Prefix: ".a"}, err: "prefix: "},
		"no scheme":        {config: Config{Bucket: "b", Endpoint: "localhost:4443"}, err: "endpoint is an address"},
		"path":             {config: Config{Bucket: "b", Endpoint: "http://localhost/storage"}, err: "endpoint is an address without a path"},
		"no address":       {config: Config{Bucket: "b", Endpoint: "http://\x00"}, err: "endpoint is an address"},
		"negative timeout": {config: Config{Bucket: "b", Timeout: -1}, err: "timeout is a duration above zero, not -1ns"},
		"no key":           {config: Config{Bucket: "b", CredentialsFile: key + ".none"}, err: "credentials_file: "},
		"other key":        {config: Config{Bucket: "b", CredentialsFile: other}, err: "not the key of a service account"},
		"key":              {config: Config{Bucket: "b", CredentialsFile: key}, want: Config{Bucket: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := tt.config
			err := g.Complete()
			if tt.err != "" {
				test.Says(t, err, tt.err)
				return
			}
			test.Must(t, err)
			if (g.key != "") != (g.CredentialsFile != "") {
				t.Errorf("key %q of file %q", g.key, g.CredentialsFile)
			}
			tt.want.CredentialsFile = tt.config.CredentialsFile
			tt.want.Endpoint = cmp.Or(tt.want.Endpoint, google)
			tt.want.Timeout = cmp.Or(tt.want.Timeout, options.Duration(network.DefaultTimeout))
			if g.key = ""; g != tt.want {
				t.Errorf("got %+v, want %+v", g, tt.want)
			}
		})
	}
}

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	drivertest.Describe(t, drivertest.Description{
		New:         newConfig,
		Options:     `{"bucket": "media"}`,
		Where:       "media",
		Missing:     `{"bucket": "nowhere", "endpoint": "` + inProcess(t).Endpoint + `"}`,
		Unreachable: `{"bucket": "media", "endpoint": "http://127.0.0.1:1"}`,
		Same: []string{
			`{"bucket": "media", "timeout": "5s", "prefix": "/"}`,
			`{"bucket": "media", "endpoint": "https://storage.europe-west3.rep.googleapis.com"}`,
		},
		Below: []string{`{"bucket": "media", "prefix": "below/it"}`},
		Apart: []string{
			`{"bucket": "other"}`,
			`{"bucket": "media", "endpoint": "http://127.0.0.1:4443"}`,
		},
	})
}
