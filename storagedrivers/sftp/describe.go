package sftp

import (
	"net/url"
	"path"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Describe returns the title, the noun and the folder.
func (c *Config) Describe() storagedrivers.Description {
	return storagedrivers.Description{
		Title: "SFTP", Noun: "folder", Icon: "server", Rank: 20, Where: network.Login(c.User, c.Address, c.Root),
	}
}

// Location returns the host and the folder. It contains the user if the folder is relative to that
// of the login; users with the same absolute path share it.
func (c *Config) Location() storagedrivers.Location {
	address := url.URL{Scheme: "sftp", Host: network.Host(c.Address, defaultPort)}
	if !path.IsAbs(c.Root) {
		address.User = url.User(c.User)
	}
	return storagedrivers.Location{Backend: address.String()}.Join(c.Root)
}

// Limits returns the time-out.
func (c *Config) Limits() storagedrivers.Limits {
	return storagedrivers.Limits{Timeout: c.timeout()}
}
