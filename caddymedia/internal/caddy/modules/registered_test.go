package modules_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	_ "github.com/caddymedia/media/caddymedia"
)

// module is what drivers and token stores have in common as Caddy modules.
type module interface {
	caddy.Module
	caddy.Provisioner
	caddyfile.Unmarshaler
	PoolKey() string
}

// parse returns the module of a line such as "s3 images { ... }".
func parse(t *testing.T, text string) (module, error) {
	t.Helper()
	name, _, _ := strings.Cut(text, " ")
	info, err := caddy.GetModule("media.storages." + name)
	if err != nil {
		info, err = caddy.GetModule("media.tokens." + name)
	}
	if err != nil {
		t.Fatal(err)
	}
	m := info.New().(module)
	return m, m.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
}

// provisioned returns the module of a line, ready for use.
func provisioned(t *testing.T, text string) module {
	t.Helper()
	m, err := parse(t, text)
	if err == nil {
		err = m.Provision(caddy.Context{})
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

func TestCaddyfile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`ftp files.example.com {
			user u
			password {env.FTP_PASSWORD}
			root media
			tls explicit
			ca /etc/ca.pem
			server_name example.com
			insecure_skip_verify off
			connections 3
			timeout 10s
		}`: `{"address":"files.example.com","user":"u","password":"{env.FTP_PASSWORD}","root":"media",` +
			`"tls":"explicit","ca":"/etc/ca.pem","server_name":"example.com","connections":3,` +
			`"timeout":10000000000}`,
		`s3 pictures {
			region            eu-central-1
			endpoint          https://s3.example.com
			access_key_id     me
			secret_access_key {env.MEDIA_TEST_SECRET}
			session_token     token
			path_style        off
			prefix            /media/files/
			checksums         when_supported
			timeout           5s
		}`: `{"bucket":"pictures","region":"eu-central-1","endpoint":"https://s3.example.com","access_key_id":"me",` +
			`"secret_access_key":"{env.MEDIA_TEST_SECRET}","session_token":"token","path_style":false,` +
			`"prefix":"/media/files/","checksums":"when_supported","timeout":5000000000}`,
		`azblob {
			container pictures
			account   media
			key       {env.KEY}
			endpoint  http://127.0.0.1:10000/media
			prefix    a/b
			timeout   5s
		}`: `{"container":"pictures","account":"media","key":"{env.KEY}","endpoint":"http://127.0.0.1:10000/media",` +
			`"prefix":"a/b","timeout":5000000000}`,
		"azblob pictures {\n connection_string AccountName=media;AccountKey=a2V5\n}": `{"container":"pictures","connection_string":"AccountName=media;AccountKey=a2V5"}`,
		`gcs my-media {
			credentials_file /run/secrets/key.json
			endpoint https://storage.example.com
			prefix a/b
			timeout 5s
		}`: `{"bucket":"my-media","credentials_file":"/run/secrets/key.json","endpoint":"https://storage.example.com",` +
			`"prefix":"a/b","timeout":5000000000}`,
		`sftp files.example.com:2222 {
			user media
			password {env.SFTP_PASSWORD}
			private_key /etc/keys/id
			passphrase {file./etc/keys/phrase}
			agent on
			known_hosts /etc/known /etc/more
			known_hosts /etc/other
			host_key ssh-ed25519 AAAA comment
			host_key "ssh-rsa BBBB"
			host_key SHA256:abc
			insecure_skip_host_key off
			root /srv/media
			connections 3
			timeout 10s
		}`: `{"address":"files.example.com:2222","user":"media","password":"{env.SFTP_PASSWORD}",` +
			`"private_key":"/etc/keys/id","passphrase":"{file./etc/keys/phrase}","agent":true,` +
			`"known_hosts":["/etc/known","/etc/more","/etc/other"],` +
			`"host_key":["ssh-ed25519 AAAA comment","ssh-rsa BBBB","SHA256:abc"],` +
			`"root":"/srv/media","connections":3,"timeout":10000000000}`,
		"sftp {\naddress [::1]:2222\nuser media\n}": `{"address":"[::1]:2222","user":"media"}`,
		"local {\n root /srv/media\n}":              `{"root":"/srv/media"}`,
		"local {env.ROOT} {\n sync off\n}":          `{"root":"{env.ROOT}","sync":false}`,
		"bolt {env.ROOT}/t.db":                      `{"path":"{env.ROOT}/t.db"}`,
		"memory":                                    `{}`,
		`redis {
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
			tls_ca_file       /etc/ca.pem
			tls_server_name   redis.test
			timeout           2s
			pool_size         7
		}`: `{"addresses":["127.0.0.1:1","127.0.0.1:2"],"master_name":"main","username":"media",` +
			`"password":"{env.TOKENS_TEST_PASSWORD}","sentinel_username":"watcher","sentinel_password":"s","db":3,` +
			`"key_prefix":"{x}:","tls":true,"tls_ca_file":"/etc/ca.pem","tls_server_name":"redis.test",` +
			`"timeout":2000000000,"pool_size":7}`,
	} {
		m, err := parse(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := json.Marshal(m); err != nil || string(got) != want {
			t.Errorf("%s:\n got %s\nwant %s, error %v", text, got, want, err)
		}
	}
}

// TestWrong: errors name the option, and contain no secret.
func TestWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"ftp {\n nope x\n}":                                      `unknown option "nope" of an ftp storage`,
		"ftp a {\n address b\n}":                                 `unknown option "address"`,
		"ftp a {\n tls sometimes\n}":                             "tls is one of none, explicit, implicit",
		"ftp a {\n connections 0\n}":                             "connections is a number above zero",
		"ftp a {\n insecure_skip_verify maybe\n}":                "insecure_skip_verify is one of on, off",
		"ftp a {\n user u\n password {env.NOT_SET_X}\n}":         "password: ",
		"s3 one {\n colour red\n}":                               `unknown option "colour" of an s3 storage`,
		"s3 one {\n prefix a\n prefix b\n}":                      `option "prefix" of an s3 storage is given twice`,
		"s3 one {\n region {env.NOT_SET_X}\n}":                   "region: ",
		"azblob pictures {\n container other\n}":                 `unknown option "container"`,
		"azblob pictures {\n account a\n key {env.NOT_SET_X}\n}": "key:",
		"gcs a {\nregion b\n}":                                   `unknown option "region" of a gcs storage`,
		"sftp host {\nagent on\n}":                               "user is missing",
		"sftp host {\nuser a\npassword {no.such}\n}":             "password: there is a placeholder in it",
		"local":                     "root is missing, at Testfile:1",
		"local {env.NOT_SET_X}":     "root: ",
		"bolt {env.NOT_SET_X}/t.db": "NOT_SET_X",
		"bolt {\n\tpath a\n}":       `unknown option "path"`,
		"memory x":                  "argument",
		"redis {\n\tport 1\n}":      `unknown option "port"`,
		"redis redis://localhost {\n\turl redis://x\n}": `unknown option "url"`,
		"redis {\n\tpassword {env.NOT_SET_X}\n}":        "NOT_SET_X",
		"redis http://:hunter2@localhost":               "url: want redis[s]://",
	} {
		m, err := parse(t, text)
		if err == nil {
			err = m.Provision(caddy.Context{})
		}
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the password is in the error: %v", text, err)
		}
	}
}

