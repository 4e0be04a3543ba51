package integration

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

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// The accounts of the tests. Their hashes are cheap ones:
//
//	caddy hash-password -a argon2id --argon2id-memory 64
const (
	apiKey     = "site-one"
	otherKey   = "site-two"
	password   = "secret"
	cheapHash  = "$argon2id$v=19$m=64,t=1,p=1$4Zz0Ov8UYBl8SIBaXP3PIQ$A6oNBFDUyPJsjGVdXdDqkc7pFDG6P+xnupYfNmFID4o"
	account    = "account " + apiKey + " " + cheapHash + "\n"
	twoAccount = account + "account " + otherKey + " " + cheapHash + "\n"
)

// basic are the lines of most sites inside the global option media: an account, and an image and a
// file alias content in the folder $ROOT.
const basic = account + localDefault + "image_alias content\nfile_alias content\n"

// localDefault is the storage "default" in the folder $ROOT.
const localDefault = "storage default {\ndriver local $ROOT\n}\n"

// siteConfig is the configuration of a site. In every part $ROOT stands for the folder of the
// site's storage.
type siteConfig struct {
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

// site is a site that runs in this process. There is only one at a time, so tests that use it
// cannot be parallel.
type site struct {
	url     string // scheme, host and port, without a slash
	block   string // the address in the Caddyfile
	address string // host and port
	root    string // $ROOT
	logFile string
	client  *http.Client

	certificate, key string // the paths of their files, with TLS
}

// startSite runs a site until the test ends. media are lines inside the global option media, and
// block those inside the site block.
func startSite(t *testing.T, media, block string) *site {
	t.Helper()
	return startSiteConfig(t, siteConfig{Media: media, Site: block})
}

func startSiteConfig(t *testing.T, config siteConfig) *site {
	t.Helper()
	folder := tempFolder(t)
	s := &site{
		address: servers.FreeAddress(t),
		root:    filepath.Join(folder, "storage"),
		logFile: filepath.Join(folder, "caddy.log"),
	}
	_, port, _ := net.SplitHostPort(s.address)
	s.url, s.block = "http://"+s.address, "http://:"+port
	transport := &http.Transport{DisableCompression: true}
	if config.TLS {
		s.url, s.block = "https://localhost:"+port, "https://localhost:"+port
		transport.ForceAttemptHTTP2 = true
		transport.TLSClientConfig = &tls.Config{RootCAs: s.certify(t, folder), NextProtos: []string{"h2", "http/1.1"}}
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.address)
		}
	}
	s.client = &http.Client{
		Transport:     transport,
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		if err := caddy.Stop(); err != nil {
			t.Errorf("stopping Caddy: %v", err)
		}
	})
	if err := s.tryLoad(t, config); err != nil {
		t.Fatal(err)
	}
	return s
}

// certify writes a certificate for localhost and returns a pool that trusts it. Caddy would issue
// its own certificate during its start. Caddy 2.11.8 has a data race there: an event reads the TLS
// app while Start writes it.
func (s *site) certify(t *testing.T, folder string) *x509.CertPool {
	t.Helper()
	s.key = servers.Certificate(t, folder)
	s.certificate = filepath.Join(folder, "cert")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(readFile(t, s.certificate))
	return pool
}

// load loads another configuration for the same address and folder into the running Caddy.
func (s *site) load(t *testing.T, config siteConfig) {
	t.Helper()
	if err := s.tryLoad(t, config); err != nil {
		t.Fatal(err)
	}
	s.awaitSwitch(t)
}

// awaitSwitch waits until the listener of the old configuration is closed. That happens shortly
// after the new one has opened, and connections queued there by the kernel are reset.
func (s *site) awaitSwitch(t *testing.T) {
	t.Helper()
	s.client.CloseIdleConnections()
	s.client.Transport = s.client.Transport.(*http.Transport).Clone()
	const often = 20
	for good, deadline := 0, time.Now().Add(time.Minute); good < often; time.Sleep(time.Millisecond) {
		good++
		conn, err := net.Dial("tcp", s.address)
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

// tryLoad is load, but returns an error if the configuration is refused.
func (s *site) tryLoad(t *testing.T, config siteConfig) error {
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

func (s *site) caddyfile(config siteConfig) string {
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
	return strings.ReplaceAll(b.String(), "$ROOT", s.root)
}

// logged returns the log of Caddy so far.
func (s *site) logged(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(s.logFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.ToValidUTF8(b, []byte("?")))
}

// waitForLog waits until Caddy has logged a text, because a request is logged after its answer.
func (s *site) waitForLog(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if strings.Contains(s.logged(t), text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log never has %q:\n%s", text, s.logged(t))
		}
	}
}

// tempFolder is t.TempDir for folders in which a Caddy may still write when the test ends.
func tempFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "media-site-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}
