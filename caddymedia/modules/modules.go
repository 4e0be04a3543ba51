// Package modules makes Caddy modules of storage drivers and token stores, which know no Caddy
// themselves: a build of Caddy that imports a package with one of these calls has the driver or the
// store. It is not needed by programs without Caddy. Begin with [RegisterDriver] or
// [RegisterStore].
package modules

import (
	"github.com/caddymedia/media/caddymedia/internal/caddy/modules"
	"github.com/caddymedia/media/caddymedia/tokens"
	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// DriverConfig is the configuration of a driver, a pointer to the struct of its options.
type DriverConfig interface {
	storagedrivers.Config
	options.Described
}

// RegisterDriver registers the driver with the configuration C as the Caddy module
// media.storages.<name>. what names one of its storages in errors: "an s3 storage".
func RegisterDriver[C any, P interface {
	*C
	DriverConfig
}](name, what string) {
	modules.RegisterDriver[C, P](name, what)
}

// StoreConfig is the configuration of a token store, a pointer to the struct of its options.
type StoreConfig interface {
	tokens.StoreConfig
	options.Described
}

// RegisterStore registers the token store with the configuration C as the Caddy module
// media.tokens.<name>.
func RegisterStore[C any, P interface {
	*C
	StoreConfig
}](name string) {
	modules.RegisterStore[C, P](name)
}
