package azblob

import (
	"path"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Describe returns the title, the noun and the container.
func (a *AzBlob) Describe() storagedrivers.Description {
	where := path.Join(a.Container, a.Prefix)
	if a.Account != "" {
		where += " (" + a.Account + ")"
	}
	return storagedrivers.Description{Title: "Azure Blob Storage", Noun: "container", Icon: "cloud", Rank: 40, Where: where}
}

// Location returns the container and the prefix. They are the same for all ways to configure the
// account.
func (a *AzBlob) Location() storagedrivers.Location {
	host := network.ServiceHost(a.config.containerURL())
	return storagedrivers.Location{Backend: "azblob://" + host}.Join(a.config.Prefix)
}

// Parallel returns 0: there is no limit.
func (*AzBlob) Parallel() int { return 0 }

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
