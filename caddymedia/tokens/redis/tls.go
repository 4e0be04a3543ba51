package redis

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// readFiles reads the certificates that the options name.
func (c *Config) readFiles() error {
	for _, file := range []struct {
		option, name string
		into         *string
	}{
		{"tls_ca_file", c.TLSCAFile, &c.ca}, {"tls_cert_file", c.TLSCertFile, &c.cert}, {"tls_key_file", c.TLSKeyFile, &c.key},
	} {
		if file.name == "" || *file.into != "" {
			continue
		}
		content, err := os.ReadFile(file.name)
		if err != nil {
			return fmt.Errorf("%s: %w", file.option, err)
		}
		*file.into = string(content)
	}
	return nil
}

// tlsConfig returns the settings of TLS.
func (c *Config) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.TLSServerName}
	if c.TLSCAFile != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(c.ca)) {
			return nil, fmt.Errorf("tls_ca_file: no certificate in %s", c.TLSCAFile)
		}
	}
	if c.TLSCertFile != "" {
		pair, err := tls.X509KeyPair([]byte(c.cert), []byte(c.key))
		if err != nil {
			return nil, fmt.Errorf("tls_cert_file and tls_key_file: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
