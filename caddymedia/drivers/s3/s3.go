// Package s3 registers the storage driver s3 with Caddy.
package s3

import (
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers/s3"
)

func init() { modules.RegisterDriver[s3.Config]("s3", "an s3 storage") }
