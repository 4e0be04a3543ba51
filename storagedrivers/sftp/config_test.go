package sftp

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// minimal returns a configuration with only the required options.
func minimal() *Config {
	return &Config{Address: "host", User: "somebody", Password: "secret", InsecureSkipHostKey: true}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	c := minimal()
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}
	if c.Address != "host:22" || c.Root != "." || c.Connections != defaultConnections || c.timeout() != network.DefaultTimeout {
		t.Errorf("completed %+v", c)
	}
	d, err := c.NewDriver(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestWrongOptions(t *testing.T) {
	t.Setenv(agentSocket, "")
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("host ssh-ed25519 %%%\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
		if err := s.Complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	s := minimal()
	s.PrivateKey, s.Passphrase, s.Password = phrasedKey(t), testPassword, ""
	if err := s.Complete(); err != nil {
		t.Error(err)
	}
}

// phrasedKey returns a private key whose passphrase is testPassword. It was made with one round of
// bcrypt, so that reading it is fast.
func phrasedKey(t *testing.T) string {
	t.Helper()
	key, err := os.ReadFile("testdata/key")
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}
