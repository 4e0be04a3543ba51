package ftp

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// on gives the options for a server.
func on(t *testing.T, server *servers.FTP, mode TLSMode) Options {
	t.Helper()
	opts := Options{
		Address: server.Address, User: server.User, Password: server.Password, TLS: mode, Connections: 4, Lock: true,
	}
	if server.Process == nil || filepath.Base(server.Root) != "store" {
		t.Fatal("no login folder")
	}
	if server.User == "anonymous" { // its login folder is above, and not for writing
		opts.Root = "store"
	}
	if mode != TLSNone {
		roots := x509.NewCertPool()
		pem, err := os.ReadFile(server.CA)
		if err != nil || !roots.AppendCertsFromPEM(pem) {
			t.Fatalf("no certificate: %v", err)
		}
		opts.TLSConfig = &tls.Config{ServerName: "localhost", RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	return opts
}

func conforms(t *testing.T, server *servers.FTP, mode TLSMode) {
	t.Helper()
	opts := on(t, server, mode)
	drivertest.Run(t, harness(server.Root, func(t *testing.T, root string) storagedrivers.Driver {
		t.Helper()
		opts := opts
		opts.Root = filepath.Join(opts.Root, root)
		return New(opts, slog.New(slog.DiscardHandler))
	}))
}

func TestConformanceProFTPD(t *testing.T) {
	conforms(t, servers.ProFTPD(t, servers.FTPSettings{}), TLSNone)
}

func TestConformanceProFTPDExplicitTLS(t *testing.T) {
	conforms(t, servers.ProFTPD(t, servers.FTPSettings{TLS: "explicit"}), TLSExplicit)
}

func TestConformanceVSFTPD(t *testing.T) {
	conforms(t, servers.VSFTPD(t, servers.FTPSettings{}), TLSNone)
}

func TestConformanceVSFTPDExplicitTLS(t *testing.T) {
	conforms(t, servers.VSFTPD(t, servers.FTPSettings{TLS: "explicit"}), TLSExplicit)
}

func TestConformanceVSFTPDImplicitTLS(t *testing.T) {
	conforms(t, servers.VSFTPD(t, servers.FTPSettings{TLS: "implicit"}), TLSImplicit)
}
