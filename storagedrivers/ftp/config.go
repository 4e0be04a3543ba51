package ftp

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// Config of a [Driver].
type Config struct {
	// Address is host and port.
	Address string
	// User and Password are for the login.
	User, Password string
	// Root is the folder of all keys; one that is not absolute is below the login folder.
	Root string
	// TLS says how connections are secured. Empty: not at all.
	TLS TLSMode
	// TLSConfig says whom to trust and has the ServerName. Needed with TLS.
	TLSConfig *tls.Config
	// Connections is the greatest number of them at a time. 0 is 8.
	Connections int
	// Lock keeps writers of several processes apart with lock folders.
	Lock bool
	// Timeout is how long the server may keep silent. 0 is 30 s.
	Timeout time.Duration
}

const (
	defaultConnections = 8

	plainPort = "21"
	tlsPort   = "990" // of implicit TLS
)

// TLSMode says how connections are secured.
type TLSMode string

// The ways of securing connections.
const (
	TLSNone     TLSMode = "none"     // not at all
	TLSExplicit TLSMode = "explicit" // AUTH TLS after connecting (RFC 4217)
	TLSImplicit TLSMode = "implicit" // from the first byte on
)

// check completes the expanded options.
func (f *FTP) check(ca, serverName string) error {
	switch {
	case f.config.TLS == TLSNone && (ca != "" || serverName != "" || f.InsecureSkipVerify):
		return errors.New("ca, server_name and insecure_skip_verify need tls explicit or implicit")
	case f.InsecureSkipVerify && ca != "":
		return errors.New("ca and insecure_skip_verify contradict each other")
	}
	host, port, err := splitAddress(f.config.Address)
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if port == "" {
		port = map[bool]string{false: plainPort, true: tlsPort}[f.config.TLS == TLSImplicit]
	}
	f.config.Address = net.JoinHostPort(host, port)
	if f.config.TLS == TLSNone {
		return nil
	}
	if serverName == "" {
		serverName = host
	}
	f.config.TLSConfig = &tls.Config{
		ServerName: serverName, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: f.InsecureSkipVerify, //nolint:gosec // the administrator says so
	}
	if ca == "" {
		return nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return fmt.Errorf("ca: %w", err)
	}
	f.ca, f.config.TLSConfig.RootCAs = string(pem), x509.NewCertPool()
	if !f.config.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("ca: no certificate in %s", ca)
	}
	return nil
}

// splitAddress returns host and port, which may be missing. An error does not show an address that
// may have a password in it.
func splitAddress(address string) (host, port string, err error) {
	if strings.Contains(address, "@") {
		return "", "", errors.New("it is host or host:port; user and password are options of their own")
	}
	bare := strings.TrimSuffix(strings.TrimPrefix(address, "["), "]")
	if net.ParseIP(bare) != nil || !strings.Contains(address, ":") {
		return bare, "", nil
	}
	host, port, err = net.SplitHostPort(address)
	if err == nil && (host == "" || port == "") {
		err = fmt.Errorf("%q is not host or host:port", address)
	}
	return host, port, err
}
