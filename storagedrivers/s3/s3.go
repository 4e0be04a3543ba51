package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
	"github.com/caddymedia/media/storagedrivers/locks"
)

// driver stores objects in a bucket.
type driver struct {
	client    *awss3.Client
	presigner *awss3.PresignClient
	http      *http.Client
	// timeout is how long the service may stay silent.
	timeout time.Duration

	log *slog.Logger
	now func() time.Time

	bucket string
	prefix string // of all keys; it is empty or ends at a slash
	// algorithm of the checksums that are sent; empty: none.
	algorithm types.ChecksumAlgorithm

	buffers *buffers
	streams *buffers // of sources of unknown size
	locks   locks.Names
	// conditions describe the support for If-None-Match; nil while unknown.
	conditions atomic.Pointer[conditions]
	unanswered atomic.Pointer[unanswered] // the last such experiment
}

// newDriver returns a driver without using the network.
func newDriver(c Config, log *slog.Logger) (*driver, error) {
	if err := c.Complete(); err != nil {
		return nil, err
	}
	client, httpClient, err := connect(c)
	if err != nil {
		return nil, err
	}
	d := &driver{
		client: client, presigner: newPresigner(client), http: httpClient, timeout: time.Duration(c.Timeout), log: log,
		now:    time.Now, //nolint:forbidigo // the clock's one default
		bucket: c.Bucket, buffers: newBuffers(maxBuffered), streams: newBuffers(maxStreamed),
	}
	if c.Prefix != "" {
		d.prefix = c.Prefix + "/"
	}
	options := client.Options()
	if options.RequestChecksumCalculation != aws.RequestChecksumCalculationWhenRequired {
		d.algorithm = types.ChecksumAlgorithmCrc32
	}
	if options.BaseEndpoint == nil {
		d.conditions.Store(&conditions{accepted: true, kept: true, compared: true}) // documented by Amazon
	}
	return d, nil
}

// Stat returns the Info of an object.
func (d *driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	info, _, err := d.look(ctx, key)
	return info, err
}

// look returns the Info of an object and the ID of its upload.
func (d *driver) look(ctx context.Context, key string) (storagedrivers.Info, string, error) {
	head, err := d.client.HeadObject(ctx, &awss3.HeadObjectInput{Bucket: &d.bucket, Key: d.name(key)})
	if err != nil {
		return storagedrivers.Info{}, "", mapReadError(ctx, err)
	}
	if head.ContentLength == nil {
		return storagedrivers.Info{}, "", s3Service.Foreign("an object without a length")
	}
	return storagedrivers.Info{
		Key:         key,
		Size:        *head.ContentLength,
		ModTime:     aws.ToTime(head.LastModified),
		ETag:        strong(head.ETag),
		ContentType: storagedrivers.ContentType(key),
	}, head.Metadata[lostreply.Key], nil
}

// name returns the name in the bucket of the object under key.
func (d *driver) name(key string) *string { return aws.String(d.prefix + key) }

// strong returns an entity tag with quotes, which some services omit. A weak tag, which comes from
// proxies, becomes "".
func strong(tag *string) string {
	t := aws.ToString(tag)
	if t == "" || strings.HasPrefix(t, "W/") {
		return ""
	}
	return `"` + strings.Trim(t, `"`) + `"`
}

// Delete removes an object. The service does not report whether it existed.
func (d *driver) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	if opts.IfMatch == "" {
		return mapReadError(ctx, d.deleteOn(ctx, key, condition{}))
	}
	known, err := d.knownConditions(ctx)
	if err == nil && !known.compared {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return err
	}
	err = mapReadError(ctx, d.deleteOn(ctx, key, condition{match: &opts.IfMatch}))
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w: %s", storagedrivers.ErrChanged, err.Error())
	}
	return err
}

// deleteOn removes an object on a condition.
func (d *driver) deleteOn(ctx context.Context, key string, c condition) error {
	_, err := d.client.DeleteObject(ctx, &awss3.DeleteObjectInput{Bucket: &d.bucket, Key: d.name(key), IfMatch: c.match})
	return err
}

// Check verifies that the bucket exists and can be listed. If the support for conditions is
// unknown, it determines that.
func (d *driver) Check(ctx context.Context) error {
	_, err := d.listObjects(ctx, &awss3.ListObjectsV2Input{
		Bucket: &d.bucket, Prefix: &d.prefix, MaxKeys: aws.Int32(1),
	})
	if code(err) == "NoSuchBucket" {
		return fmt.Errorf("%w: there is no bucket %q: %w", fs.ErrNotExist, d.bucket, brief(err))
	}
	if region := regionOf(err); region != "" && region != d.client.Options().Region {
		err = fmt.Errorf("the bucket %q is in the region %q: %w", d.bucket, region, brief(err))
		return storagedrivers.WithCause(err, wrongRegion)
	}
	if err != nil {
		return mapError(ctx, err)
	}
	_, err = d.knownConditions(ctx)
	return err
}

// Features returns that objects are replaced as a whole, and whether the service itself decides
// about creations and compares.
func (d *driver) Features() storagedrivers.Features {
	features := storagedrivers.Features{Replace: storagedrivers.Atomic, Repeat: true, Streams: true, Copies: true}
	if c := d.conditions.Load(); c != nil && c.kept {
		features.Create = storagedrivers.Atomic
		if c.compared {
			features.Compare = storagedrivers.Atomic
		}
	}
	return features
}

// Close closes the connections.
func (d *driver) Close() error {
	d.http.CloseIdleConnections()
	return nil
}

// Interface guards
var (
	_ storagedrivers.Driver    = (*driver)(nil)
	_ storagedrivers.Presigner = (*driver)(nil)
	_ storagedrivers.Sweeper   = (*driver)(nil)
)
