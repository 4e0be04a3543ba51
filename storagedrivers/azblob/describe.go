package azblob

import (
	"path"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

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
