package sftp

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// minimal returns a configuration with only the required options.
func minimal() *Config {
	return &Config{Address: "host", User: "somebody", Password: "secret", InsecureSkipHostKey: true}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	c := minimal()
	test.Must(t, c.Complete())
	if c.Address != "host:22" || c.Root != "." || c.Connections != defaultConnections || c.timeout() != network.DefaultTimeout {
		t.Errorf("completed %+v", c)
	}
	d, err := c.NewDriver(slog.New(slog.DiscardHandler))
	test.Must(t, err)
	test.Is(t, d.Close(), nil)
}

func TestWrongOptions(t *testing.T) {
	t.Setenv(agentSocket, "")
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	test.Must(t, os.WriteFile(broken, []byte("host ssh-ed25519 %%%\n"), 0o600))
	for want, change := range map[string]func(*Config){
		"address is missing":                     func(s *Config) { s.Address = "" },
		"user is missing":                        func(s *Config) { s.User = "" },
		"one of password, private_key and agent": func(s *Config) { s.Password = "" },
		"private_key: open":                      func(s *Config) { s.PrivateKey = filepath.Join(dir, "missing") },
		"private_key: ssh: no key found":         func(s *Config) { s.PrivateKey = broken },
		"private_key: ssh: this private key is passphrase protected": func(s *Config) {
			s.PrivateKey = phrasedKey(t)
		},
		"private_key: x509: decryption password incorrect": func(s *Config) {
			s.PrivateKey, s.Passphrase = phrasedKey(t), "other"
		},
		"agent: SSH_AUTH_SOCK is not set":                             func(s *Config) { s.Agent = true },
		"host_key is required to recognise the host":                  func(s *Config) { s.InsecureSkipHostKey = false },
		"insecure_skip_host_key contradicts known_hosts and host_key": func(s *Config) { s.HostKeys = []string{"SHA256:abc"} },
		"neither a public key nor a SHA256 fingerprint":               func(s *Config) { s.HostKeys = []string{"ssh-ed25519 AAAA"} },
		"known_hosts: open":                                           func(s *Config) { s.KnownHosts = []string{filepath.Join(dir, "missing")} },
		"known_hosts: knownhosts: " + broken + ":1":                   func(s *Config) { s.KnownHosts = []string{broken} },
		"connections is a number above zero":                          func(s *Config) { s.Connections = -1 },
		"timeout is a duration above zero":                            func(s *Config) { s.Timeout = -1 },
	} {
		s := minimal()
		change(s)
		test.Says(t, s.Complete(), want)
	}
	s := minimal()
	s.PrivateKey, s.Passphrase, s.Password = phrasedKey(t), testPassword, ""
	test.Is(t, s.Complete(), nil)
}

// phrasedKey returns a private key whose passphrase is testPassword. It was made with one round of
// bcrypt, so that reading it is fast.
func phrasedKey(t *testing.T) string {
	t.Helper()
	key, err := os.ReadFile("testdata/key")
	test.Must(t, err)
	return string(key)
}

// newConfig returns a complete configuration with options in JSON.
var newConfig = drivertest.NewConfig[Config]

func TestDescription(t *testing.T) {
	t.Parallel()
	const host = `"insecure_skip_host_key": true, "address": "files.example.com"`
	folder := t.TempDir()
	test.Must(t, os.WriteFile(folder+"/file", nil, 0o600))
	failing := func(address, password string) string {
		return `{"insecure_skip_host_key": true, "address": "` + address + `", "user": "` + testUser + `", "password": "` + password + `", "root": "file"}`
	}
	s := startServer(t, folder)
	notSecret := []string{"host_key", "insecure_skip_host_key"}
	drivertest.Describe(t, drivertest.Description{
		New:         newConfig,
		Options:     `{` + host + `, "user": "media", "password": "a"}`,
		Where:       "media@files.example.com",
		Refused:     failing(s.address, "wrong"),
		Missing:     failing(s.address, testPassword),
		Unreachable: failing("127.0.0.1:1", testPassword),
		NotSecret:   notSecret,
		Same: []string{
			`{` + host + `, "user": "media", "password": "b", "root": "./x/..", "timeout": "5s", "connections": 5}`,
			`{"address": "Files.example.com:22", "host_key": ["SHA256:abc"], "user": "media", "password": "a"}`,
		},
		Below: []string{`{` + host + `, "user": "media", "password": "a", "root": "below/it/"}`},
		Apart: []string{
			`{` + host + `, "user": "other", "password": "a"}`,
			`{` + host + `, "user": "media", "password": "a", "root": "/srv"}`,
			`{"address": "files.example.com:2222", "insecure_skip_host_key": true, "user": "media", "password": "a"}`,
			`{"address": "files.example.org", "insecure_skip_host_key": true, "user": "media", "password": "a"}`,
		},
	})
	drivertest.Describe(t, drivertest.Description{
		New:       newConfig,
		Options:   `{` + host + `, "user": "media", "password": "a", "root": "/srv/media"}`,
		Where:     "media@files.example.com /srv/media",
		NotSecret: notSecret,
		Same:      []string{`{` + host + `, "user": "other", "password": "a", "root": "/srv//media/"}`},
		Below:     []string{`{` + host + `, "user": "other", "password": "a", "root": "/srv/media/below/it"}`},
		Apart:     []string{`{` + host + `, "user": "media", "password": "a", "root": "/srv/media2"}`},
	})
}
