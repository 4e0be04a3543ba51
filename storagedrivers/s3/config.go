// Package s3 is the storage driver for Amazon S3 and services that speak its protocol. It neither
// repeats operations nor compares sizes, which is done by [storagedrivers.Storage] for all drivers,
// and it tests what a service cannot be trusted to do (conditions.go). Begin with [Config], and
// then put.go, where an object gets its name.
package s3

import (
	"cmp"
	_ "embed"
	"errors"
	"log/slog"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/options"
)

// Config keeps objects in a bucket of Amazon S3 or a compatible service.
//
// An object appears under its name when it is complete. Two uploads of one name never mix. If two
// servers create one name at the same moment, the service decides between them, provided that it
// honours `If-None-Match`, as Amazon S3 does.
//
// Placeholders such as `{env.MEDIA_BUCKET}` or `{file./run/secrets/key}` are expanded in every
// text.
type Config struct {
	// The bucket. It must exist. Required.
	Bucket string `json:"bucket,omitempty" option:"required" example:"my-bucket"`

	// The region of the bucket. Default: the region in `AWS_REGION` or the AWS profile, or
	// `us-east-1` if an endpoint is set.
	Region string `json:"region,omitempty" option:"common" example:"eu-central-1"`

	// The address of a compatible service. Default: Amazon S3.
	Endpoint string `json:"endpoint,omitempty" option:"common,address" example:"https://s3.example.com"`

	// The access key. Default: the credentials that the AWS SDK finds in the environment, in the
	// AWS profile, or from the machine or container that it runs in.
	AccessKeyID string `json:"access_key_id,omitempty" option:"common" example:"{env.AWS_ACCESS_KEY_ID}"`

	// The secret of the access key, preferably a placeholder such as `{env.AWS_SECRET_ACCESS_KEY}`.
	SecretAccessKey string `json:"secret_access_key,omitempty" option:"common,secret" example:"{env.AWS_SECRET_ACCESS_KEY}"`

	// The session token of a temporary access key.
	SessionToken string `json:"session_token,omitempty" option:"secret" example:"{env.AWS_SESSION_TOKEN}"`

	// Whether addresses have the bucket in their path instead of in the host name. Default: `true`
	// if an endpoint is set, otherwise `false`.
	PathStyle *bool `json:"path_style,omitempty"`

	// The folder of the objects in the bucket. Default: the whole bucket.
	Prefix string `json:"prefix,omitempty" option:"folder" example:"media"`

	// When to send and verify checksums (CRC32) of objects. Compatible services may refuse
	// checksums that are not required. Default: `when_required` if an endpoint is set, otherwise
	// `when_supported`.
	Checksums string `json:"checksums,omitempty" option:"words=when_supported|when_required"`

	// How long to wait for a service that does not respond. Default: `30s`.
	Timeout options.Duration `json:"timeout,omitempty" example:"30s"`
}

//go:embed config.go
var comments string

var schema = options.Of[Config](comments)

// Schema returns the options.
func (*Config) Schema() *options.Schema { return schema.Documented() }

// NewDriver returns a driver, without using the network.
func (c *Config) NewDriver(log *slog.Logger) (storagedrivers.Driver, error) {
	return newDriver(*c, log)
}

const (
	whenSupported = "when_supported"
	whenRequired  = "when_required"

	// endpointRegion is the region in signatures that services without regions expect.
	endpointRegion = "us-east-1"
)

// Complete checks the options and sets the defaults. The error names options that cannot be used
// together.
func (c *Config) Complete() error {
	if err := schema.Check(c); err != nil {
		return err
	}
	c.Timeout = cmp.Or(c.Timeout, options.Duration(network.DefaultTimeout))
	if c.PathStyle == nil {
		c.PathStyle = new(c.Endpoint != "")
	}
	switch {
	case (c.AccessKeyID == "") != (c.SecretAccessKey == ""):
		return errors.New("access_key_id and secret_access_key go together")
	case c.SessionToken != "" && c.AccessKeyID == "":
		return errors.New("session_token goes with access_key_id and secret_access_key")
	}
	return nil
}

// apply sets the options of the SDK: the configuration, and the requirements of the driver
// contract, override the environment.
func (c Config) apply(o *awss3.Options) {
	if c.Endpoint != "" {
		o.BaseEndpoint = aws.String(c.Endpoint)
	}
	custom := o.BaseEndpoint != nil
	if custom && o.Region == "" {
		o.Region = endpointRegion
	}
	o.UsePathStyle = *c.PathStyle
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	if c.Checksums == whenRequired || c.Checksums == "" && custom {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
	o.HTTPSignerV4 = signer{o.HTTPSignerV4}
	o.Retryer = aws.NopRetryer{}        // storages repeat whole operations
	o.ContinueHeaderThresholdBytes = -1 // it costs a round trip for what a HEAD answers before
}

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