// TestPoolKey: modules with the same settings, however spelled, share one driver or store across
// reloads. Any other setting is another one.
func TestPoolKey(t *testing.T) {
	t.Setenv("MODULES_TEST_VALUE", "value")
	t.Setenv("MODULES_TEST_ADDRESS", "localhost:6379")
	t.Setenv("XDG_DATA_HOME", "/srv/data")
	seen := map[string]string{}
	for _, same := range [][]string{
		{"local /srv/value", "local /srv/x/../{env.MODULES_TEST_VALUE}/", "local /srv/value {\n sync on\n}"},
		{"local /srv/value {\n sync off\n}"},
		{"local /srv/other"},
		{"s3 b", "s3 b {\n path_style off\n timeout 30s\n}"},
		{"s3 c"},
		{"s3 b {\n region r\n}"},
		{"s3 b {\n endpoint http://e\n}", "s3 b {\n endpoint http://e/\n path_style on\n}"},
		{"s3 b {\n access_key_id i\n secret_access_key value\n}", "s3 b {\n access_key_id i\n secret_access_key {env.MODULES_TEST_VALUE}\n}"},
		{"s3 b {\n access_key_id i\n secret_access_key t\n}"},
		{"s3 b {\n prefix p\n}", "s3 b {\n prefix /p/\n}"},
		{"s3 b {\n path_style on\n}"},
		{"s3 b {\n checksums when_required\n}"},
		{"s3 b {\n timeout 1s\n}"},
		{"azblob pictures {\n account media\n key a2V5\n}"},
		{"azblob pictures {\n account media\n}"},
		{"gcs b", "gcs {\n bucket b\n}"},
		{"gcs b {\n prefix a\n}"},
		{"sftp h {\n user u\n password p\n insecure_skip_host_key on\n}", "sftp h:22 {\n user u\n password p\n insecure_skip_host_key on\n}"},
		{"sftp i {\n user u\n password p\n insecure_skip_host_key on\n}"},
		{"sftp h {\n user u\n password q\n insecure_skip_host_key on\n}"},
		{"sftp h {\n user u\n password p\n insecure_skip_host_key on\n root /r\n}"},
		{"sftp h {\n user u\n password p\n host_key SHA256:" + strings.Repeat("A", 43) + "\n}"},
		{"ftp h {\n user u\n}", "ftp h:21 {\n user u\n tls none\n}"},
		{"ftp i {\n user u\n}"},
		{"ftp h {\n user v\n}"},
		{"ftp h {\n user u\n password p\n}"},
		{"ftp h {\n user u\n root r\n}"},
		{"ftp h {\n user u\n tls explicit\n}"},
		{"ftp h {\n user u\n tls implicit\n}"},
		{"ftp h {\n user u\n tls explicit\n server_name s\n}"},
		{"ftp h {\n user u\n tls explicit\n insecure_skip_verify on\n}"},
		{"ftp h {\n user u\n connections 3\n}"},
		{"ftp h {\n user u\n timeout 1s\n}"},
		{"bolt", "bolt /srv/data/caddy/media/tokens.db"},
		{"bolt /srv/value.db", "bolt /srv/x/../{env.MODULES_TEST_VALUE}.db"},
		{"memory"},
		{"redis redis://localhost", "redis {\n addresses localhost:6379\n}", "redis {\n addresses {env.MODULES_TEST_ADDRESS}\n timeout 500ms\n}"},
		{"redis redis://localhost/1"},
		{"redis rediss://localhost"},
		{"redis redis://localhost {\n key_prefix x\n}"},
		{"redis redis://:hunter2@localhost"},
	} {
		key := provisioned(t, same[0]).PoolKey()
		if other, ok := seen[key]; ok {
			t.Errorf("%q has the key of %q", same[0], other)
		}
		seen[key] = same[0]
		for _, text := range same { // the first one again, too
			if other := provisioned(t, text).PoolKey(); other != key {
				t.Errorf("%q has another key than %q", text, same[0])
			}
		}
		for _, secret := range []string{"hunter2", "a2V5", "secret_access"} {
			if strings.Contains(key, secret) {
				t.Errorf("%q: a secret is in the key", same[0])
			}
		}
	}
}

