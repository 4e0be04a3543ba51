package gcs

import (
	"path"
	"strings"
	"time"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Describe returns the title, the noun and the bucket.
func (c *Config) Describe() storagedrivers.Description {
	where := path.Join(c.Bucket, c.Prefix)
	if c.Endpoint != "" {
		where += " at " + network.WithoutScheme(c.Endpoint)
	}
	return storagedrivers.Description{Title: "Google Cloud Storage", Noun: "bucket", Icon: "cloud", Rank: 30, Where: where}
}

// Location returns the bucket and the prefix. The name of a bucket is unique at Google, whatever
// the host.
func (c *Config) Location() storagedrivers.Location {
	host := network.ServiceHost(c.Endpoint)
	if host == "" || strings.HasSuffix(host, ".googleapis.com") {
		host = network.ServiceHost(google)
	}
	return storagedrivers.Location{Backend: "gs://" + host + "/" + c.Bucket}.Join(c.Prefix)
}

// Limits returns the time-out.
func (c *Config) Limits() storagedrivers.Limits {
	return storagedrivers.Limits{Timeout: time.Duration(c.Timeout)}
}
