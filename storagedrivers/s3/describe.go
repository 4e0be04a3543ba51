package s3

import (
	"cmp"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// Describe returns the title, the noun and the bucket.
func (s *S3) Describe() storagedrivers.Description {
	where := path.Join(s.Bucket, s.Prefix)
	if s.Endpoint != "" {
		where += " at " + network.WithoutScheme(s.Endpoint)
	} else if s.Region != "" {
		where += " (" + s.Region + ")"
	}
	return storagedrivers.Description{Title: "S3", Noun: "bucket", Icon: "cloud", Rank: 50, Where: where}
}

// Location returns the bucket and the prefix.
func (s *S3) Location() storagedrivers.Location {
	c := s.config
	return storagedrivers.Location{Backend: "s3://" + c.service() + "/" + c.Bucket}.Join(c.Prefix)
}

// Parallel returns 0: there is no limit.
func (*S3) Parallel() int { return 0 }

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
