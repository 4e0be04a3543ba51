package ftp

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/drivertest"
	"github.com/caddymedia/media/storagedrivers/drivertest/servers"
)

// setConn returns the configuration for a server.
func on(t *testing.T, server *servers.FTP, mode tlsMode) Config {
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

func conforms(t *testing.T, server *servers.FTP, mode tlsMode) {
	t.Helper()
	config := on(t, server, mode)
	h := harness(server.Root, func(t *testing.T, root string) storagedrivers.Driver {
		t.Helper()
		config := config
		config.Root = filepath.Join(config.Root, root)
		return newFakeDriver(config)
	})
	h.OtherServer = true
	drivertest.Run(t, h)
}

func TestConformanceProFTPD(t *testing.T) {
	conforms(t, servers.ProFTPD(t, servers.FTPSettings{}), tlsNone)
}

func TestConformanceProFTPDExplicitTLS(t *testing.T) {
	conforms(t, servers.ProFTPD(t, servers.FTPSettings{TLS: "explicit"}), tlsExplicit)
}

func TestConformanceVSFTPD(t *testing.T) {
	conforms(t, servers.VSFTPD(t, servers.FTPSettings{}), tlsNone)
}

func TestConformanceVSFTPDExplicitTLS(t *testing.T) {
	conforms(t, servers.VSFTPD(t, servers.FTPSettings{TLS: "explicit"}), tlsExplicit)
}

func TestConformanceVSFTPDImplicitTLS(t *testing.T) {
	conforms(t, servers.VSFTPD(t, servers.FTPSettings{TLS: "implicit"}), tlsImplicit)
}

func TestConformancePyFTPD(t *testing.T) {
	conforms(t, servers.PyFTPD(t, servers.FTPSettings{}), tlsNone)
}

func TestConformancePyFTPDExplicitTLS(t *testing.T) {
	conforms(t, servers.PyFTPD(t, servers.FTPSettings{TLS: "explicit"}), tlsExplicit)
}

func TestConformancePyFTPDWithoutFacts(t *testing.T) {
	conforms(t, servers.PyFTPD(t, servers.FTPSettings{Without: []string{"MLSD", "MLST", "EPSV"}}), tlsNone)
}

func TestConformancePureFTPD(t *testing.T) {
	conforms(t, servers.PureFTPD(t, servers.FTPSettings{}), tlsNone)
}

func TestConformancePureFTPDExplicitTLS(t *testing.T) {
	conforms(t, servers.PureFTPD(t, servers.FTPSettings{TLS: "explicit"}), tlsExplicit)
}

// TestListingLikeDOS: a server with the listing format of Windows. The format has no names that
// begin with a space, so such a server does not pass the whole suite.
func TestListingLikeDOS(t *testing.T) {
	t.Parallel()
	server := servers.PyFTPD(t, servers.FTPSettings{Without: []string{"MLSD", "MLST"}, DOS: true})
	d := open(t, on(t, server, tlsNone))
	sizes := map[string]int64{"a/b c.txt": 7, "a/empty": 0, "d": 5_000_000}
	for key, size := range sizes {
		must(t, put(t, d, key, strings.Repeat("x", int(size)), create))
	}
	page, err := d.List(t.Context(), storagedrivers.ListOptions{})
	if err != nil || len(page.Objects) != len(sizes) {
		t.Errorf("listed %+v, error %v", page.Objects, err)
	}
	for _, info := range page.Objects {
		if size, ok := sizes[info.Key]; !ok || size != info.Size {
			t.Errorf("listed %q with %d bytes, want %d", info.Key, info.Size, size)
		}
		holds(t, d, info.Key, strings.Repeat("x", int(info.Size)))
		is(t, d.Delete(t.Context(), info.Key), nil)
	}
}
