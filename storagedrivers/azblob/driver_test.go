package azblob

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/options"
)

func TestCaddyfile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, input, want string }{
		{
			"argument", `azblob pictures {
				account media
			}`,
			`{"container":"pictures","account":"media"}`,
		},
		{
			"all", `azblob {
				container pictures
				account   media
				key       {env.KEY}
				endpoint  http://127.0.0.1:10000/media
				prefix    a/b
				timeout   5s
			}`,
			`{"container":"pictures","account":"media","key":"{env.KEY}","endpoint":"http://127.0.0.1:10000/media",` +
				`"prefix":"a/b","timeout":5000000000}`,
		},
		{
			"connection string", `azblob pictures {
				connection_string AccountName=media;AccountKey=a2V5
			}`,
			`{"container":"pictures","connection_string":"AccountName=media;AccountKey=a2V5"}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var a AzBlob
			if err := a.UnmarshalCaddyfile(caddyfile.NewTestDispenser(tt.input)); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(a)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, want %s, error %v", got, tt.want, err)
			}
		})
	}
}

func TestCaddyfileErrors(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"azblob a b":                             "wrong argument count",
		"azblob pictures {\n container other\n}": `unknown option "container"`,
		"azblob {\n secret x\n}":                 `unknown option "secret"`,
		"azblob {\n key\n}":                      "takes one value",
		"azblob {\n timeout soon\n}":             "timeout is a duration",
		"azblob {\n account a\n account b\n}":    "given twice",
	} {
		err := new(AzBlob).UnmarshalCaddyfile(caddyfile.NewTestDispenser(input))
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%q: error %v, want %q", input, err, want)
		}
	}
}

func TestProvision(t *testing.T) {
	t.Setenv("AZBLOB_TEST_KEY", "a2V5")
	provisioned := func(a AzBlob) *AzBlob {
		t.Helper()
		if err := a.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.NewDriver(slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		return &a
	}
	key := provisioned(AzBlob{Config: Config{Account: "media", Key: "{env.AZBLOB_TEST_KEY}", Container: "pictures", Prefix: "/a/b/"}, SilenceTimeout: options.Duration(time.Minute)})
	if key.config.Key != "a2V5" || key.Key != "{env.AZBLOB_TEST_KEY}" {
		t.Errorf("the key is %q, raw %q", key.config.Key, key.Key)
	}
	if key.Timeout() != time.Minute || key.config.folder() != "a/b/" {
		t.Errorf("time-out %v, folder %q", key.Timeout(), key.config.folder())
	}
	if got := key.config.serviceURL(); got != "https://media.blob.core.windows.net" {
		t.Errorf("the service is at %q", got)
	}
	same := provisioned(AzBlob{Config: Config{Account: "media", Key: "a2V5", Container: "pictures", Prefix: "/a/b/"}, SilenceTimeout: options.Duration(time.Minute)})
	other := provisioned(AzBlob{Config: Config{Account: "media", Container: "pictures"}}) // default credentials
	if key.PoolKey() != same.PoolKey() || key.PoolKey() == other.PoolKey() {
		t.Errorf("pool keys %q, %q, %q", key.PoolKey(), same.PoolKey(), other.PoolKey())
	}
	provisioned(AzBlob{Config: Config{ConnectionString: "AccountName=media;AccountKey=a2V5;", Container: "$web"}})
	provisioned(AzBlob{Config: Config{ConnectionString: "BlobEndpoint=https://media.example;SharedAccessSignature=sv=1&sig=x", Container: "pictures"}})
	provisioned(AzBlob{Config: Config{Endpoint: "https://media.example/", Container: "pictures"}})
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		options AzBlob
		want    string
	}{
		{AzBlob{Config: Config{Account: "media"}}, "container is missing"},
		{AzBlob{Config: Config{Account: "media", Container: "a_b"}}, "container:"},
		{AzBlob{Config: Config{Account: "media", Container: "ab"}}, "container:"},
		{AzBlob{Config: Config{Account: "media", Container: "a--b"}}, "container:"},
		{AzBlob{Config: Config{Account: "media", Container: strings.Repeat("a", 64)}}, "container:"},
		{AzBlob{Config: Config{Container: "pictures"}}, "without an account"},
		{AzBlob{Config: Config{Container: "pictures", Key: "a2V5"}}, "key: without the account"},
		{AzBlob{Config: Config{Container: "pictures", Account: "media", Key: "not base64!"}}, "key:"},
		{AzBlob{Config: Config{Container: "pictures", Account: "media", Key: "{env.AZBLOB_TEST_NO_SUCH}"}}, "key:"},
		{AzBlob{Config: Config{Container: "pictures", Account: "media", Prefix: "../x"}}, "prefix:"},
		{AzBlob{Config: Config{Container: "pictures", Account: "media", Endpoint: "media.example"}}, "endpoint is an address"},
		{AzBlob{Config: Config{Container: "pictures", Account: "media", Endpoint: "ftp://media.example"}}, "endpoint is an address"},
		{AzBlob{Config: Config{Container: "pictures", Account: "media", Endpoint: "https://media.example?sig=x"}}, "endpoint is an address"},
		{AzBlob{Config: Config{Container: "pictures", Account: "media", Endpoint: "http://media.example"}}, "only sent over https"},
		{AzBlob{Config: Config{Container: "pictures", ConnectionString: "AccountName=a;AccountKey=a2V5", Account: "a"}}, "stands alone"},
		{AzBlob{Config: Config{Container: "pictures", ConnectionString: "AccountName=a;AccountKey=a2V5", Key: "a2V5"}}, "stands alone"},
		{AzBlob{Config: Config{Container: "pictures", ConnectionString: "AccountName=a;AccountKey=a2V5", Endpoint: "https://x"}}, "stands alone"},
		{AzBlob{Config: Config{Container: "pictures", ConnectionString: "nonsense"}}, "connection_string:"},
		{AzBlob{Config: Config{Container: "pictures", ConnectionString: "AccountName=a"}}, "connection_string:"},
	} {
		err := tt.options.Provision(caddy.Context{})
		if err == nil {
			_, err = tt.options.NewDriver(slog.New(slog.DiscardHandler))
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want %q", tt.options, err, tt.want)
		}
	}
}
