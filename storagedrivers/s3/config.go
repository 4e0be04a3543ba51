package s3

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
)

// Config says which bucket a [Driver] uses and how.
type Config struct {
	// Bucket is the name of the bucket.
	Bucket string
	// Region of the bucket. Empty: what the environment says, or "us-east-1" where
	// there is an endpoint.
	Region string
	// Endpoint is the address of the service. Empty: Amazon S3.
	Endpoint string
	// AccessKeyID, SecretAccessKey and SessionToken are the credentials. Empty: what
	// the SDK finds by itself, at the first use.
	AccessKeyID, SecretAccessKey, SessionToken string
	// PathStyle names the bucket in the path instead of in the host name.
	PathStyle bool
	// Prefix is the folder of all keys, without slashes around it. Empty: none.
	Prefix string
	// Checksums is "when_supported" or "when_required". Empty: by the endpoint.
	Checksums string
	// Timeout is how long the service may keep silent. 0 is 30 s.
	Timeout time.Duration
}

const (
	whenSupported = "when_supported"
	whenRequired  = "when_required"

	// endpointRegion is what services that know no regions expect in signatures.
	endpointRegion = "us-east-1"
)

// apply sets what the configuration says, and what the contract of drivers demands,
// over what the environment says.
func (c Config) apply(o *awss3.Options) {
	if c.Endpoint != "" {
		o.BaseEndpoint = aws.String(c.Endpoint)
	}
	custom := o.BaseEndpoint != nil
	if custom && o.Region == "" {
		o.Region = endpointRegion
	}
	o.UsePathStyle = c.PathStyle
	o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	if c.Checksums == whenRequired || c.Checksums == "" && custom {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
	o.Retryer = aws.NopRetryer{}        // storages repeat whole operations
	o.ContinueHeaderThresholdBytes = -1 // it costs a round trip for what a HEAD tells before
}
