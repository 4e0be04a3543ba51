package ftp

import (
	"cmp"
	"net/url"
	"path"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Describe returns the title, the noun and the folder.
func (f *FTP) Describe() storagedrivers.Description {
	return storagedrivers.Description{
		Title: "FTP", Noun: "folder", Icon: "server", Rank: 10, Where: network.Login(f.User, f.Address, f.Root),
	}
}

// Location returns the host and the folder. It contains the user if the folder is relative to that
// of the login; users with the same absolute path share it.
func (f *FTP) Location() storagedrivers.Location {
	address := url.URL{Scheme: "ftp", Host: network.Host(f.config.Address, plainPort, tlsPort)}
	if !path.IsAbs(f.config.Root) {
		address.User = url.User(f.config.User)
	}
	return storagedrivers.Location{Backend: address.String()}.Join(f.config.Root)
}

// Parallel returns half of the connections to the server: each is for one operation at a time, and
// storing one object may need two.
func (f *FTP) Parallel() int { return max(1, cmp.Or(f.config.Connections, defaultConnections)/2) }
