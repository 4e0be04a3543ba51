// Package ftp registers the storage driver ftp with Caddy.
package ftp

import (
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers/ftp"
)

func init() { modules.RegisterDriver[ftp.Config]("ftp", "an ftp storage") }
