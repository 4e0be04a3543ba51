// Package gcs registers the storage driver gcs with Caddy.
package gcs

import (
	"github.com/caddymedia/media/caddymedia/modules"
	"github.com/caddymedia/media/storagedrivers/gcs"
)

func init() { modules.RegisterDriver[gcs.Config]("gcs", "a gcs storage") }
