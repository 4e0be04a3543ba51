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
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// errNoRegion replaces the SDK's error, which names no option.
var errNoRegion = errors.New("s3 storage without a region: give the region option, or set AWS_REGION")

// connect returns the client of the service and its HTTP client. It reads the files and the
// environment of the SDK, and does not use the network.
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
		Transport: s3Service.Transport(c.transport(found)),
		// A signature is valid for one host, so a redirect is an error.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	found.HTTPClient, found.Credentials = httpClient, ambient{found.Credentials}
	client := awss3.NewFromConfig(found, c.apply)
	if client.Options().Region == "" {
		return nil, nil, errNoRegion
	}
	return client, httpClient, nil
}

// transport returns a transport that trusts the certificates that the SDK trusts, including
// AWS_CA_BUNDLE.
func (c Config) transport(found aws.Config) *http.Transport {
	transport := network.Transport(time.Duration(c.Timeout))
	if sdk, ok := found.HTTPClient.(*awshttp.BuildableClient); ok {
		transport.TLSClientConfig = sdk.GetTransport().TLSClientConfig
	}
	return transport
}

// retrying lets the SDK retry a request without reading the object again. A service that was silent
// for the whole time-out gets no retry.
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

// signer signs requests, but for the header that proxies in front of a service change: Google's
// append to Accept-Encoding before the signature is verified.
type signer struct{ awss3.HTTPSignerV4 }

// SignHTTP implements awss3.HTTPSignerV4.
func (s signer) SignHTTP(
	ctx context.Context, by aws.Credentials, r *http.Request, sum, service, region string, at time.Time,
	options ...func(*v4.SignerOptions),
) error {
	const unsigned = "Accept-Encoding"
	accepted := r.Header.Values(unsigned)
	r.Header.Del(unsigned)
	err := s.HTTPSignerV4.SignHTTP(ctx, by, r, sum, service, region, at, options...)
	if accepted != nil {
		r.Header[unsigned] = accepted
	}
	return err
}
