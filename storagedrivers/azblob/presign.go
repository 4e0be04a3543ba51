package azblob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	azsdk "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/caddymedia/media/storagedrivers"
)

// signer signs a permission.
type signer func(context.Context, sas.BlobSignatureValues) (sas.QueryParameters, error)

// Presign returns an address at which the service serves the object.
func (d *driver) Presign(
	ctx context.Context, key string, opts storagedrivers.PresignOptions,
) (string, error) {
	if d.sign == nil {
		return "", fmt.Errorf("signing with a shared access signature: %w", errors.ErrUnsupported)
	}
	address := d.blob(key).URL()
	protocol := sas.ProtocolHTTPS
	if strings.HasPrefix(address, "http:") {
		protocol = sas.ProtocolHTTPSandHTTP
	}
	query, err := d.sign(ctx, sas.BlobSignatureValues{
		Protocol:           protocol,
		ExpiryTime:         d.now().UTC().Add(opts.Lifetime),
		Permissions:        (&sas.BlobPermissions{Read: true}).String(),
		ContainerName:      d.name,
		BlobName:           d.folder + key,
		ContentType:        opts.ContentType,
		CacheControl:       opts.CacheControl,
		ContentDisposition: opts.Disposition,
	})
	if err != nil {
		return "", mapError(ctx, err)
	}
	return address + "?" + query.Encode(), nil
}

// sharedKey returns a signer with the key of the account.
func sharedKey(key *azsdk.SharedKeyCredential) signer {
	return func(_ context.Context, values sas.BlobSignatureValues) (sas.QueryParameters, error) {
		return values.SignWithSharedKey(key)
	}
}

const (
	// keyLifetime is the longest lifetime of a user delegation key. The service refuses keys that
	// end later, by its own clock.
	keyLifetime = 7 * 24 * time.Hour
	// clockSkew is how far the clock of this machine may be ahead of the service's.
	clockSkew = 15 * time.Minute
)

// delegation signs with user delegation keys, for credentials without a key of the account.
type delegation struct {
	account *service.Client
	now     func() time.Time

	mu      sync.Mutex
	key     *service.UserDelegationCredential
	expires time.Time
}

func (s *delegation) sign(ctx context.Context, values sas.BlobSignatureValues) (sas.QueryParameters, error) {
	key, err := s.valid(ctx, values.ExpiryTime)
	if err != nil {
		return sas.QueryParameters{}, err
	}
	return values.SignWithUserDelegation(key)
}

// valid returns a key that is valid until then. Callers do not wait for each other's requests; an
// additional key does no harm.
func (s *delegation) valid(ctx context.Context, then time.Time) (*service.UserDelegationCredential, error) {
	s.mu.Lock()
	key, expires := s.key, s.expires
	s.mu.Unlock()
	if key != nil && !expires.Before(then) {
		return key, nil
	}
	start := s.now().UTC().Add(-clockSkew)
	expires = start.Add(keyLifetime)
	key, err := s.account.GetUserDelegationCredential(ctx, service.KeyInfo{
		Start:  new(start.Format(sas.TimeFormat)),
		Expiry: new(expires.Format(sas.TimeFormat)),
	}, nil)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key, s.expires = key, expires
	return key, nil
}
