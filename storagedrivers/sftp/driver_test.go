package sftp

import (
	"encoding/json"
	"log/slog"
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

func parse(text string) (*SFTP, error) {
	s := new(SFTP)
	return s, s.UnmarshalCaddyfile(caddyfile.NewTestDispenser(text))
}

func TestCaddyfile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"sftp host {\nuser media\n}":                `{"address":"host","user":"media"}`,
		"sftp {\naddress [::1]:2222\nuser media\n}": `{"address":"[::1]:2222","user":"media"}`,
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
	} {
		s, err := parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := json.Marshal(s)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, want %s, error %v", text, got, want, err)
		}
	}
}

func TestCaddyfileErrors(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"colour red":                  `unknown option "colour" of an sftp storage`,
		"user":                        "takes one value",
		"user a b":                    "takes one value",
		"user a\nuser b":              `option "user" of an sftp storage is given twice`,
		"known_hosts":                 "wrong argument count",
		"host_key":                    "wrong argument count",
		"agent maybe":                 "agent is one of on, off",
		"insecure_skip_host_key true": "insecure_skip_host_key is one of on, off",
		"connections 0":               "connections is a number above zero",
		"timeout soon":                "timeout is a duration",
		"address elsewhere":           `unknown option "address"`,
		"agent on":                    "user is missing",
	} {
		if _, err := parse("sftp host {\n" + line + "\n}"); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(want)) {
			t.Errorf("%q: error %v, want %q", line, err, want)
		}
	}
	if _, err := parse("sftp one two"); err == nil {
		t.Error("two addresses were accepted")
	}
}

// minimal returns a configuration with only the required options.
func minimal() *SFTP {
	return &SFTP{Config: Config{Address: "host", User: "somebody", Password: "secret", InsecureSkipHostKey: true}}
}

func TestProvision(t *testing.T) {
	t.Setenv("SFTP_TEST_HOST", "files.example.com")
	s := minimal()
	s.Address = "{env.SFTP_TEST_HOST}"
	if err := s.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	if s.config.Address != "files.example.com:22" || s.config.Root != "." ||
		s.config.Connections != defaultConnections || s.Timeout() != network.DefaultTimeout {
		t.Errorf("provisioned %+v", s.config)
	}
	if s.Address != "{env.SFTP_TEST_HOST}" {
		t.Error("the raw address was lost")
	}
	d, err := s.NewDriver(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*SFTP){
		"address": func(s *SFTP) { s.Address = "other" }, "password": func(s *SFTP) { s.Password = "other" },
		"root": func(s *SFTP) { s.Root = "/other" }, "timeout": func(s *SFTP) { s.SilenceTimeout = options.Duration(time.Second) },
	} {
		other := minimal()
		other.Address = s.Address
		same := *other
		same.KnownHosts, same.HostKeys = []string{}, []string{} // as JSON may spell none
		change(other)
		for _, module := range []*SFTP{other, &same} {
			if err := module.Provision(caddy.Context{}); err != nil {
				t.Fatal(err)
			}
		}
		if other.PoolKey() == s.PoolKey() {
			t.Errorf("another %s has the same pool key", name)
		}
		if same.PoolKey() != s.PoolKey() {
			t.Error("an equal module has another pool key")
		}
	}
}

func TestProvisionErrors(t *testing.T) {
	t.Setenv(agentSocket, "")
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, []byte("host ssh-ed25519 %%%\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*SFTP){
		"address is missing":                     func(s *SFTP) { s.Address = "" },
		"user is missing":                        func(s *SFTP) { s.User = "" },
		"one of password, private_key and agent": func(s *SFTP) { s.Password = "" },
		"password: there is a placeholder in it": func(s *SFTP) { s.Password = "{no.such}" },
		"known_hosts: unrecognized placeholder":  func(s *SFTP) { s.KnownHosts = []string{"{no.such}"} },
		"private_key: open":                      func(s *SFTP) { s.PrivateKey = filepath.Join(dir, "missing") },
		"private_key: ssh: no key found":         func(s *SFTP) { s.PrivateKey = broken },
		"private_key: ssh: this private key is passphrase protected": func(s *SFTP) {
			s.PrivateKey = phrasedKey(t)
		},
		"private_key: x509: decryption password incorrect": func(s *SFTP) {
			s.PrivateKey, s.Passphrase = phrasedKey(t), "other"
		},
		"agent: SSH_AUTH_SOCK is not set":                             func(s *SFTP) { s.Agent = true },
		"host_key is required to recognise the host":                  func(s *SFTP) { s.InsecureSkipHostKey = false },
		"insecure_skip_host_key contradicts known_hosts and host_key": func(s *SFTP) { s.HostKeys = []string{"SHA256:abc"} },
		"neither a public key nor a SHA256 fingerprint":               func(s *SFTP) { s.HostKeys = []string{"ssh-ed25519 AAAA"} },
		"known_hosts: open":                                           func(s *SFTP) { s.KnownHosts = []string{filepath.Join(dir, "missing")} },
		"known_hosts: knownhosts: " + broken + ":1":                   func(s *SFTP) { s.KnownHosts = []string{broken} },
		"connections is a number above zero":                          func(s *SFTP) { s.Connections = -1 },
		"timeout is a duration above zero":                            func(s *SFTP) { s.SilenceTimeout = -1 },
	} {
		s := minimal()
		change(s)
		if err := s.Provision(caddy.Context{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	s := minimal()
	s.PrivateKey, s.Passphrase, s.Password = phrasedKey(t), testPassword, ""
	if err := s.Provision(caddy.Context{}); err != nil {
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
