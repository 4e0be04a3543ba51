package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/caddymedia/media/storagedrivers/internal/network"
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

// errNoRegion comes before the SDK's own words, which name no option.
var errNoRegion = errors.New("s3 storage without a region: give the region option, or set AWS_REGION")

// connect makes the client of the service and the HTTP client below it. It reads the
// files and the environment that the SDK knows, and touches no network.
func connect(c Config) (*awss3.Client, *http.Client, error) {
	options := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}),
		config.WithDefaultsMode(aws.DefaultsModeLegacy), // the automatic one asks the network
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if c.AccessKeyID != "" {
		options = append(options, config.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)))
	}
	found, err := config.LoadDefaultConfig(context.Background(), options...)
	if err != nil {
		return nil, nil, fmt.Errorf("loading the AWS configuration: %w", err)
	}
	httpClient := &http.Client{
		Transport: c.transport(found),
		// A signature is good for one host: the answer that moves us on is the error.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	found.HTTPClient = httpClient
	client := awss3.NewFromConfig(found, c.apply)
	if client.Options().Region == "" {
		return nil, nil, errNoRegion
	}
	return client, httpClient, nil
}

// transport trusts whom the SDK would trust, AWS_CA_BUNDLE included.
func (c Config) transport(found aws.Config) http.RoundTripper {
	transport := network.Transport(c.Timeout)
	if sdk, ok := found.HTTPClient.(*awshttp.BuildableClient); ok {
		transport.TLSClientConfig = sdk.GetTransport().TLSClientConfig
	}
	return transport
}

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

// retrying lets the SDK repeat a request that only it can repeat, without the object
// being read again. A service that has kept silent for the whole time-out is not asked again.
func retrying(o *awss3.Options) {
	o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = 3
		o.MaxBackoff = 300 * time.Millisecond
		o.Retryables = slices.Insert(o.Retryables, 0, retry.IsErrorRetryable(retry.IsErrorRetryableFunc(silence)))
	})
}

// silence is the rule of [retrying] for the SDK.
func silence(err error) aws.Ternary {
	if network.Silent(err) {
		return aws.FalseTernary
	}
	return aws.UnknownTernary
}
