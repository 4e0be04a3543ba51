package s3

import (
	"cmp"
	"os"
	"path"
	"regexp"
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
	} else if c.Region != "" {
		where += " (" + c.Region + ")"
	}
	return storagedrivers.Description{Title: "S3", Noun: "bucket", Icon: "cloud", Rank: 50, Where: where}
}

// Location returns the bucket and the prefix.
func (c *Config) Location() storagedrivers.Location {
	return storagedrivers.Location{Backend: "s3://" + c.service() + "/" + c.Bucket}.Join(c.Prefix)
}

// amazon matches the hosts of Amazon S3, of any region and kind.
var amazon = regexp.MustCompile(`^(.+\.)?s3[.-](.+\.)?amazonaws\.com(\.cn)?$`)

// service returns the host of the service. The name of a bucket is unique among all regions of an
// Amazon partition, so one host represents them.
func (c Config) service() string {
	host := network.ServiceHost(cmp.Or(c.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")))
	if host != "" && !amazon.MatchString(host) {
		return host
	}
	region := cmp.Or(host, c.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	switch {
	case strings.Contains(region, "cn-"):
		return "amazonaws.com.cn"
	case strings.Contains(region, "us-gov-"):
		return "us-gov.amazonaws.com"
	}
	return "amazonaws.com"
}

// Limits returns the time-out.
func (c *Config) Limits() storagedrivers.Limits {
	return storagedrivers.Limits{Timeout: time.Duration(c.Timeout)}
}
