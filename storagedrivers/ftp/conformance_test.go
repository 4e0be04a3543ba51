package ftp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
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
		"silent facts":               {facts: true, mfmt: true, silent: true},
		"plain lists, keeping files": {plain: true, keep: true},
		"lists, explicit TLS":        {tls: secured, mfmt: true, lingers: true, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			f.start(t)
			h := harness(f.root, func(_ *testing.T, root string) storagedrivers.Driver {
				config := f.config()
				config.Root = root
				return newFakeDriver(config)
			})
			h.NoMemoryTest = true
			h.OtherSetting = name != "facts"
			h.CoarseTags = !f.mfmt // nothing else sets times apart
			drivertest.Run(t, h)
		})
	}
}
