package redis

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"hash"
	"os"
)

// tlsConfig reads the certificates that the settings name.
func (m *Module) tlsConfig(digest hash.Hash) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: m.TLSServerName}
	if m.TLSCAFile != "" {
		pem, err := readFile(m.TLSCAFile, digest)
		if err != nil {
			return nil, fmt.Errorf("tls_ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("tls_ca_file: no certificate in %s", m.TLSCAFile)
		}
	}
	if m.TLSCertFile != "" {
		cert, err := readFile(m.TLSCertFile, digest)
		if err != nil {
			return nil, fmt.Errorf("tls_cert_file: %w", err)
		}
		key, err := readFile(m.TLSKeyFile, digest)
		if err != nil {
			return nil, fmt.Errorf("tls_key_file: %w", err)
		}
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("tls_cert_file and tls_key_file: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

func readFile(name string, digest hash.Hash) ([]byte, error) {
	content, err := os.ReadFile(name)
	digest.Write(content)
	return content, err
}
