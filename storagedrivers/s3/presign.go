package s3

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers"
)

// newPresigner returns the signer of addresses. It must be called before the first request of
// client: it writes to options that the two share.
func newPresigner(client *awss3.Client) *awss3.PresignClient {
	// A checksum of the response would be a header that the client must send.
	return awss3.NewPresignClient(client, awss3.WithPresignClientFromClientOptions(func(o *awss3.Options) {
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}))
}

// Presign returns an address of the object under key. The address expires with the credentials that
// sign it, so credentials that end before opts.Lifetime cannot sign.
func (d *driver) Presign(
	ctx context.Context, key string, opts storagedrivers.PresignOptions,
) (string, error) {
	if opts.Lifetime < time.Second { // the SDK would make 0 s of it, or 15 minutes
		return "", fmt.Errorf("an address is valid for a second or longer, not for %v", opts.Lifetime)
	}
	signer, err := d.client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return "", mapError(ctx, err)
	}
	if signer.CanExpire && signer.Expires.Before(d.now().Add(opts.Lifetime)) {
		return "", fmt.Errorf("the credentials expire before the address: %w", errors.ErrUnsupported)
	}
	request, err := d.presigner.PresignGetObject(ctx, &awss3.GetObjectInput{
		Bucket: &d.bucket, Key: d.name(key),
		ResponseContentType:        optional(opts.ContentType),
		ResponseCacheControl:       optional(opts.CacheControl),
		ResponseContentDisposition: optional(opts.Disposition),
	}, awss3.WithPresignExpires(opts.Lifetime))
	if err != nil {
		return "", mapError(ctx, err)
	}
	return request.URL, nil
}
