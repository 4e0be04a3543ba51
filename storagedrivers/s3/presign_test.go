package s3

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/internal/test"
	"github.com/caddymedia/media/storagedrivers"
)

// TestPresignByRole: credentials that expire before the lifetime of the address cannot sign.
func TestPresignByRole(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		expires time.Duration // 0: never
		want    error
	}{
		"key":             {0, nil},
		"long session":    {2 * time.Hour, nil},
		"session to end":  {59 * time.Minute, errors.ErrUnsupported},
		"session of old":  {-time.Minute, errors.ErrUnsupported},
		"just as long as": {time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := newDriver(Config{Bucket: "bucket", Endpoint: "http://127.0.0.1:1"}, slog.New(slog.DiscardHandler))
			test.Must(t, err)
			d.now = func() time.Time { return now }
			options := d.client.Options()
			options.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{
					AccessKeyID: "id", SecretAccessKey: "secret", SessionToken: "session",
					CanExpire: tt.expires != 0, Expires: now.Add(tt.expires),
				}, nil
			})
			d.client = awss3.New(options)
			d.presigner = newPresigner(d.client)
			address, err := d.Presign(t.Context(), "object", storagedrivers.PresignOptions{Lifetime: time.Hour})
			test.Is(t, err, tt.want)
			test.Equal(t, address != "", tt.want == nil, "address", address)
		})
	}
}

// TestPresignShort: a lifetime below a second is refused. The SDK would make 0 s of it, or 15 minutes.
func TestPresignShort(t *testing.T) {
	t.Parallel()
	d, err := newDriver(Config{Bucket: "bucket", Endpoint: "http://127.0.0.1:1", AccessKeyID: "id", SecretAccessKey: "s"},
		slog.New(slog.DiscardHandler))
	test.Must(t, err)
	for lifetime, ok := range map[time.Duration]bool{-time.Second: false, 0: false, time.Second - 1: false, time.Second: true} {
		address, err := d.Presign(t.Context(), "object", storagedrivers.PresignOptions{Lifetime: lifetime})
		if (err == nil) != ok || (address != "") != ok {
			t.Errorf("%v: address %q, error %v", lifetime, address, err)
		}
	}
}

// TestPresignBesideRequests: signing shares nothing with other requests that it writes to. The race
// detector would find it.
func TestPresignBesideRequests(t *testing.T) {
	t.Parallel()
	d, err := newDriver(Config{Bucket: "bucket", Endpoint: "http://127.0.0.1:1", AccessKeyID: "id", SecretAccessKey: "s"},
		slog.New(slog.DiscardHandler))
	test.Must(t, err)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			_, err := d.Presign(t.Context(), "object", storagedrivers.PresignOptions{Lifetime: time.Hour})
			test.Is(t, err, nil)
		})
		all.Go(func() {
			if _, err := d.Stat(t.Context(), "object"); err == nil {
				t.Error("there is an object at a port without a service")
			}
		})
	}
	all.Wait()
}
