package sftp

import (
	"net/url"
	"path"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Describe returns the title, the noun and the folder.
func (s *SFTP) Describe() storagedrivers.Description {
	return storagedrivers.Description{
		Title: "SFTP", Noun: "folder", Icon: "server", Rank: 20, Where: network.Login(s.User, s.Address, s.Root),
	}
}

// Location returns the host and the folder. It contains the user if the folder is relative to that
// of the login; users with the same absolute path share it.
func (s *SFTP) Location() storagedrivers.Location {
	address := url.URL{Scheme: "sftp", Host: network.Host(s.config.Address, defaultPort)}
	if !path.IsAbs(s.config.Root) {
		address.User = url.User(s.config.User)
	}
	return storagedrivers.Location{Backend: address.String()}.Join(s.config.Root)
}

// Parallel returns 0: any number of objects share an SSH connection.
func (*SFTP) Parallel() int { return 0 }
