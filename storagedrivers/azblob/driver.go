// Package azblob is the storage driver for Azure Blob Storage and what speaks its protocol.
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

//go:embed driver.go
var comments string

var schema = options.Of[AzBlob](comments)

// AzBlob keeps objects as block blobs in one container of an Azure storage account.
//
// The container must exist: it is not made. The credentials need to read, write, delete
// and list its blobs (the role "Storage Blob Data Contributor"). An upload appears when it
// is whole, and two uploads of one name never mix, whoever else writes to the container.
// What uploads that were broken off have sent stays invisible and is dropped by Azure
// after a week. Accounts with a hierarchical namespace (Data Lake) are not supported:
// there folders are blobs too.
//
// Every text may hold placeholders such as `{env.AZURE_KEY}` and `{file./run/secrets/key}`.
type AzBlob struct {
	// The container, which must exist. Required.
	Container string `json:"container,omitempty" option:"required" example:"my-container"`

	// The name of the storage account. It is needed, unless a connection string or an
	// endpoint names it.
	Account string `json:"account,omitempty" option:"common" example:"myaccount"`

	// A key of the account, best as a placeholder such as `{env.AZURE_STORAGE_KEY}`.
	// Default: the credentials of the machine, which are the `AZURE_*` environment
	// variables, a workload or managed identity, or who is logged in with the Azure
	// command line.
	Key string `json:"key,omitempty" option:"common,secret" example:"{env.AZURE_STORAGE_KEY}"`

	// A connection string as the Azure portal shows it, with an account key or a shared
	// access signature. It stands alone, without account, key and endpoint.
	ConnectionString string `json:"connection_string,omitempty" option:"common,secret" example:"{env.AZURE_STORAGE_CONNECTION_STRING}"`

	// The address of the account's blob service, for other clouds and emulators; for
	// Azurite `http://127.0.0.1:10000/devstoreaccount1`. The credentials of the machine
	// are only sent over https. Default: `https://<account>.blob.core.windows.net`.
	Endpoint string `json:"endpoint,omitempty" option:"common,address" example:"https://myaccount.blob.core.windows.net"`

	// The folder of the container below which all objects are kept. Default: the whole
	// container.
	Prefix string `json:"prefix,omitempty" option:"folder" example:"media"`

	// How long the service may keep silent before it counts as unreachable. Default:
	// `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty" example:"30s"`

	config Config // expanded
}

// CaddyModule returns the Caddy module information.
func (AzBlob) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.azblob",
		New: func() caddy.Module { return new(AzBlob) },
	}
}

// Schema describes the options.
func (*AzBlob) Schema() *options.Schema { return schema.Documented() }

// Provision expands the options and checks them, also together.
func (a *AzBlob) Provision(caddy.Context) error {
	e := *a
	if err := schema.Expand(&e); err != nil {
		return err
	}
	a.config = Config{
		Account: e.Account, Key: e.Key, ConnectionString: e.ConnectionString, Container: e.Container,
		Endpoint: e.Endpoint, Prefix: e.Prefix, Timeout: time.Duration(e.SilenceTimeout),
	}
	return a.config.check()
}

// PoolKey is everything that is configured.
func (a *AzBlob) PoolKey() string { return fmt.Sprintf("azblob %q", a.config) }

// NewDriver makes the driver; the service is spoken to at its first use.
func (a *AzBlob) NewDriver(*slog.Logger) (storagedrivers.Driver, error) { return New(a.config) }

// Timeout is how long the service may keep silent.
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
