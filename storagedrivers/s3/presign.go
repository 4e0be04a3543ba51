package s3

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers"
)

// Presign returns an address of the object under key. The address expires with the credentials that
// sign it, so credentials that end before opts.Lifetime cannot sign.
func (d *Driver) Presign(
	ctx context.Context, key string, opts storagedrivers.PresignOptions,
) (string, error) {
	signer, err := d.client.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return "", mapError(ctx, err)
	}
	if signer.CanExpire && signer.Expires.Before(d.now().Add(opts.Lifetime)) {
		return "", fmt.Errorf("the credentials expire before the address: %w", errors.ErrUnsupported)
	}
	// A checksum of the response would be a header that the client must send.
	unchecked := awss3.WithPresignClientFromClientOptions(func(o *awss3.Options) {
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
	request, err := awss3.NewPresignClient(d.client, unchecked).PresignGetObject(ctx, &awss3.GetObjectInput{
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
