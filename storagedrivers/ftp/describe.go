package ftp

import (
	"net/url"
	"path"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

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
// at a time, and storing one object may need two.
func (c *Config) Limits() storagedrivers.Limits {
	return storagedrivers.Limits{Timeout: c.timeout(), Parallel: max(1, c.Connections/2)}
}
