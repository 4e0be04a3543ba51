package azblob

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Config says which container is meant and how to get at it: by ConnectionString alone, or by Account or
// Endpoint with Key or, without one, the default credentials of the machine.
type Config struct {
	// The container, which must exist. Required.
	Container string `json:"container,omitempty" option:"required" example:"my-container"`

	// The name of the storage account. It is needed, unless a connection string or an
	// endpoint names it.
	Account string `json:"account,omitempty" option:"common" example:"myaccount"`

	// A key of the account, best as a placeholder such as `{env.AZURE_STORAGE_KEY}`. Default: the
	// credentials of the machine, which are the `AZURE_*` environment variables, a workload or
	// managed identity, or the login of the Azure command line.
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

	// Timeout is how long the service may keep silent. 0 is 30 s.
	Timeout time.Duration `json:"-"`
}

var containerName = regexp.MustCompile(`^(\$web|[a-z0-9]+(-[a-z0-9]+)*)$`)

// complete sets the defaults. The error names options that cannot be used together.
func (c *Config) complete() error {
	c.Timeout = cmp.Or(c.Timeout, network.DefaultTimeout)
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
