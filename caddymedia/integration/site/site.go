// Package site runs whole Caddys for the end to end tests: a Site in the process of the test, a
// Child in a process of its own, and clients for both. A Site is a process-global, so its tests are
// serial; packages of tests run side by side. Each of them calls Main in its TestMain.
package site

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// The accounts of the tests. Their hashes are cheap ones:
//
//	caddy hash-password -a argon2id --argon2id-memory 64
const (
	APIKey      = "site-one"
	OtherKey    = "site-two"
	Password    = "secret"
	CheapHash   = "$argon2id$v=19$m=64,t=1,p=1$4Zz0Ov8UYBl8SIBaXP3PIQ$A6oNBFDUyPJsjGVdXdDqkc7pFDG6P+xnupYfNmFID4o"
	Account     = "account " + APIKey + " " + CheapHash + "\n"
	TwoAccounts = Account + "account " + OtherKey + " " + CheapHash + "\n"
)

// Basic are the lines of most sites inside the global option media: an account, and an image and a
// file alias content in the folder $ROOT.
const Basic = Account + LocalDefault + "image_alias content\nfile_alias content\n"

// LocalDefault is the storage "default" in the folder $ROOT.
const LocalDefault = "storage default {\ndriver local $ROOT\n}\n"

// Config is the configuration of a site. In every part $ROOT stands for the folder of the
// site's storage.
type Config struct {
	// Media are lines inside the global option media. A memory store is added unless they configure
	// a token store.
	Media string
	// Site are lines inside the site block.
	Site string
	// Global are further global options.
	Global string
	// Servers are lines inside the global option servers.
	Servers string
	// Log is the format of the global log, JSON if empty.
	Log string
	// DropUnderscores omits expected_underscore_headers.
	DropUnderscores bool
	// TLS serves https, with HTTP/2 and HTTP/3.
	TLS bool
}

// Site is a site that runs in this process. There is only one at a time, so tests that use it
// cannot be parallel.
type Site struct {
	URL     string // scheme, host and port, without a slash
	block   string // the address in the Caddyfile
	Address string // host and port
	Root    string // $ROOT
	logFile string
	Client  *http.Client

	certificate, key string // the paths of their files, with TLS
}

// Start runs a site until the test ends. media are lines inside the global option media, and
// block those inside the site block.
func Start(t *testing.T, media, block string) *Site {
	t.Helper()
	return StartConfig(t, Config{Media: media, Site: block})
}

// StartConfig is Start with the whole configuration.
func StartConfig(t *testing.T, config Config) *Site {
	t.Helper()
	folder := TempFolder(t)
	s := &Site{
		Address: servers.FreeAddress(t),
		Root:    filepath.Join(folder, "storage"),
		logFile: filepath.Join(folder, "caddy.log"),
	}
	_, port, _ := net.SplitHostPort(s.Address)
	s.URL, s.block = "http://"+s.Address, "http://:"+port
	transport := &http.Transport{DisableCompression: true}
	if config.TLS {
		s.URL, s.block = "https://localhost:"+port, "https://localhost:"+port
		transport.ForceAttemptHTTP2 = true
		transport.TLSClientConfig = &tls.Config{RootCAs: s.certify(t, folder), NextProtos: []string{"h2", "http/1.1"}}
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Address)
		}
	}
	s.Client = &http.Client{
		Transport:     transport,
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(func() {
		s.Client.CloseIdleConnections()
		if err := caddy.Stop(); err != nil {
			t.Errorf("stopping Caddy: %v", err)
		}
	})
	if err := s.TryLoad(t, config); err != nil {
		t.Fatal(err)
	}
	return s
}

// certify writes a certificate for localhost and returns a pool that trusts it. Caddy would issue
// its own certificate during its start. Caddy 2.11.8 has a data race there: an event reads the TLS
// app while Start writes it.
func (s *Site) certify(t *testing.T, folder string) *x509.CertPool {
	t.Helper()
	s.key = servers.Certificate(t, folder)
	s.certificate = filepath.Join(folder, "cert")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ReadFile(t, s.certificate))
	return pool
}

// Certificate returns the certificate of a site with TLS as PEM.
func (s *Site) Certificate(t *testing.T) []byte {
	t.Helper()
	return ReadFile(t, s.certificate)
}

// Load loads another configuration for the same address and folder into the running Caddy.
func (s *Site) Load(t *testing.T, config Config) {
	t.Helper()
	if err := s.TryLoad(t, config); err != nil {
		t.Fatal(err)
	}
	s.AwaitSwitch(t)
}

