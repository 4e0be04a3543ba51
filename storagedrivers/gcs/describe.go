package gcs

import (
	"strings"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Location is the bucket and the prefix. The name of a bucket is unique at Google, whatever the host.
func (g *GCS) Location() storagedrivers.Location {
	host := network.ServiceHost(g.config.Endpoint)
	if host == "" || strings.HasSuffix(host, ".googleapis.com") {
		host = network.ServiceHost(google)
	}
	return storagedrivers.Location{Backend: "gs://" + host + "/" + g.config.Bucket}.Join(g.config.Prefix)
}
