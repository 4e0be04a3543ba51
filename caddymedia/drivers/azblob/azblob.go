// Package azblob registers the storage driver azblob with Caddy.
package azblob

import (
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers/azblob"
)

func init() { modules.RegisterDriver[azblob.Config]("azblob", "an azblob storage") }
