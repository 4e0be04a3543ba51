package sftp

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	pkgsftp "github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
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
		"address is missing":                          func(s *Config) { s.Address = "" },
		"user is missing":                             func(s *Config) { s.User = "" },
		"one of password, private_key and agent":      func(s *Config) { s.Password = "" },
		"private_key: reading the file: no such file": func(s *Config) { s.PrivateKey = filepath.Join(dir, "missing") },
		"private_key: ssh: no key found":              func(s *Config) { s.PrivateKey = broken },
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

// checking returns the error of the first check with a configuration.
func checking(t *testing.T, config Config) error {
	t.Helper()
	config.Root, config.Connections, config.Timeout = "objects", 1, options.Duration(network.DefaultTimeout)
	d, err := newDriver(config, slog.New(slog.DiscardHandler))
	test.Must(t, err)
	return errors.Join(d.Check(t.Context()), d.Close())
}

func knownHosts(t *testing.T, lines ...string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "known_hosts")
	test.Must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return []string{path}
}

func fingerprint(t *testing.T, key string) string {
	t.Helper()
	public, err := parsePublicKey(key)
	test.Must(t, err)
	return ssh.FingerprintSHA256(public)
}

func TestHostKeys(t *testing.T) {
	t.Parallel()
	_, others, err := ed25519.GenerateKey(nil)
	test.Must(t, err)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	test.Must(t, err)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	test.Must(t, err)
	s := startServer(t, t.TempDir(), func(s *server) { // beside its ed25519 key
		s.addHostKey(t, rsaKey)
		s.addHostKey(t, ecKey)
	})
	other := publicKey(t, others)
	host := knownhosts.Normalize(s.address)
	line := func(key string) string { return host + " " + key }
	good := map[string]Config{
		"hashed": {KnownHosts: knownHosts(t, knownhosts.HashHostname(host)+" "+s.hostKeys[0])},
		"one of": {HostKeys: []string{other, fingerprint(t, other), s.hostKeys[0]}},
		"file or pin": {
			HostKeys: []string{other}, KnownHosts: knownHosts(t, line(s.hostKeys[2])),
		},
		"skipped": {InsecureSkipHostKey: true},
	}
	for i, key := range s.hostKeys {
		good[fmt.Sprint("file ", i)] = Config{KnownHosts: knownHosts(t, "elsewhere "+other, line(key))}
		good[fmt.Sprint("pin ", i)] = Config{HostKeys: []string{key}}
		good[fmt.Sprint("fingerprint ", i)] = Config{HostKeys: []string{fingerprint(t, key)}}
	}
	for name, config := range good {
		config.Address, config.User, config.Password = s.address, testUser, testPassword
		test.Is(t, checking(t, config), nil, name)
	}
	for name, config := range map[string]Config{
		"another pin":         {HostKeys: []string{other}},
		"another fingerprint": {HostKeys: []string{fingerprint(t, other)}},
		"changed":             {KnownHosts: knownHosts(t, line(other))},
		"unknown":             {KnownHosts: knownHosts(t, "elsewhere "+s.hostKeys[0])},
		"another port":        {KnownHosts: knownHosts(t, "127.0.0.1 "+s.hostKeys[0])},
		"revoked":             {KnownHosts: knownHosts(t, line(s.hostKeys[0]), "@revoked "+line(s.hostKeys[0]))},
	} {
		config.Address, config.User, config.Password = s.address, testUser, testPassword
		err := checking(t, config)
		var hostKey *hostKeyError
		if !errors.As(err, &hostKey) || !strings.Contains(err.Error(), "is not trusted") {
			t.Errorf("%s: error %v", name, err)
		}
		test.IsNot(t, err, storagedrivers.ErrUnavailable)
		test.IsNot(t, err, fs.ErrPermission)
		drivertest.Cause(t, err, wrongHostKey)
	}
}

