// Package s3 is the storage driver for Amazon S3 and services that speak its protocol.
package s3

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

func init() { caddy.RegisterModule(S3{}) }

var (
	//go:embed driver.go
	comments string
	//go:embed config.go
	configComments string
)

var schema = options.Of[S3](comments, configComments)

// S3 keeps objects in a bucket of Amazon S3 or of a service that speaks its protocol.
//
// An object appears under its name when all of it has arrived. Two uploads of one name never mix;
// where the service honours `If-None-Match`, as Amazon's does, it also decides which of two servers
// may create a name.
//
// Placeholders such as `{env.MEDIA_BUCKET}` or `{file./run/secrets/key}` are expanded in every
// text.
type S3 struct {
	Config

	// How long the service may keep silent before an operation is given up. Default: `30s`.
	SilenceTimeout options.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded and completed
}

// CaddyModule returns the Caddy module information.
func (S3) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.s3",
		New: func() caddy.Module { return new(S3) },
	}
}

// Schema returns the options.
func (*S3) Schema() *options.Schema { return schema.Documented() }

// Provision expands, completes and checks the options.
func (s *S3) Provision(caddy.Context) error {
	e := *s
	if err := schema.Expand(&e); err != nil {
		return err
	}
	s.config = e.Config
	s.config.Timeout = time.Duration(e.SilenceTimeout)
	return s.config.complete()
}

// PoolKey returns all of the completed options.
func (s *S3) PoolKey() string {
	c := s.config
	c.PathStyle = nil // a pointer
	return fmt.Sprintf("s3 %#v %t", c, *s.config.PathStyle)
}

// NewDriver returns a driver, without using the network.
func (s *S3) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) { return New(s.config, log) }

// Timeout returns how long the service may stay silent.
func (s *S3) Timeout() time.Duration { return s.config.Timeout }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	s3 [<bucket>] { ... }
//
// The options are the fields by their JSON names.
func (s *S3) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "an s3 storage", s, nil)
}

// Interface guards
var (
	_ caddy.Module          = (*S3)(nil)
	_ caddy.Provisioner     = (*S3)(nil)
	_ caddyfile.Unmarshaler = (*S3)(nil)
	_ options.Described     = (*S3)(nil)
	_ storagedrivers.Module = (*S3)(nil)
)
