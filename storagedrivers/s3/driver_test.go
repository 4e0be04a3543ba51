package s3

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/options"
)

func parse(t *testing.T, text string) (*S3, error) {
	t.Helper()
	s := new(S3)
	return s, s.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
}

func provision(s *S3) error { return s.Provision(caddy.Context{}) }

func TestCaddyfile(t *testing.T) {
	t.Setenv("MEDIA_TEST_SECRET", "hush")
	s, err := parse(t, `s3 pictures {
		region            eu-central-1
		endpoint          https://s3.example.com
		access_key_id     me
		secret_access_key {env.MEDIA_TEST_SECRET}
		session_token     token
		path_style        off
		prefix            /media/files/
		checksums         when_supported
		timeout           5s
	}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := provision(s); err != nil {
		t.Fatal(err)
	}
	want := Config{
		Bucket: "pictures", Region: "eu-central-1", Endpoint: "https://s3.example.com",
		AccessKeyID: "me", SecretAccessKey: "hush", SessionToken: "token",
		Prefix: "media/files", Checksums: whenSupported, Timeout: 5 * time.Second,
	}
	if got := *s.config.PathStyle; got {
		t.Error("the bucket is named in the path")
	}
	config := s.config
	if config.PathStyle = nil; config != want {
		t.Errorf("got %+v, want %+v", s.config, want)
	}
	if s.SecretAccessKey != "{env.MEDIA_TEST_SECRET}" || s.Prefix != "/media/files/" {
		t.Errorf("the options as written are gone: %+v", s)
	}
	if s.Timeout() != 5*time.Second {
		t.Errorf("timeout %v, want 5s", s.Timeout())
	}
	driver, err := s.NewDriver(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := driver.Close(); err != nil {
		t.Error(err)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text      string
		pathStyle bool
	}{
		{"s3 pictures", false},
		{"s3 {\n bucket pictures\n}", false},
		{"s3 {\n bucket pictures\n endpoint http://localhost:9000\n}", true},
		{"s3 pictures {\n path_style on\n}", true},
	} {
		s, err := parse(t, tt.text)
		if err == nil {
			err = provision(s)
		}
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if s.config.Bucket != "pictures" || *s.config.PathStyle != tt.pathStyle || s.Timeout() != network.DefaultTimeout {
			t.Errorf("%s: %+v", tt.text, s.config)
		}
	}
}

func TestWrongCaddyfile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"s3 one two":                        "wrong argument count",
		"s3 one {\n bucket two\n}":          `unknown option "bucket"`,
		"s3 one {\n colour red\n}":          `unknown option "colour" of an s3 storage`,
		"s3 one {\n region\n}":              "takes one value",
		"s3 one {\n path_style maybe\n}":    "path_style is one of on, off",
		"s3 one {\n timeout soon\n}":        "timeout is a duration",
		"s3 one {\n prefix a\n prefix b\n}": `option "prefix" of an s3 storage is given twice`,
	} {
		if _, err := parse(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*S3{
		"bucket is missing":             {},
		"region: ":                      {Config: Config{Bucket: "b", Region: "{env.MEDIA_TEST_NOT_SET}"}},
		"go together":                   {Config: Config{Bucket: "b", AccessKeyID: "id"}},
		"secret_access_key go together": {Config: Config{Bucket: "b", SecretAccessKey: "secret"}},
		"session_token goes with":       {Config: Config{Bucket: "b", SessionToken: "token"}},
		"prefix: invalid key":           {Config: Config{Bucket: "b", Prefix: "a/../b"}},
		"checksums is one of":           {Config: Config{Bucket: "b", Checksums: "always"}},
		"above zero, not -1s":           {Config: Config{Bucket: "b"}, SilenceTimeout: options.Duration(-time.Second)},
		"endpoint is an address":        {Config: Config{Bucket: "b", Endpoint: "s3.example.com"}},
		`not "ftp://example.com"`:       {Config: Config{Bucket: "b", Endpoint: "ftp://example.com"}},
		`not "http://[::1"`:             {Config: Config{Bucket: "b", Endpoint: "http://[::1"}},
		`not "https://"`:                {Config: Config{Bucket: "b", Endpoint: "https://"}},
	} {
		if err := provision(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", s, err, want)
		}
	}
}

func TestPoolKeyTellsPlacesApart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	on := true
	for _, s := range []*S3{
		{Config: Config{Bucket: "b"}},
		{Config: Config{Bucket: "c"}},
		{Config: Config{Bucket: "b", Region: "r"}},
		{Config: Config{Bucket: "b", Endpoint: "http://e"}},
		{Config: Config{Bucket: "b", AccessKeyID: "i", SecretAccessKey: "s"}},
		{Config: Config{Bucket: "b", AccessKeyID: "i", SecretAccessKey: "t"}},
		{Config: Config{Bucket: "b", Prefix: "p"}},
		{Config: Config{Bucket: "b", PathStyle: &on}},
		{Config: Config{Bucket: "b", Checksums: whenRequired}},
		{Config: Config{Bucket: "b"}, SilenceTimeout: options.Duration(time.Second)},
	} {
		if err := provision(s); err != nil {
			t.Fatal(err)
		}
		if seen[s.PoolKey()] {
			t.Errorf("the pool key of %+v is another's", s.config)
		}
		seen[s.PoolKey()] = true
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
