package gcs

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestUnmarshalCaddyfile(t *testing.T) {
	t.Parallel()
	full := GCS{Config: Config{Bucket: "my-media", CredentialsFile: "/run/secrets/key.json", Endpoint: "https://storage.example.com", Prefix: "a/b"}, SilenceTimeout: options.Duration(5 * time.Second)}
	const options = `
		credentials_file /run/secrets/key.json
		endpoint https://storage.example.com
		prefix a/b
		timeout 5s
	}`
	for name, tt := range map[string]struct {
		text string
		want GCS
		err  string
	}{
		"full":           {text: "gcs {\nbucket my-media" + options, want: full},
		"argument":       {text: "gcs my-media {" + options, want: full},
		"bucket only":    {text: "gcs my-media", want: GCS{Config: Config{Bucket: "my-media"}}},
		"two arguments":  {text: "gcs a b", err: "argument"},
		"bucket twice":   {text: "gcs a {\nbucket b\n}", err: `unknown option "bucket"`},
		"unknown option": {text: "gcs a {\nregion b\n}", err: `unknown option "region" of a gcs storage`},
		"option twice":   {text: "gcs a {\nprefix b\nprefix c\n}", err: "given twice"},
		"no value":       {text: "gcs a {\nprefix\n}", err: "takes one value"},
		"no duration":    {text: "gcs a {\ntimeout soon\n}", err: "timeout is a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got GCS
			err := got.UnmarshalCaddyfile(caddyfile.NewTestDispenser(tt.text))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %+v, error %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestProvision(t *testing.T) {
	t.Setenv("GCS_TEST_BUCKET", "my-media")
	key := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(key, []byte(serviceAccountKey(t, "http://127.0.0.1:1/token")), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, []byte(`{"type":"authorized_user"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		module GCS
		want   Config
		err    string
	}{
		"bucket": {module: GCS{Config: Config{Bucket: "{env.GCS_TEST_BUCKET}"}}, want: Config{Bucket: "my-media"}},
		"slashes": {
			module: GCS{Config: Config{Bucket: "b", Endpoint: "http://localhost:4443/", Prefix: "/a/b/"}, SilenceTimeout: 5},
			want:   Config{Bucket: "b", Endpoint: "http://localhost:4443", Prefix: "a/b", Timeout: 5},
		},
		"no bucket":        {err: "bucket is missing"},
		"unset variable":   {module: GCS{Config: Config{Bucket: "{env.GCS_TEST_NONE}"}}, err: "bucket: "},
		"address":          {module: GCS{Config: Config{Bucket: "gs://my-media"}}, err: "bucket is a name"},
		"hidden prefix":    {module: GCS{Config: Config{Bucket: "b", Prefix: ".a"}}, err: "prefix: "},
		"no scheme":        {module: GCS{Config: Config{Bucket: "b", Endpoint: "localhost:4443"}}, err: "endpoint is an address"},
		"path":             {module: GCS{Config: Config{Bucket: "b", Endpoint: "http://localhost/storage"}}, err: "endpoint is an address without a path"},
		"no address":       {module: GCS{Config: Config{Bucket: "b", Endpoint: "http://\x00"}}, err: "endpoint is an address"},
		"negative timeout": {module: GCS{Config: Config{Bucket: "b"}, SilenceTimeout: -1}, err: "timeout is a duration above zero, not -1ns"},
		"no key":           {module: GCS{Config: Config{Bucket: "b", CredentialsFile: key + ".none"}}, err: "credentials_file: "},
		"other key":        {module: GCS{Config: Config{Bucket: "b", CredentialsFile: other}}, err: "not the key of a service account"},
		"key":              {module: GCS{Config: Config{Bucket: "b", CredentialsFile: key}}, want: Config{Bucket: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := tt.module
			err := g.Provision(caddy.Context{})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (g.config.key != "") != (g.CredentialsFile != "") {
				t.Errorf("key %q of file %q", g.config.key, g.CredentialsFile)
			}
			tt.want.CredentialsFile = tt.module.CredentialsFile
			tt.want.Endpoint = cmp.Or(tt.want.Endpoint, google)
			tt.want.Timeout = cmp.Or(tt.want.Timeout, network.DefaultTimeout)
			if g.config.key = ""; g.config != tt.want {
				t.Errorf("got %+v, want %+v", g.config, tt.want)
			}
			if g.Bucket != tt.module.Bucket {
				t.Errorf("the raw bucket is now %q", g.Bucket)
			}
		})
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	info, err := caddy.GetModule("media.storages.gcs")
	if err != nil {
		t.Fatal(err)
	}
	g := info.New().(*GCS)
	g.config = Config{Bucket: "b", Timeout: time.Minute}
	if g.Timeout() != time.Minute {
		t.Errorf("timeout %s", g.Timeout())
	}
	driver, err := g.NewDriver(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Close(); err != nil {
		t.Errorf("closing what was never used: %v", err)
	}
	same, rotated := GCS{config: g.config}, GCS{config: g.config}
	rotated.config.key = "another"
	if g.PoolKey() != same.PoolKey() || g.PoolKey() == rotated.PoolKey() {
		t.Errorf("pool keys %q, %q, %q", g.PoolKey(), same.PoolKey(), rotated.PoolKey())
	}
}
