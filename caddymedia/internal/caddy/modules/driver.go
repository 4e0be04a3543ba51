// Package modules is the Caddy side of package modules of other modules: the Caddy modules of
// drivers and token stores, and the reading of the options of a schema from a Caddyfile, so that
// all refuse unknown options with the same words. It knows no driver. Begin with [Driver], and
// [Parse] for options.
package modules

import (
	"log/slog"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

// DriverNamespace is Caddy's namespace of storage drivers.
const DriverNamespace = "media.storages"

// DriverConfig is the configuration of a driver, a pointer to the struct of its options.
type DriverConfig interface {
	storagedrivers.Config
	options.Described
}

// Driver is the Caddy module of a storage driver.
type Driver struct{ module[DriverConfig] }

// RegisterDriver registers the driver with the configuration C as the Caddy module
// media.storages.<name>. what names one of its storages in errors: "an s3 storage".
func RegisterDriver[C any, P interface {
	*C
	DriverConfig
}](name, what string) {
	caddy.RegisterModule(&Driver{module[DriverConfig]{
		id: DriverNamespace + "." + caddy.ModuleID(name), what: what,
		create: func() DriverConfig { return P(new(C)) },
		copy:   func(config DriverConfig) DriverConfig { return P(new(*config.(P))) },
	}})
}

// CaddyModule returns the Caddy module information.
func (d *Driver) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: d.id, New: func() caddy.Module { return &Driver{d.fresh()} }}
}

// Provision expands, completes and checks the options.
func (d *Driver) Provision(caddy.Context) error {
	if err := d.expand(); err != nil {
		return err
	}
	return d.completed.Complete()
}

// Describe returns the description of the driver. It works before Provision.
func (d *Driver) Describe() storagedrivers.Description { return d.Config.Describe() }

// Location returns the location of the objects.
func (d *Driver) Location() storagedrivers.Location { return d.completed.Location() }

// Limits returns the limits of the backend.
func (d *Driver) Limits() storagedrivers.Limits {
	if limited, ok := d.completed.(storagedrivers.Limited); ok {
		return limited.Limits()
	}
	return storagedrivers.Limits{}
}

// NewDriver returns a new driver, without connecting.
func (d *Driver) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) {
	return d.completed.NewDriver(log)
}

// HostKeyer returns the configuration as one whose host has a key, with all placeholders replaced
// that have a value. It works before Provision.
func (d *Driver) HostKeyer() (storagedrivers.HostKeyer, bool) {
	_ = d.expand() // a form may not be complete yet
	keyer, ok := d.completed.(storagedrivers.HostKeyer)
	return keyer, ok
}
