package gcs

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	gcsdk "cloud.google.com/go/storage"

	"github.com/caddymedia/media/storagedrivers"
)

// Presign returns an address that is signed with the key of a service account. It sends no request.
func (d *driver) Presign(
	ctx context.Context, key string, opts storagedrivers.PresignOptions,
) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	client, err := d.connect(ctx)
	if err != nil {
		return "", err
	}
	if client.signer.PrivateKey == "" {
		return "", errors.ErrUnsupported
	}
	query := url.Values{}
	for name, value := range map[string]string{
		"response-content-type":        opts.ContentType,
		"response-cache-control":       opts.CacheControl,
		"response-content-disposition": opts.Disposition,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	scheme, host, _ := strings.Cut(d.config.Endpoint, "://")
	return gcsdk.SignedURL(d.config.Bucket, d.prefix+key, &gcsdk.SignedURLOptions{
		GoogleAccessID:  client.signer.Email,
		PrivateKey:      []byte(client.signer.PrivateKey),
		Method:          http.MethodGet,
		Expires:         d.now().Add(opts.Lifetime),
		QueryParameters: query,
		Scheme:          gcsdk.SigningSchemeV4,
		Hostname:        host,
		Insecure:        scheme == "http",
	})
}