// TestHostCertificate: a host that presents a certificate is recognised by the authority that
// signed it.
func TestHostCertificate(t *testing.T) {
	t.Parallel()
	_, authority, err := ed25519.GenerateKey(nil)
	test.Must(t, err)
	signer, err := ssh.NewSignerFromKey(authority)
	test.Must(t, err)
	_, key, err := ed25519.GenerateKey(nil)
	test.Must(t, err)
	plain, err := ssh.NewSignerFromKey(key)
	test.Must(t, err)
	certificate := &ssh.Certificate{
		Key: plain.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity,
	}
	test.Must(t, certificate.SignCert(rand.Reader, signer))
	shown, err := ssh.NewCertSigner(certificate, plain)
	test.Must(t, err)
	s := startServer(t, t.TempDir(), func(s *server) { s.config.AddHostKey(shown) })
	config := Config{
		Address: s.address, User: testUser, Password: testPassword,
		KnownHosts: knownHosts(t, "@cert-authority "+knownhosts.Normalize(s.address)+" "+publicKey(t, authority)),
	}
	test.Is(t, checking(t, config), nil)
}

func publicKey(t *testing.T, key any) string {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(key)
	test.Must(t, err)
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// startKeyServer starts a server that requires a key, or the password as a reply to a question.
func startKeyServer(t *testing.T, authorized ssh.PublicKey) *server {
	t.Helper()
	return startServer(t, t.TempDir(), func(s *server) {
		s.config.PasswordCallback = nil
		s.config.PublicKeyCallback = func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if string(key.Marshal()) != string(authorized.Marshal()) {
				return nil, errors.New("wrong")
			}
			return nil, nil
		}
		s.config.KeyboardInteractiveCallback = func(
			_ ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge,
		) (*ssh.Permissions, error) {
			answers, err := ask("", "", []string{"Password: "}, []bool{false})
			if err != nil || len(answers) != 1 || answers[0] != testPassword {
				return nil, errors.New("wrong")
			}
			return nil, nil
		}
	})
}

