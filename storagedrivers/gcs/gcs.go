package gcs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"

	gcsdk "cloud.google.com/go/storage"

	"github.com/caddymedia/media/storagedrivers"
)

// driver stores objects in a bucket.
//
// It is not a [storagedrivers.Sweeper]: an aborted upload leaves only a session, which the service
// does not list and ends after a week.
type driver struct {
	config Config
	prefix string // of all names; it is empty or ends at a slash
	http   *transport
	now    func() time.Time

	mu     sync.Mutex
	client *client // nil until one could be made
}

// newDriver returns a driver of a bucket, without using the network.
func newDriver(c Config) (*driver, error) {
	if err := c.Complete(); err != nil {
		return nil, err
	}
	d := &driver{
		config: c, http: newTransport(time.Duration(c.Timeout)),
		now: time.Now, //nolint:forbidigo // the clock's one default
	}
	if c.Prefix != "" {
		d.prefix = c.Prefix + "/"
	}
	return d, nil
}

// maxNameBytes is the longest name of an object of the service.
const maxNameBytes = 1024

// object returns the handle of the object under key.
func (d *driver) object(ctx context.Context, key string) (*gcsdk.ObjectHandle, error) {
	if len(d.prefix)+len(key) > maxNameBytes {
		return nil, fmt.Errorf("%w: too long behind the prefix %q", storagedrivers.ErrInvalidKey, d.prefix)
	}
	client, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	return client.bucket.Object(d.prefix + key), nil
}

// Stat returns the Info of an object.
func (d *driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	object, err := d.object(ctx, key)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	attrs, err := object.Attrs(ctx)
	if err != nil {
		return storagedrivers.Info{}, mapError(ctx, err)
	}
	return d.newInfo(attrs), nil
}

// newInfo returns the Info of an object. The ETag is made from the generation, because the
// service's own ETag also changes with the metadata.
func (d *driver) newInfo(attrs *gcsdk.ObjectAttrs) storagedrivers.Info {
	key := strings.TrimPrefix(attrs.Name, d.prefix)
	return storagedrivers.Info{
		Key:         key,
		Size:        attrs.Size,
		ModTime:     attrs.Created,
		ETag:        strconv.Quote(strconv.FormatInt(attrs.Generation, 10)),
		ContentType: storagedrivers.ContentType(key),
	}
}

// Delete removes an object; a missing one is fs.ErrNotExist.
func (d *driver) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	object, err := d.object(ctx, key)
	if err != nil {
		return err
	}
	if opts.IfMatch != "" {
		object = object.If(gcsdk.Conditions{GenerationMatch: generationOf(opts.IfMatch)})
	}
	err = mapError(ctx, object.Delete(ctx))
	if opts.IfMatch != "" && errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w: %s", storagedrivers.ErrChanged, err.Error())
	}
	return err
}

// generationOf returns the generation of an ETag. That of another service is one that no object
// has.
func generationOf(etag string) int64 {
	generation, err := strconv.ParseInt(strings.Trim(etag, `"`), 10, 64)
	if err != nil || generation <= 0 {
		return 1
	}
	return generation
}

// Check lists one object of the bucket, which needs no permissions except those for objects.
func (d *driver) Check(ctx context.Context) error {
	_, err := d.list(ctx, storagedrivers.ListOptions{}, 1)
	if errors.Is(err, gcsdk.ErrBucketNotExist) {
		err = fmt.Errorf("bucket %q: %w", d.config.Bucket, err)
	}
	return mapError(ctx, err)
}

// Features returns the guarantees of the service: it creates, replaces and compares atomically.
func (d *driver) Features() storagedrivers.Features {
	return storagedrivers.Features{
		Create: storagedrivers.Atomic, Replace: storagedrivers.Atomic, Compare: storagedrivers.Atomic, Repeat: true, Streams: true,
		Copies: true,
	}
}

// Close releases the connections.
func (d *driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.http.CloseIdleConnections()
	if d.client == nil {
		return nil
	}
	return d.client.sdk.Close()
}

// Interface guards
var (
	_ storagedrivers.Driver    = (*driver)(nil)
	_ storagedrivers.Presigner = (*driver)(nil)
)
