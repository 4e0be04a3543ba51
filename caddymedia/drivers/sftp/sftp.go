// Package sftp registers the storage driver sftp with Caddy.
package sftp

import (
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers/sftp"
)

func init() { modules.RegisterDriver[sftp.Config]("sftp", "an sftp storage") }