func TestLogin(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	test.Must(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	test.Must(t, err)
	block, err := ssh.MarshalPrivateKey(key, "")
	test.Must(t, err)
	s := startKeyServer(t, signer.PublicKey())
	t.Setenv(agentSocket, startAgent(t, key))
	for name, config := range map[string]Config{
		"key":         {PrivateKey: string(pem.EncodeToMemory(block))},
		"interactive": {Password: testPassword},
		"agent":       {Agent: true},
		"another key and agent": {
			PrivateKey: phrasedKey(t), Passphrase: testPassword, Agent: true,
		},
	} {
		config.Address, config.User, config.HostKeys = s.address, testUser, s.hostKeys
		test.Is(t, checking(t, config), nil, name)
	}
	for name, config := range map[string]Config{
		"wrong key":      {PrivateKey: phrasedKey(t), Passphrase: testPassword},
		"wrong password": {Password: "wrong"},
	} {
		config.Address, config.User, config.HostKeys = s.address, testUser, s.hostKeys
		err := checking(t, config)
		if !errors.Is(err, fs.ErrPermission) || errors.Is(err, storagedrivers.ErrUnavailable) {
			t.Errorf("%s: error %v, want permission", name, err)
		}
		drivertest.Cause(t, err, wrongLogin)
	}
	t.Setenv(agentSocket, filepath.Join(t.TempDir(), "none"))
	err = checking(t, Config{Address: s.address, User: testUser, HostKeys: s.hostKeys, Agent: true})
	drivertest.Cause(t, err, noAgent)
}

// startAgent starts an agent with a key, and returns its socket.
func startAgent(t *testing.T, key any) string {
	t.Helper()
	ring := agent.NewKeyring()
	test.Must(t, ring.Add(agent.AddedKey{PrivateKey: key}))
	socket := filepath.Join(t.TempDir(), "agent")
	listener, err := net.Listen("unix", socket)
	test.Must(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				_ = agent.ServeAgent(ring, conn) // it ends with the connection
				conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	return socket
}

// TestHostKey: the key that the host presents is the one that its administrator reads there, and
// asking for it needs no login.
func TestHostKey(t *testing.T) {
	t.Parallel()
	server := servers.OpenSSH(t)
	got, err := (&Config{Address: server.Address}).HostKey(t.Context())
	test.Must(t, err)
	if want := fingerprint(t, server.HostKey); fingerprint(t, got.Key) != want || got.Fingerprint != want {
		t.Errorf("got %+v, want %q", got, server.HostKey)
	}
	if strings.ContainsAny(got.Key, "\n") {
		t.Errorf("%q has a line break", got.Key)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	test.Must(t, err)
	defer listener.Close()
	for name, address := range map[string]string{"nobody listens": "127.0.0.1:1", "silent host": listener.Addr().String()} {
		config := Config{Address: address, Timeout: options.Duration(100 * time.Millisecond)}
		_, err := config.HostKey(t.Context())
		test.Fails(t, err, name, "no error")
	}
}

func TestMapError(t *testing.T) {
	t.Parallel()
	own := []error{
		fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, storagedrivers.ErrInvalidKey, storagedrivers.ErrInvalidRange,
		storagedrivers.ErrNoSpace, storagedrivers.ErrUnavailable,
	}
	status := func(code uint32) error { return &pkgsftp.StatusError{Code: code} }
	key, err := parsePublicKey(anyKey)
	test.Must(t, err)
	for _, tt := range []struct{ err, want error }{
		{nil, nil},
		{status(uint32(pkgsftp.ErrSSHFxFailure)), nil},
		{status(uint32(pkgsftp.ErrSSHFxOpUnsupported)), nil},
		{status(uint32(pkgsftp.ErrSSHFxBadMessage)), storagedrivers.ErrInvalidKey},
		{status(uint32(pkgsftp.ErrSSHFxNoConnection)), storagedrivers.ErrUnavailable},
		{status(codeNoSuchPath), fs.ErrNotExist},
		{status(codeExists), fs.ErrExist},
		{status(codeWriteProtect), fs.ErrPermission},
		{status(codeNoSpace), storagedrivers.ErrNoSpace},
		{status(codeQuota), storagedrivers.ErrNoSpace},
		{status(codeInvalidName), storagedrivers.ErrInvalidKey},
		{&os.PathError{Op: "remove", Err: os.ErrNotExist}, fs.ErrNotExist},
		{fmt.Errorf("making a folder: %w", os.ErrPermission), fs.ErrPermission},
		{&os.PathError{Op: "mkdir", Err: syscall.ENOTDIR}, storagedrivers.ErrInvalidKey},
		{pkgsftp.ErrSSHFxConnectionLost, storagedrivers.ErrUnavailable},
		{fmt.Errorf("failed to send packet: %w", io.EOF), storagedrivers.ErrUnavailable},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, storagedrivers.ErrUnavailable},
		{errors.New("ssh: handshake failed: ssh: unable to authenticate, attempted methods [none]"), fs.ErrPermission},
		{fmt.Errorf("ssh: handshake failed: %w", &hostKeyError{"h", key, &knownhosts.KeyError{}}), nil},
		{context.Canceled, nil},
		{fmt.Errorf("%w: %w", context.Canceled, storagedrivers.ErrUnavailable), storagedrivers.ErrUnavailable},
	} {
		got := mapError(tt.err)
		if !errors.Is(got, tt.err) {
			t.Errorf("%v became %v, which does not match it", tt.err, got)
		}
		for _, sentinel := range own {
			if is := errors.Is(got, sentinel); is != (sentinel == tt.want) { //nolint:errorlint // the same value
				t.Errorf("%v: %v, matches %v: %t, want %v", tt.err, got, sentinel, is, tt.want)
			}
		}
	}
}

// anyKey is a public key that no other test uses.
const anyKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"

func TestCauseOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want storagedrivers.Cause
	}{
		{fmt.Errorf("ssh: handshake failed: %w", &ssh.AlgorithmNegotiationError{What: "host key"}), noHostKey},
		{fmt.Errorf("ssh: handshake failed: %w", &ssh.AlgorithmNegotiationError{What: "key exchange"}), ""},
		{errors.New("ssh: handshake failed: ssh: unable to authenticate, attempted methods [none], no supported methods remain"), wrongMethod},
		{errors.New("ssh: handshake failed: ssh: unable to authenticate, attempted methods [none password], no supported methods remain"), wrongLogin},
		{errors.New("no"), ""},
	} {
		test.Equal(t, causeOf(tt.err), tt.want, tt.err, "cause")
	}
	for text, want := range map[string]storagedrivers.Cause{
		`sftp: "Not a directory" (SSH_FX_FAILURE)`: storagedrivers.NotAFolder, `sftp: "Failure" (SSH_FX_FAILURE)`: "",
	} {
		test.Equal(t, causeOfRoot(errors.New(text)), want, text, "cause")
	}
}
