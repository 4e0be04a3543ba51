package azblob

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/block"
)

func init() { caddy.RegisterModule(AzBlob{}) }

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
	// The name of the storage account. Required, unless a connection string or an
	// endpoint names it.
	Account string `json:"account,omitempty"`

	// A key of the account. Without a key and a connection string the default
	// credentials of the machine are used: the `AZURE_*` environment variables, a workload
	// or managed identity, or who is logged in with the Azure command line.
	Key string `json:"key,omitempty"`

	// A connection string as the Azure portal shows it, with an account key or a shared
	// access signature. It stands alone, without account, key and endpoint.
	ConnectionString string `json:"connection_string,omitempty"`

	// The container. Required.
	Container string `json:"container,omitempty"`

	// The address of the account's blob service, for other clouds and emulators; for
	// Azurite `http://127.0.0.1:10000/devstoreaccount1`. The default credentials are only
	// sent over https. Default: `https://<account>.blob.core.windows.net`.
	Endpoint string `json:"endpoint,omitempty"`

	// A folder in the container that all keys are in. Default: none.
	Prefix string `json:"prefix,omitempty"`

	// How long the service may keep silent before it counts as unreachable. Default:
	// `30s`.
	SilenceTimeout caddy.Duration `json:"timeout,omitempty"`

	config Config // expanded
}

// CaddyModule returns the Caddy module information.
func (AzBlob) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "media.storages.azblob",
		New: func() caddy.Module { return new(AzBlob) },
	}
}

// Provision expands the placeholders and checks what the options say together.
func (a *AzBlob) Provision(caddy.Context) error {
	c := Config{Timeout: time.Duration(a.SilenceTimeout)}
	var expand block.Expander
	c.Account = expand.Text("account", a.Account)
	c.Key = expand.Text("key", a.Key)
	c.ConnectionString = expand.Text("connection_string", a.ConnectionString)
	c.Container = expand.Text("container", a.Container)
	c.Endpoint = expand.Text("endpoint", a.Endpoint)
	c.Prefix = expand.Text("prefix", a.Prefix)
	if err := expand.Err(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	a.config = c
	return nil
}

// PoolKey is everything that is configured.
func (a *AzBlob) PoolKey() string { return fmt.Sprintf("azblob %q", a.config) }

// NewDriver makes the driver; the service is spoken to at its first use.
func (a *AzBlob) NewDriver(*slog.Logger) (storagedrivers.Driver, error) { return New(a.config) }

// Timeout is how long the service may keep silent.
func (a *AzBlob) Timeout() time.Duration { return a.config.Timeout }

// UnmarshalCaddyfile sets up the module from Caddyfile tokens. Syntax:
//
//	azblob [<container>] {
//		container         <name>
//		account           <name>
//		key               <key>
//		connection_string <string>
//		endpoint          <url>
//		prefix            <path>
//		timeout           <duration>
//	}
func (a *AzBlob) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return block.ParseModule(d, "an azblob storage", "container", &a.Container, block.Options{
		"account":           block.Text(&a.Account),
		"key":               block.Text(&a.Key),
		"connection_string": block.Text(&a.ConnectionString),
		"endpoint":          block.Text(&a.Endpoint),
		"prefix":            block.Text(&a.Prefix),
		"timeout":           block.Duration(&a.SilenceTimeout),
	})
}

// Interface guards
var (
	_ caddy.Module          = (*AzBlob)(nil)
	_ caddy.Provisioner     = (*AzBlob)(nil)
	_ caddyfile.Unmarshaler = (*AzBlob)(nil)
	_ storagedrivers.Module = (*AzBlob)(nil)
)
