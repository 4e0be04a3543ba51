// Package azblob is the storage driver for Azure Blob Storage and compatible services. It neither
// repeats operations nor compares sizes, which is done by [storagedrivers.Storage] for all drivers.
// Begin with [Config], and then put.go, where an object gets its name.
package azblob

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Config keeps objects as block blobs in a container of an Azure storage account.
//
// The container must exist. The credentials must permit to read, write, delete and list its blobs
// (the role "Storage Blob Data Contributor"). An upload appears when it is complete. Two uploads of
// one name never mix, also with other writers to the container. The data of an aborted upload is
// invisible, and Azure removes it after a week. Accounts with a hierarchical namespace (Data Lake)
// are not supported, because their folders are blobs too.
//
// Placeholders such as `{env.AZURE_KEY}` and `{file./run/secrets/key}` are expanded in every text.
type Config struct {
	// The container. It must exist. Required.
	Container string `json:"container,omitempty" option:"required" example:"my-container"`

	// The name of the storage account. It is required, unless a connection string or an endpoint
	// contains it.
	Account string `json:"account,omitempty" option:"common" example:"myaccount"`

	// A key of the account, preferably a placeholder such as `{env.AZURE_STORAGE_KEY}`. Default:
	// the credentials of the machine, which are the `AZURE_*` environment variables, a workload or
	// managed identity, or the login of the Azure command line.
	Key string `json:"key,omitempty" option:"common,secret" example:"{env.AZURE_STORAGE_KEY}"`

	// A connection string from the Azure portal, with an account key or a shared access signature.
	// It replaces account, key and endpoint.
	ConnectionString string `json:"connection_string,omitempty" option:"common,secret" example:"{env.AZURE_STORAGE_CONNECTION_STRING}"`

	// The address of the account's blob service, for other clouds and emulators. For Azurite it is
	// `http://127.0.0.1:10000/devstoreaccount1`. The credentials of the machine are only sent over
	// https. Default: `https://<account>.blob.core.windows.net`.
	Endpoint string `json:"endpoint,omitempty" option:"common,address" example:"https://myaccount.blob.core.windows.net"`

	// The folder of the objects in the container. Default: the whole container.
	Prefix string `json:"prefix,omitempty" option:"folder" example:"media"`

	// How long to wait for a service that does not respond. Default: `30s`.
	Timeout options.Duration `json:"timeout,omitempty" example:"30s"`
}

//go:embed config.go
var comments string

var schema = options.Of[Config](comments)

// Schema returns the options.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// NewDriver returns a driver, without using the network.
func (c *Config) NewDriver(*slog.Logger) (storagedrivers.Driver, error) { return newDriver(*c) }

var containerName = regexp.MustCompile(`^(\$web|[a-z0-9]+(-[a-z0-9]+)*)$`)

// Complete checks the options and sets the defaults. The error names options that cannot be used
// together.
func (c *Config) Complete() error {
	if err := schema.Check(c); err != nil {
		return err
	}
	c.Timeout = cmp.Or(c.Timeout, options.Duration(network.DefaultTimeout))
	if n := len(c.Container); n < 3 || n > 63 || !containerName.MatchString(c.Container) {
		return fmt.Errorf("container: %q is not 3 to 63 lower-case letters, digits and single hyphens", c.Container)
	}
	if c.ConnectionString == "" {
		return c.checkAccount()
	}
	if c.Account != "" || c.Key != "" || c.Endpoint != "" {
		return errors.New("connection_string stands alone, without account, key and endpoint")
	}
	return nil
}

// checkAccount checks the options of a configuration without a connection string.
func (c *Config) checkAccount() error {
	if c.Account == "" && c.Key != "" {
		return errors.New("key: without the account that it belongs to")
	}
	if c.Account == "" && c.Endpoint == "" {
		return errors.New("azblob storage without an account, an endpoint or a connection_string")
	}
	if strings.HasPrefix(c.Endpoint, "http:") && c.Key == "" {
		return errors.New("endpoint: the default credentials are only sent over https; give a key")
	}
	return nil
}

// folder returns the prefix of all keys in the container.
func (c Config) folder() string {
	if folder := strings.Trim(c.Prefix, "/"); folder != "" {
		return folder + "/"
	}
	return ""
}

// serviceURL returns the URL of the account's blob service.
func (c Config) serviceURL() string {
	if c.Endpoint != "" {
		return strings.TrimSuffix(c.Endpoint, "/")
	}
	return "https://" + c.Account + ".blob.core.windows.net"
}

// Describe returns the title, the noun and the container.
func (c *Config) Describe() storagedrivers.Description {
	where := path.Join(c.Container, c.Prefix)
	if c.Account != "" {
		where += " (" + c.Account + ")"
	}
	return storagedrivers.Description{Title: "Azure Blob Storage", Noun: "container", Icon: "cloud", Rank: 40, Where: where}
}

// Location returns the container and the prefix. They are the same for all ways to configure the
// account.
func (c *Config) Location() storagedrivers.Location {
	host := network.ServiceHost(c.containerURL())
	return storagedrivers.Location{Backend: "azblob://" + host}.Join(c.Prefix)
}

// containerURL returns the URL of the container without a signature. It is empty for an invalid
// connection string.
func (c Config) containerURL() string {
	if c.ConnectionString == "" {
		return c.serviceURL() + "/" + c.Container
	}
	client, err := container.NewClientFromConnectionString(c.ConnectionString, c.Container, nil)
	if err != nil {
		return ""
	}
	address, _, _ := strings.Cut(client.URL(), "?")
	return address
}

// Limits returns the time-out.
func (c *Config) Limits() storagedrivers.Limits {
	return storagedrivers.Limits{Timeout: time.Duration(c.Timeout)}
}