// AwaitSwitch waits until the listener of the old configuration is closed. That happens shortly
// after the new one has opened, and connections queued there by the kernel are reset.
func (s *Site) AwaitSwitch(t *testing.T) {
	t.Helper()
	s.Client.CloseIdleConnections()
	s.Client.Transport = s.Client.Transport.(*http.Transport).Clone()
	const often = 20
	for good, deadline := 0, time.Now().Add(time.Minute); good < often; time.Sleep(time.Millisecond) {
		good++
		conn, err := net.Dial("tcp", s.Address)
		if err == nil {
			conn.SetDeadline(deadline)
			_, err = conn.Write([]byte("HEAD /settled HTTP/1.0\r\n\r\n"))
		}
		if err == nil {
			_, err = conn.Read(make([]byte, 1))
		}
		if conn != nil {
			conn.Close()
		}
		if err != nil {
			good = 0
		}
		if time.Now().After(deadline) {
			t.Fatalf("the site does not answer: %v", err)
		}
	}
}

// TryLoad is Load, but returns an error if the configuration is refused.
func (s *Site) TryLoad(t *testing.T, config Config) error {
	t.Helper()
	source := s.caddyfile(config)
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(source), nil)
	if err != nil {
		t.Logf("Caddyfile:\n%s", source)
		return err
	}
	for _, w := range warnings {
		if !strings.Contains(w.Message, "not formatted") {
			t.Errorf("adapting: %v", w)
		}
	}
	return caddy.Load(adapted, true)
}

func (s *Site) caddyfile(config Config) string {
	var b strings.Builder
	b.WriteString("{\nadmin off\npersist_config off\nskip_install_trust\n")
	if config.TLS {
		b.WriteString("auto_https off\n")
	}
	b.WriteString("log {\noutput file " + s.logFile + "\nlevel DEBUG\n" + cmp.Or(config.Log, "format json\n") + "}\n")
	b.WriteString(config.Global + "\nservers {\n" + config.Servers + "\n")
	if !config.DropUnderscores {
		b.WriteString("expected_underscore_headers HTTP_SERVICE_API_KEY HTTP_SERVICE_ACCESS_TOKEN\n")
	}
	b.WriteString("}\nmedia {\n" + config.Media + "\n")
	if !strings.Contains("\n"+config.Media, "\ntokens ") {
		b.WriteString("tokens memory\n")
	}
	b.WriteString("}\n}\n" + s.block + " {\nbind 127.0.0.1\n")
	if config.TLS {
		b.WriteString("tls " + s.certificate + " " + s.key + "\n")
	}
	b.WriteString(config.Site + "\n}\n")
	return strings.ReplaceAll(b.String(), "$ROOT", s.Root)
}

// Logged returns the log of Caddy so far.
func (s *Site) Logged(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(s.logFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}

// WaitForLog waits until Caddy has logged a text, because a request is logged after its answer.
func (s *Site) WaitForLog(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if strings.Contains(s.Logged(t), text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log never has %q:\n%s", text, s.Logged(t))
		}
	}
}

// TempFolder is t.TempDir for folders in which a Caddy may still write when the test ends.
func TempFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "media-site-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// Clients returns one client per version of HTTP, for a site with TLS.
func (s *Site) Clients(t *testing.T) map[string]*http.Client {
	t.Helper()
	plain := s.Client.Transport.(*http.Transport).Clone()
	plain.ForceAttemptHTTP2 = false
	plain.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	plain.TLSClientConfig.NextProtos = []string{"http/1.1"}
	t.Cleanup(plain.CloseIdleConnections)
	quick := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: plain.TLSClientConfig.RootCAs},
		Dial: func(ctx context.Context, _ string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
			return quic.DialAddrEarly(ctx, s.Address, tlsConfig, config)
		},
	}
	t.Cleanup(func() { quick.Close() })
	return map[string]*http.Client{
		"HTTP/1.1": {Transport: plain, Timeout: s.Client.Timeout},
		"HTTP/2.0": s.Client,
		"HTTP/3.0": {Transport: quick, Timeout: s.Client.Timeout},
	}
}

// Dial opens a connection for requests that no HTTP client sends.
func (s *Site) Dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// AtRoot is the begin of a storage "default" that keeps items at the root of $ROOT. The block is
// open.
const AtRoot = "storage default {\ndriver local $ROOT\nsub_folder_format /\n"

// TokenPath is the path of the token endpoint.
const TokenPath = "/api/auth/generateToken"

// OnBolt is a configuration whose tokens survive a restart.
const OnBolt = Account + Binaries

// Binaries are aliases for files ending in bin: content keeps existing items, over replaces
// them.
const Binaries = `
storage keep {
	driver local $ROOT/keep
}
storage replace {
	driver local $ROOT/replace
	overwrite_strategy overwrite
}
file_alias content {
	storage keep
	prefix /
	extensions bin
}
file_alias over {
	storage replace
	prefix /
	extensions bin
}
`

// InMemory is a configuration whose tokens end with the process.
const InMemory = "tokens memory\n" + Account + Binaries
