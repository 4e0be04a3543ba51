// Package azblob is the storage driver for Azure Blob Storage and compatible services.
package azblob

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

func init() { caddy.RegisterModule(AzBlob{}) }

var (
	//go:embed driver.go
	comments string
	//go:embed config.go
	configComments string
)

var schema = options.Of[AzBlob](comments, configComments)

// AzBlob keeps objects as block blobs in one container of an Azure storage account.
//
// The container must exist. The credentials need to read, write, delete and list its blobs (the
// role "Storage Blob Data Contributor"). An upload appears when it is whole, and two uploads of one
// name never mix, also with other writers to the container. The data of an aborted upload stays
// invisible and is dropped by Azure after a week. Accounts with a hierarchical namespace (Data
// Lake) are not supported: there folders are blobs too.
//
// Every text may hold placeholders such as `{env.AZURE_KEY}` and `{file./run/secrets/key}`.
type AzBlob struct {
	Config

	// How long the service may keep silent before it counts as unreachable. Default:
	// `30s`.
	SilenceTimeout options.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded and completed
}

// CaddyModule returns the Caddy module information.
func (AzBlob) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.azblob",
		New: func() caddy.Module { return new(AzBlob) },
	}
}

// Schema returns the options.
func (*AzBlob) Schema() *options.Schema { return schema.Documented() }

// Provision expands, completes and checks the options.
func (a *AzBlob) Provision(caddy.Context) error {
	e := *a
	if err := schema.Expand(&e); err != nil {
		return err
	}
	a.config = e.Config
	a.config.Timeout = time.Duration(e.SilenceTimeout)
	return a.config.complete()
}

// PoolKey returns all of the completed options.
func (a *AzBlob) PoolKey() string { return fmt.Sprintf("azblob %#v", a.config) }

// NewDriver returns a driver, without using the network.
func (a *AzBlob) NewDriver(*slog.Logger) (storagedrivers.Driver, error) { return New(a.config) }

// Timeout returns how long the service may stay silent.
func (a *AzBlob) Timeout() time.Duration { return a.config.Timeout }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	azblob [<container>] { ... }
//
// The options are the fields by their JSON names.
func (a *AzBlob) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return schema.ParseModule(d, "an azblob storage", a, nil)
}

// Interface guards
var (
	_ caddy.Module          = (*AzBlob)(nil)
	_ caddy.Provisioner     = (*AzBlob)(nil)
	_ caddyfile.Unmarshaler = (*AzBlob)(nil)
	_ options.Described     = (*AzBlob)(nil)
	_ storagedrivers.Module = (*AzBlob)(nil)
)
