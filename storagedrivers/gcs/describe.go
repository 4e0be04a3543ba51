package gcs

import (
	"path"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Describe returns the title, the noun and the bucket.
func (g *GCS) Describe() storagedrivers.Description {
	where := path.Join(g.Bucket, g.Prefix)
	if g.Endpoint != "" {
		where += " at " + network.WithoutScheme(g.Endpoint)
	}
	return storagedrivers.Description{Title: "Google Cloud Storage", Noun: "bucket", Icon: "cloud", Rank: 30, Where: where}
}

// Location returns the bucket and the prefix. The name of a bucket is unique at Google, whatever
// the host.
func (g *GCS) Location() storagedrivers.Location {
	host := network.ServiceHost(g.config.Endpoint)
	if host == "" || strings.HasSuffix(host, ".googleapis.com") {
		host = network.ServiceHost(google)
	}
	return storagedrivers.Location{Backend: "gs://" + host + "/" + g.config.Bucket}.Join(g.config.Prefix)
}

// Parallel returns 0: there is no limit.
func (*GCS) Parallel() int { return 0 }
