package ftp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/block"
)

func init() { caddy.RegisterModule(FTP{}) }

// FTP keeps objects as files on an FTP server, plain or over TLS, in passive mode.
//
// An object is sent to a hidden temporary file beside its place and renamed when it is
// whole. The login needs the right to store, rename and delete files and to make and
// remove folders. The protocol cannot create a name only if it is free, so two uploads of
// one name at the same moment are kept apart by this process and, between several of them,
// by lock folders; somebody else who writes to the folder knows neither.
//
// Without TLS the password and all content can be read on the way.
type FTP struct {
	// Host and port of the server. Default port: `21`, with implicit TLS `990`. Required.
	Address string `json:"address,omitempty"`

	// The login. Required.
	User string `json:"user,omitempty"`

	// The password, best given as `{env.FTP_PASSWORD}` or `{file./path}`.
	Password string `json:"password,omitempty"`

	// The folder of all objects, which is made where it is missing. One that does not
	// begin with a slash is below the login folder. Default: the login folder.
	Root string `json:"root,omitempty"`

	// How connections are secured: `none`, `explicit` (AUTH TLS, what servers call FTPES)
	// or `implicit` (TLS from the first byte, on a port of its own). Default: `none`.
	TLS TLSMode `json:"tls,omitempty"`

	// The path of a PEM file with the certificates to trust. Default: what the system
	// trusts.
	CA string `json:"ca,omitempty"`

	// The name in the server's certificate. Default: the host of the address.
	ServerName string `json:"server_name,omitempty"`

	// Whether any certificate is believed. Whoever stands between can then read and change
	// everything. Default: `false`.
	InsecureSkipVerify bool `json:"insecure_skip_verify,omitempty"`

	// How many connections there are at most at a time. Each does one thing: a download
	// takes one until it ends. Servers have limits for an address, too. Default: `8`.
	Connections int `json:"connections,omitempty"`

	// Whether an upload that must not replace anything makes a lock folder for a moment,
	// so that several processes of this service can share the server. One that dies in
	// that moment keeps its one name from being created for ten minutes. Default: `true`.
	Lock *bool `json:"lock,omitempty"`

	// How long the server may keep silent. Default: `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty"`

	opts Options // expanded
	ca   string  // what the file holds
}

// CaddyModule returns the Caddy module information.
func (FTP) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.ftp",
		New: func() caddy.Module { return new(FTP) },
	}
}

// Provision expands and checks the options.
func (f *FTP) Provision(caddy.Context) error {
	var expand block.Expander
	f.opts = Options{
		Address:     expand.Text("address", f.Address),
		User:        expand.Text("user", f.User),
		Password:    expand.Text("password", f.Password),
		Root:        expand.Text("root", f.Root),
		TLS:         cmp.Or(f.TLS, TLSNone),
		Connections: f.Connections,
		Lock:        f.Lock == nil || *f.Lock,
		Timeout:     f.Timeout(),
	}
	ca := expand.Text("ca", f.CA)
	serverName := expand.Text("server_name", f.ServerName)
	if err := expand.Err(); err != nil {
		return err
	}
	for option, value := range map[string]string{
		"address": f.opts.Address, "user": f.opts.User, "password": f.opts.Password, "root": f.opts.Root,
	} {
		if strings.ContainsAny(value, "\r\n\x00") { // each is a line of the protocol, or part of one
			return fmt.Errorf("%s has a line break", option)
		}
	}
	return f.check(ca, serverName)
}

// check completes the expanded options.
func (f *FTP) check(ca, serverName string) error {
	switch {
	case f.opts.Address == "":
		return errors.New("ftp storage without an address")
	case f.opts.User == "":
		return errors.New("ftp storage without a user")
	case !slices.Contains([]TLSMode{TLSNone, TLSExplicit, TLSImplicit}, f.opts.TLS):
		return fmt.Errorf("tls is none, explicit or implicit, not %q", f.opts.TLS)
	case f.Connections < 0:
		return fmt.Errorf("connections is a number above zero, not %d", f.Connections)
	case f.SilenceTimeout < 0:
		return fmt.Errorf("timeout is a duration above zero, not %s", time.Duration(f.SilenceTimeout))
	case f.opts.TLS == TLSNone && (ca != "" || serverName != "" || f.InsecureSkipVerify):
		return errors.New("ca, server_name and insecure_skip_verify need tls explicit or implicit")
	case f.InsecureSkipVerify && ca != "":
		return errors.New("ca and insecure_skip_verify contradict each other")
	}
	host, port, err := splitAddress(f.opts.Address)
	if err != nil {
		return fmt.Errorf("address: %w", err)
	}
	if port == "" {
		port = map[bool]string{false: "21", true: "990"}[f.opts.TLS == TLSImplicit]
	}
	f.opts.Address = net.JoinHostPort(host, port)
	if f.opts.TLS == TLSNone {
		return nil
	}
	if serverName == "" {
		serverName = host
	}
	f.opts.TLSConfig = &tls.Config{
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
	f.ca, f.opts.TLSConfig.RootCAs = string(pem), x509.NewCertPool()
	if !f.opts.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("ca: no certificate in %s", ca)
	}
	return nil
}

// splitAddress gives host and port, which may be missing.
func splitAddress(address string) (host, port string, err error) {
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

// PoolKey is the server, the login and all settings, with what the file of certificates holds:
// a reload after it was renewed must count.
func (f *FTP) PoolKey() string {
	o := f.opts
	serverName := ""
	if o.TLSConfig != nil {
		serverName = o.TLSConfig.ServerName
	}
	return fmt.Sprintf("ftp %q %q %q %q %s %q %q %t %d %t %s", o.Address, o.User, o.Password, o.Root, o.TLS,
		f.ca, serverName, f.InsecureSkipVerify, o.Connections, o.Lock, o.Timeout)
}

// NewDriver makes the driver; it connects when it is first used.
func (f *FTP) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) {
	return New(f.opts, log), nil
}

// Timeout is how long the server may keep silent.
func (f *FTP) Timeout() time.Duration { return time.Duration(f.SilenceTimeout) }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	ftp [<address>] {
//		address     <host>[:<port>]
//		user        <name>
//		password    <password>
//		root        <path>
//		tls         none|explicit|implicit
//		ca          <path>
//		server_name <name>
//		insecure_skip_verify on|off
//		connections <n>
//		lock        on|off
//		timeout     <duration>
//	}
func (f *FTP) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return block.ParseModule(d, "an ftp storage", "address", &f.Address, block.Options{
		"user":                 block.Text(&f.User),
		"password":             block.Text(&f.Password),
		"root":                 block.Text(&f.Root),
		"tls":                  block.Word((*string)(&f.TLS), string(TLSNone), string(TLSExplicit), string(TLSImplicit)),
		"ca":                   block.Text(&f.CA),
		"server_name":          block.Text(&f.ServerName),
		"insecure_skip_verify": block.Switch(&f.InsecureSkipVerify),
		"connections":          block.Count(&f.Connections),
		"lock":                 block.OnOff(&f.Lock),
		"timeout":              block.Duration(&f.SilenceTimeout),
	})
}

// Interface guards
var (
	_ caddy.Module          = (*FTP)(nil)
	_ caddy.Provisioner     = (*FTP)(nil)
	_ caddyfile.Unmarshaler = (*FTP)(nil)
	_ storagedrivers.Module = (*FTP)(nil)
)
