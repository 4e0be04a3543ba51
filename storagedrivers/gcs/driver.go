// Package gcs is the storage driver for Google Cloud Storage.
package gcs

import (
	_ "embed"
	"fmt"
	"log/slog"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/options"
)

func init() { caddy.RegisterModule(GCS{}) }

var (
	//go:embed driver.go
	comments string
	//go:embed config.go
	configComments string
)

var schema = options.Of[GCS](comments, configComments)

// GCS keeps objects in a bucket of Google Cloud Storage.
//
// An object appears under its name when all of it has arrived. Two uploads of one name never mix,
// also with other writers to the bucket. The account needs the permissions
// `storage.objects.create`, `storage.objects.get`, `storage.objects.list` and
// `storage.objects.delete`, which overwriting needs too. The role Storage Object User has them all.
//
// Placeholders such as `{env.MEDIA_BUCKET}` are expanded in every text.
type GCS struct {
	Config

	// How long the service may keep silent before an operation is given up. Default:
	// `30s`.
	SilenceTimeout options.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded and completed
}

// CaddyModule returns the Caddy module information.
func (GCS) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.gcs",
		New: func() caddy.Module { return new(GCS) },
	}
}

// Schema returns the options.
func (*GCS) Schema() *options.Schema { return schema.Documented() }

// Provision expands, completes and checks the options.
func (g *GCS) Provision(caddy.Context) error {
	e := *g
	if err := schema.Expand(&e); err != nil {
		return err
	}
	g.config = e.Config
	g.config.Timeout = time.Duration(e.SilenceTimeout)
	return g.config.complete()
}

// PoolKey returns all of the completed options, including the content of the key file: a new key in
// the same file makes another driver.
func (g *GCS) PoolKey() string { return fmt.Sprintf("gcs %#v", g.config) }

// NewDriver returns a driver, without using the network.
func (g *GCS) NewDriver(*slog.Logger) (storagedrivers.Driver, error) { return New(g.config) }

// Timeout returns how long the service may stay silent.
func (g *GCS) Timeout() time.Duration { return g.config.Timeout }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	gcs [<bucket>] { ... }
//
// The options are the fields by their JSON names.
func (g *GCS) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "a gcs storage", g, nil)
}

// Interface guards
var (
	_ caddy.Module          = (*GCS)(nil)
	_ caddy.Provisioner     = (*GCS)(nil)
	_ caddyfile.Unmarshaler = (*GCS)(nil)
	_ options.Described     = (*GCS)(nil)
	_ storagedrivers.Module = (*GCS)(nil)
)
