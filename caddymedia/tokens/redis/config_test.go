package redis

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// complete returns a complete configuration with options in JSON.
func complete(t *testing.T, input string) *Config {
	t.Helper()
	c := new(Config)
	if err := json.Unmarshal([]byte(input), c); err != nil {
		t.Fatalf("%s: %v", input, err)
	}
	if err := c.Complete(""); err != nil {
		t.Fatalf("%s: %v", input, err)
	}
	return c
}

// client returns the options of the client.
func client(t *testing.T, input string) *goredis.UniversalOptions {
	t.Helper()
	o, err := complete(t, input).clientOptions()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestClientOptions(t *testing.T) {
	t.Parallel()
	cert, _ := certificate(t)
	o := client(t, `{"addresses":["127.0.0.1:1","127.0.0.1:2"],"master_name":"main","username":"media",
		"password":"hunter2","sentinel_username":"watcher","sentinel_password":"s","db":3,
		"tls":true,"tls_ca_file":"`+cert+`","tls_server_name":"redis.test",
		"timeout":2000000000,"pool_size":7}`)
	if o.Password != "hunter2" || o.ReadTimeout != 2*time.Second || o.TLSConfig.ServerName != "redis.test" ||
		o.TLSConfig.RootCAs == nil || o.PoolSize != 7 || o.DB != 3 || o.MasterName != "main" {
		t.Errorf("options: %+v", o)
	}
}

// TestSchema checks the description of the options: which are secret, and that all are explained.
func TestSchema(t *testing.T) {
	t.Parallel()
	s := new(Config).Schema()
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(s.Help, "Keeps tokens ") {
		t.Errorf("help %q", s.Help)
	}
	var secrets []string
	for _, o := range s.Options {
		if o.Type == "switch" && o.Default == "" {
			t.Errorf("%s: no default", o.Name)
		}
		if o.Secret {
			secrets = append(secrets, o.Name)
		}
	}
	if want := []string{"url", "password", "sentinel_password"}; !slices.Equal(secrets, want) {
		t.Errorf("secrets %q, want %q", secrets, want)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	o := client(t, `{"url":"rediss://u:p%40w@example.com/5"}`)
	if o.Addrs[0] != "example.com:6379" || o.Username != "u" || o.Password != "p@w" || o.DB != 5 || o.TLSConfig == nil {
		t.Errorf("options: %+v", o)
	}
	if o := client(t, `{}`); o.Addrs[0] != defaultAddress || o.TLSConfig != nil {
		t.Errorf("defaults: %+v", o)
	}
}

// TestNegative: negative numbers, which only JSON can contain, are refused.
func TestNegative(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"db", "pool_size", "timeout"} {
		c := new(Config)
		if err := json.Unmarshal([]byte(`{"`+option+`":-1}`), c); err != nil {
			t.Fatal(err)
		}
		if err := c.Complete(""); err == nil || !strings.HasPrefix(err.Error(), option+" is a ") {
			t.Errorf("%s: got %v", option, err)
		}
	}
}

func TestWrong(t *testing.T) {
	t.Parallel()
	noPEM := filepath.Join(t.TempDir(), "x.pem")
	if err := os.WriteFile(noPEM, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for input, wantErr := range map[string]string{
		`{"addresses": ["localhost"]}`:                                         `"localhost" is not <host>:<port>`,
		`{"addresses": ["a:1", "b:1"]}`:                                        "cluster or master_name",
		`{"cluster": true, "master_name": "m"}`:                                "exclude each other",
		`{"cluster": true, "db": 1}`:                                           "database 0",
		`{"sentinel_password": "x"}`:                                           "need master_name",
		`{"tls_ca_file": "x"}`:                                                 "need tls",
		`{"tls": true, "tls_cert_file": "x"}`:                                  "need each other",
		`{"tls": true, "tls_ca_file": "/nonexistent"}`:                         "tls_ca_file",
		`{"tls": true, "tls_ca_file": "` + noPEM + `"}`:                        "no certificate",
		`{"url": "redis://localhost", "password": "x"}`:                        "a url excludes",
		`{"url": "http://:hunter2@localhost"}`:                                 "url: want redis[s]://",
		`{"url": "redis://:hunter2@localhost?pool_size=3"}`:                    "url: want redis[s]://",
		`{"url": "redis://:hunter2@localhost/x"}`:                              "url: not understood",
		`{"url": "redis://:hunter2@localhost/-1"}`:                             "url: not understood",
		`{"url": "redis://:hunter2@local%zzhost"}`:                             "url: want redis[s]://",
		`{"tls": true, "tls_cert_file": "` + noPEM + `", "tls_key_file": "x"}`: "tls_key_file",
	} {
		c := new(Config)
		err := json.Unmarshal([]byte(input), c)
		if err == nil {
			err = c.Complete("")
		}
		if err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%s: got %v, want an error with %q", input, err, wantErr)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in the error: %v", input, err)
		}
	}
}
