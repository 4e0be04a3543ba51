// Package ftp stores objects as files on an FTP server, plain or over TLS. It is not for several
// processes that write to one storage: the protocol cannot create a name only if it is free. Begin
// with [Config], and then put.go and the connections in pool.go.
//
// A key is the path of its file below the root. An object is sent to a temporary file ".up-*.part"
// in its folder, and renamed when it is complete: a server keeps the received part of an aborted
// transfer and reports it as complete.
//
// Therefore the driver checks whether a name is free before the rename, under a lock of the name in
// this process.
//
// A server does not identify the generation of an object that it sends. See open.go.
//
// Hidden names are assumed to be those of this driver. Its temporary files are removed from listed
// folders when they are older than a day.
package ftp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Config keeps objects as files on an FTP server, plain or over TLS, in passive mode.
//
// An upload is written to a hidden temporary file and renamed when it is complete. The user needs
// the rights to create, rename and delete files, and to create folders. The protocol cannot create
// a name only if it is free: uploads of one name wait for each other within a process, and only one
// process may write to the folder.
//
// Without TLS the password and all content can be read on the network.
type Config struct {
	// The host, with `:port` if the port is not 21 (990 with implicit TLS). Required.
	Address string `json:"address,omitempty" option:"required" example:"files.example.com"`

	// The user to log in as. Required.
	User string `json:"user,omitempty" option:"required" example:"media"`

	// The password of the user. Without TLS it can be read on the network.
	Password string `json:"password,omitempty" option:"common,secret" example:"{env.FTP_PASSWORD}"`

	// The folder of all objects. It is created if it is missing. A path without a leading slash is
	// relative to the login folder. Default: the login folder.
	Root string `json:"root,omitempty" option:"common" example:"uploads"`

	// How connections are encrypted: `none`, `explicit` (AUTH TLS, also called FTPES) or `implicit`
	// (TLS from the first byte, on a separate port). Default: `none`.
	TLS tlsMode `json:"tls,omitempty" option:"common,words=none|explicit|implicit"`

	// A PEM file with the CA certificates to trust. Default: those of the system.
	CA string `json:"ca,omitempty" example:"/etc/caddy/ftp-ca.pem"`

	// The name that the certificate of the server must have. Default: the host of the address.
	ServerName string `json:"server_name,omitempty" example:"files.example.com"`

	// Whether to accept any certificate. An attacker on the network can then read and change
	// everything. Default: `false`.
	InsecureSkipVerify bool `json:"insecure_skip_verify,omitempty"`

	// The maximum number of connections, at most as many as the server allows. Each connection runs
	// one operation at a time, and a download of more than 1 MiB holds one until it ends. One or two
	// connections are reserved for other operations. Default: `8`.
	Connections int `json:"connections,omitempty" example:"8"`

	// How long the server may be silent before an operation fails. Default: `30s`.
	Timeout options.Duration `json:"timeout,omitempty" example:"30s"`

	pem string // of CA
}

//go:embed config.go
var comments string

var schema = options.Of[Config](comments)

// Schema returns the options.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// NewDriver returns a driver, which connects at its first use.
func (c *Config) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) {
	return newDriver(*c, log)
}

const (
	defaultConnections = 8

	plainPort = "21"
	tlsPort   = "990" // of implicit TLS
)

// tlsMode says how connections are secured.
type tlsMode string

// The ways of securing connections.
const (
	tlsNone     tlsMode = "none"     // not at all
	tlsExplicit tlsMode = "explicit" // AUTH TLS after connecting (RFC 4217)
	tlsImplicit tlsMode = "implicit" // from the first byte on
)

// Complete checks the options, sets the defaults and reads the certificates. The error names
// options that cannot be used together.
func (c *Config) Complete() error {
	if err := schema.Check(c); err != nil {
		return err
	}
	c.TLS = cmp.Or(c.TLS, tlsNone)
	c.Connections = cmp.Or(c.Connections, defaultConnections)
	c.Timeout = cmp.Or(c.Timeout, options.Duration(network.DefaultTimeout))
	for option, value := range map[string]string{
		"address": c.Address, "user": c.User, "password": c.Password, "root": c.Root,
	} {
		if strings.ContainsAny(value, "\r\n\x00") { // each is a line of the protocol, or part of one
			return fmt.Errorf("%s has a line break", option)
		}
	}
	switch {
	case c.TLS == tlsNone && (c.CA != "" || c.ServerName != "" || c.InsecureSkipVerify):
		return errors.New("ca, server_name and insecure_skip_verify need tls explicit or implicit")
	case c.InsecureSkipVerify && c.CA != "":
		return errors.New("ca and insecure_skip_verify contradict each other")
	}
	host, port, err := splitAddress(c.Address)
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if port == "" {
		port = map[bool]string{false: plainPort, true: tlsPort}[c.TLS == tlsImplicit]
	}
	c.Address = net.JoinHostPort(host, port)
	if c.TLS != tlsNone {
		c.ServerName = cmp.Or(c.ServerName, host)
	}
	if c.CA == "" || c.pem != "" {
		return nil
	}
	pem, err := os.ReadFile(c.CA)
	if err != nil {
		return fmt.Errorf("ca: %w", err)
	}
	if c.pem = string(pem); !x509.NewCertPool().AppendCertsFromPEM(pem) {
		return fmt.Errorf("ca: no certificate in %s", c.CA)
	}
	return nil
}

// tls returns the settings of TLS, or nil without TLS.
func (c *Config) tls() *tls.Config {
	if c.TLS == tlsNone {
		return nil
	}
	config := &tls.Config{
		ServerName: c.ServerName, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: c.InsecureSkipVerify, //nolint:gosec // the administrator says so
		// Servers require that data connections resume the session of their own control connection.
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	if c.pem != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(c.pem))
	}
	return config
}

// splitAddress returns host and port, which may be missing. An error does not contain an address
// that may include a password.
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

func (c *Config) timeout() time.Duration { return time.Duration(c.Timeout) }

// Describe returns the title, the noun and the folder.
func (c *Config) Describe() storagedrivers.Description {
	return storagedrivers.Description{
		Title: "FTP", Noun: "folder", Icon: "server", Rank: 10, Where: network.Login(c.User, c.Address, c.Root),
	}
}

// Location returns the host and the folder. It contains the user if the folder is relative to that
// of the login; users with the same absolute path share it.
func (c *Config) Location() storagedrivers.Location {
	address := url.URL{Scheme: "ftp", Host: network.Host(c.Address, plainPort, tlsPort)}
	if !path.IsAbs(c.Root) {
		address.User = url.User(c.User)
	}
	return storagedrivers.Location{Backend: address.String()}.Join(c.Root)
}

// Limits returns the time-out, and half of the connections to the server: each is for one operation
// at a time, and an object that is copied within a server needs two.
func (c *Config) Limits() storagedrivers.Limits {
	return storagedrivers.Limits{Timeout: c.timeout(), Parallel: max(1, c.Connections/2)}
}