// TestPoolKeyOfFiles: certificates and keys that were renewed under the same path are used after a
// reload.
func TestPoolKeyOfFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	certificates := []string{certificate(t), certificate(t)}
	for text, contents := range map[string][]string{
		"ftp h {\n user u\n tls explicit\n ca " + file + "\n}":                            certificates,
		"redis rediss://localhost {\n tls_ca_file " + file + "\n}":                        certificates,
		"gcs b {\n credentials_file " + file + "\n}":                                      {serviceKey("1"), serviceKey("2")},
		"sftp h {\n user u\n password {file." + file + "}\n insecure_skip_host_key on\n}": {"one", "two"},
	} {
		var keys [3]string
		for i, content := range []string{contents[0], contents[0], contents[1]} {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			keys[i] = provisioned(t, text).PoolKey()
		}
		if keys[0] != keys[1] {
			t.Errorf("%s: the same file has two keys", text)
		}
		if keys[1] == keys[2] {
			t.Errorf("%s: another file has the same key", text)
		}
	}
}

// serviceKey returns a key of a service account, which Google Cloud Storage reads at its first use.
func serviceKey(id string) string {
	return `{"type":"service_account","client_email":"media@example.com","private_key_id":"` + id + `","private_key":"x"}`
}

// certificate returns a new certificate in PEM.
func certificate(t *testing.T) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
