package redis

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers/options"
)

// every is a block with every option.
const every = `redis {
	addresses         127.0.0.1:1 127.0.0.1:2
	master_name       main
	cluster           off
	username          media
	password          {env.TOKENS_TEST_PASSWORD}
	sentinel_username watcher
	sentinel_password s
	db                3
	key_prefix        {x}:
	tls               on
	tls_ca_file       {file}
	tls_server_name   redis.test
	timeout           2s
	pool_size         7
}`

func TestEveryOption(t *testing.T) {
	t.Setenv("TOKENS_TEST_PASSWORD", "hunter2")
	certs := newCertificates(t)
	input := strings.ReplaceAll(every, "{file}", certs.ca)
	m := provision(t, input)
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"addresses":["127.0.0.1:1","127.0.0.1:2"],"master_name":"main","username":"media",` +
		`"password":"{env.TOKENS_TEST_PASSWORD}","sentinel_username":"watcher","sentinel_password":"s","db":3,` +
		`"key_prefix":"{x}:","tls":true,"tls_ca_file":"` + certs.ca + `","tls_server_name":"redis.test",` +
		`"timeout":2000000000,"pool_size":7}`
	if string(raw) != want {
		t.Errorf("JSON:\n got %s\nwant %s", raw, want)
	}
	o := m.options
	if o.Password != "hunter2" || o.ReadTimeout != 2*time.Second || o.TLSConfig.ServerName != "redis.test" ||
		o.TLSConfig.RootCAs == nil || o.PoolSize != 7 || o.DB != 3 || o.MasterName != "main" {
		t.Errorf("options: %+v", o)
	}
	if m.expanded.KeyPrefix != "{x}:" {
		t.Errorf("the keys begin with %q", m.expanded.KeyPrefix)
	}
	if strings.Contains(m.PoolKey(), "hunter2") {
		t.Errorf("pool key: %s", m.PoolKey())
	}
}

// TestSchema checks the description of the options: which are secret, and that all are explained.
func TestSchema(t *testing.T) {
	t.Parallel()
	s := new(Module).Schema()
	if err := s.Err(); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(s.Help, "Keeps tokens ") {
		t.Errorf("help %q", s.Help)
	}
	var secrets []string
	for _, o := range s.Options {
		if o.Type == options.Switch && o.Default == "" {
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

func provision(t *testing.T, input string) *Module {
	t.Helper()
	m := new(Module)
	if err := m.UnmarshalCaddyfile(caddyfile.NewTestDispenser(input)); err != nil {
		t.Fatalf("%s: %v", input, err)
	}
	if err := m.Provision(caddy.Context{}); err != nil {
		t.Fatalf("%s: %v", input, err)
	}
	return m
}

func TestURL(t *testing.T) {
	t.Setenv("TOKENS_TEST_URL", "rediss://u:p%40w@example.com/5")
	m := provision(t, "redis {env.TOKENS_TEST_URL}")
	o := m.options
	if o.Addrs[0] != "example.com:6379" || o.Username != "u" || o.Password != "p@w" || o.DB != 5 || o.TLSConfig == nil {
		t.Errorf("options: %+v", o)
	}
	if m.URL != "{env.TOKENS_TEST_URL}" || m.Password != "" {
		t.Errorf("the configuration holds %+v", m)
	}
	if o := provision(t, "redis").options; o.Addrs[0] != defaultAddress || o.TLSConfig != nil {
		t.Errorf("defaults: %+v", o)
	}
}

func TestPoolKey(t *testing.T) {
	t.Setenv("TOKENS_TEST_ADDRESS", "localhost:6379")
	same := []string{"redis redis://localhost", "redis {\n\taddresses localhost:6379\n}", "redis {\n\taddresses {env.TOKENS_TEST_ADDRESS}\n\ttimeout 500ms\n}"}
	key := provision(t, same[0]).PoolKey()
	for _, input := range same {
		if provision(t, input).PoolKey() != key {
			t.Errorf("%q is another store than %q", input, same[0])
		}
	}
	for _, input := range []string{"redis redis://localhost/1", "redis rediss://localhost", "redis redis://localhost {\n\tkey_prefix x\n}"} {
		if provision(t, input).PoolKey() == key {
			t.Errorf("%q is the same store as %q", input, same[0])
		}
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	keys := make([]string, 0, 2)
	for range 2 { // two certificates under one name
		pem, err := os.ReadFile(newCertificates(t).ca)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(ca, pem, 0o600); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, provision(t, "redis rediss://localhost {\n\ttls_ca_file "+ca+"\n}").PoolKey())
	}
	if keys[0] == keys[1] {
		t.Error("another certificate is the same store")
	}
}

// TestNegative: negative numbers, which only JSON can contain, are refused.
func TestNegative(t *testing.T) {
	t.Parallel()
	for _, option := range []string{"db", "pool_size", "timeout"} {
		m := new(Module)
		if err := json.Unmarshal([]byte(`{"`+option+`":-1}`), m); err != nil {
			t.Fatal(err)
		}
		if err := m.Provision(caddy.Context{}); err == nil || !strings.HasPrefix(err.Error(), option+" is a ") {
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
		"redis a b":            "argument",
		"redis {\n\tport 1\n}": `unknown option "port"`,
		"redis redis://localhost {\n\turl redis://localhost\n}":                 `unknown option "url"`,
		"redis {\n\taddresses localhost:1\n\taddresses localhost:2\n}":          `"addresses" of tokens in redis is given twice`,
		"redis {\n\tdb 1\n\tdb 1\n}":                                            `"db" of tokens in redis is given twice`,
		"redis {\n\tdb one\n}":                                                  "db is a number",
		"redis {\n\tdb\n}":                                                      "takes one value",
		"redis {\n\tusername a b\n}":                                            "takes one value",
		"redis {\n\taddresses\n}":                                               "argument",
		"redis {\n\ttls maybe\n}":                                               "tls is one of on, off",
		"redis {\n\ttimeout soon\n}":                                            "timeout",
		"redis {\n\ttimeout -1s\n}":                                             "timeout is a duration",
		"redis {\n\ttls {\n\t\tca x\n\t}\n}":                                    "takes one value",
		"redis {\n\taddresses localhost\n}":                                     `"localhost" is not <host>:<port>`,
		"redis {\n\taddresses a:1 b:1\n}":                                       "cluster or master_name",
		"redis {\n\tcluster on\n\tmaster_name m\n}":                             "exclude each other",
		"redis {\n\tcluster on\n\tdb 1\n}":                                      "database 0",
		"redis {\n\tsentinel_password x\n}":                                     "need master_name",
		"redis {\n\ttls_ca_file x\n}":                                           "need tls",
		"redis {\n\ttls on\n\ttls_cert_file x\n}":                               "need each other",
		"redis {\n\ttls on\n\ttls_ca_file /nonexistent\n}":                      "tls_ca_file",
		"redis {\n\ttls on\n\ttls_ca_file " + noPEM + "\n}":                     "no certificate",
		"redis {\n\tpassword {env.TOKENS_TEST_NONE}\n}":                         "TOKENS_TEST_NONE",
		"redis redis://localhost {\n\tpassword x\n}":                            "a url excludes",
		"redis http://:hunter2@localhost":                                       "url: want redis[s]://",
		"redis redis://:hunter2@localhost?pool_size=3":                          "url: want redis[s]://",
		"redis redis://:hunter2@localhost/x":                                    "url: not understood",
		"redis redis://:hunter2@localhost/-1":                                   "url: not understood",
		"redis redis://:hunter2@local%zzhost":                                   "url: want redis[s]://",
		"redis {\n\ttls on\n\ttls_cert_file " + noPEM + "\n\ttls_key_file x\n}": "tls_key_file",
	} {
		m := new(Module)
		err := m.UnmarshalCaddyfile(caddyfile.NewTestDispenser(input))
		if err == nil {
			err = m.Provision(caddy.Context{})
		}
		if err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%q: got %v, want an error with %q", input, err, wantErr)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the password is in the error: %v", input, err)
		}
	}
}
