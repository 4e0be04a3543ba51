// Package local registers the storage driver local with Caddy.
package local

import (
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers/local"
)

func init() { modules.RegisterDriver[local.Config]("local", "a local storage") }
