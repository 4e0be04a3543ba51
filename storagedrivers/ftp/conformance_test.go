package ftp

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
	"github.com/caddymedia/media/storagedrivers/internal/test"
	"github.com/caddymedia/media/storagedrivers/options"
)

func TestMain(m *testing.M) {
	drivertest.Waiting()
	goleak.VerifyTestMain(m)
}

// config returns the configuration of a driver for the fake.
func (f *fake) config() Config {
	config := Config{Address: f.address, User: "u", Password: "secret", Connections: 4, Timeout: options.Duration(20 * time.Second)}
	if f.tls != nil {
		config.TLS, config.ServerName, config.pem = tlsExplicit, "example.com", trusted
	}
	return config
}

// secured is the TLS configuration of a server "example.com"; trusted is its certificate.
var secured, trusted = func() (*tls.Config, string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"example.com"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	pair := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}()

func newFakeDriver(config Config) *driver {
	d, err := newDriver(config, slog.New(slog.DiscardHandler))
	if err != nil {
		panic(err)
	}
	return d
}

func TestConformance(t *testing.T) {
	for name, f := range map[string]*fake{
		"facts":                      {facts: true, mfmt: true},
		"plain lists, keeping files": {plain: true, keep: true, lingers: true},
		"lists, explicit TLS":        {tls: secured, mfmt: true, lingers: true},
	} {
		t.Run(name, func(t *testing.T) {
			f.start(t)
			h := harness(f.root, f.config())
			h.NoMemoryTest = true
			h.OtherSetting = name != "facts"
			h.CoarseTags = !f.mfmt // nothing else sets times apart
			drivertest.Run(t, h)
		})
	}
}

// configFor returns the configuration for a server.
func configFor(t *testing.T, server *servers.FTP, mode tlsMode) Config {
	t.Helper()
	config := Config{
		Address: server.Address, User: server.User, Password: server.Password, TLS: mode, Connections: 4,
	}
	if server.Process == nil || filepath.Base(server.Root) != "store" {
		t.Fatal("no login folder")
	}
	if server.User == "anonymous" { // its login folder is above, and not for writing
		config.Root = "store"
	}
	if mode != tlsNone {
		config.CA, config.ServerName = server.CA, "localhost"
	}
	return config
}

func TestConformanceOfServers(t *testing.T) {
	type settings = servers.FTPSettings
	for name, tt := range map[string]struct {
		start    func(testing.TB, settings) *servers.FTP
		settings settings
	}{
		"ProFTPD":                {servers.ProFTPD, settings{}},
		"ProFTPD, explicit TLS":  {servers.ProFTPD, settings{TLS: "explicit"}},
		"VSFTPD":                 {servers.VSFTPD, settings{}},
		"VSFTPD, explicit TLS":   {servers.VSFTPD, settings{TLS: "explicit"}},
		"VSFTPD, implicit TLS":   {servers.VSFTPD, settings{TLS: "implicit"}},
		"PyFTPD":                 {servers.PyFTPD, settings{}},
		"PyFTPD, explicit TLS":   {servers.PyFTPD, settings{TLS: "explicit"}},
		"PyFTPD, without facts":  {servers.PyFTPD, settings{Without: []string{"MLSD", "MLST", "EPSV"}}},
		"PureFTPD":               {servers.PureFTPD, settings{}},
		"PureFTPD, explicit TLS": {servers.PureFTPD, settings{TLS: "explicit"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := tt.start(t, tt.settings)
			h := harness(server.Root, configFor(t, server, cmp.Or(tlsMode(tt.settings.TLS), tlsNone)))
			h.OtherServer = true
			drivertest.Run(t, h)
		})
	}
}

// TestListingLikeDOS: a server with the listing format of Windows. The format has no names that
// begin with a space, so such a server does not pass the whole suite.
func TestListingLikeDOS(t *testing.T) {
	t.Parallel()
	server := servers.PyFTPD(t, servers.FTPSettings{Without: []string{"MLSD", "MLST"}, DOS: true})
	d := open(t, configFor(t, server, tlsNone))
	sizes := map[string]int64{"a/b c.txt": 7, "a/empty": 0, "d": 5_000_000}
	for key, size := range sizes {
		test.Must(t, put(t, d, key, strings.Repeat("x", int(size)), create))
	}
	page, err := d.List(t.Context(), storagedrivers.ListOptions{})
	test.Is(t, err, nil)
	test.Equal(t, len(page.Objects), len(sizes), "listed", page.Objects)
	for _, info := range page.Objects {
		if size, ok := sizes[info.Key]; !ok || size != info.Size {
			t.Errorf("listed %q with %d bytes, want %d", info.Key, info.Size, size)
		}
		holds(t, d, info.Key, strings.Repeat("x", int(info.Size)))
		test.Is(t, d.Delete(t.Context(), info.Key, storagedrivers.DeleteOptions{}), nil)
	}
}

// harness returns the harness of a server whose login folder is store on this machine. Every
// subtest has its own folder below it.
func harness(store string, config Config) drivertest.Harness {
	open := func(config Config, root string) *driver {
		config.Root = filepath.Join(config.Root, root)
		d := newFakeDriver(config)
		d.kept.Least = 0 // listings go on in all folders
		return d
	}
	var roots sync.Map // test name to folder
	var n atomic.Int64
	root := func(t *testing.T) string {
		t.Helper()
		name, ok := roots.Load(t.Name())
		if !ok {
			t.Fatal("no folder was made yet")
		}
		return name.(string)
	}
	return drivertest.Harness{
		New: func(t *testing.T) storagedrivers.Driver {
			name := fmt.Sprintf("folder%d/of test", n.Add(1))
			roots.Store(t.Name(), name)
			return open(config, name)
		},
		Another:   func(t *testing.T) storagedrivers.Driver { return open(config, root(t)) },
		Leftovers: func(t *testing.T) []string { return test.Files(t, filepath.Join(store, root(t))) },
		Address:   config.Address,
		Through: func(t *testing.T, address string, timeout time.Duration) storagedrivers.Driver {
			config := config
			config.Address, config.Timeout = address, options.Duration(timeout)
			return open(config, root(t))
		},
		Later: func(t *testing.T) storagedrivers.Driver {
			d := open(config, root(t))
			d.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
			return d
		},
	}
}
