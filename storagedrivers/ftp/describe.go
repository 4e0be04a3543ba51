package ftp

import (
	"net/url"
	"path"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Location is the host and the folder. The user belongs to it where the folder is relative to that of
// the login; two users who give the same absolute path share it.
func (f *FTP) Location() storagedrivers.Location {
	address := url.URL{Scheme: "ftp", Host: network.Host(f.config.Address, plainPort, tlsPort)}
	if !path.IsAbs(f.config.Root) {
		address.User = url.User(f.config.User)
	}
	return storagedrivers.Location{Backend: address.String()}.Join(f.config.Root)
}
