package gcs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	gcsdk "cloud.google.com/go/storage"

	"github.com/caddymedia/media/storagedrivers"
)

// Driver keeps objects in a bucket.
//
// It is no [storagedrivers.Sweeper]: all that an upload leaves behind is a session that nobody
// goes on with, which the service ends by itself after a week and lists nowhere.
type Driver struct {
	config Config
	prefix string // of all names; it is empty or ends at a slash
	http   *transport
	now    func() time.Time

	mu     sync.Mutex
	client *client // nil until one could be made
}

// New gives the driver for a bucket, without touching the network.
func New(c Config) (*Driver, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	d := &Driver{
		config: c, http: newTransport(c.Timeout),
		now: time.Now, //nolint:forbidigo // the clock's one default
	}
	if c.Prefix != "" {
		d.prefix = c.Prefix + "/"
	}
	return d, nil
}

// object gives the handle of the object under key.
func (d *Driver) object(ctx context.Context, key string) (*gcsdk.ObjectHandle, error) {
	if len(d.prefix)+len(key) > storagedrivers.MaxKeyBytes {
		return nil, fmt.Errorf("%w: too long behind the prefix %q", storagedrivers.ErrInvalidKey, d.prefix)
	}
	client, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	return client.bucket.Object(d.prefix + key), nil
}

// Stat gives the Info of an object.
func (d *Driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	object, err := d.object(ctx, key)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	attrs, err := object.Attrs(ctx)
	if err != nil {
		return storagedrivers.Info{}, mapError(ctx, err)
	}
	return d.info(attrs), nil
}

// info describes an object. Its generation is what tells it from every other that was or
// will be under its name; the entity tag of the service also changes with the metadata.
func (d *Driver) info(attrs *gcsdk.ObjectAttrs) storagedrivers.Info {
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
func (d *Driver) Delete(ctx context.Context, key string) error {
	object, err := d.object(ctx, key)
	if err != nil {
		return err
	}
	return mapError(ctx, object.Delete(ctx))
}

// Check asks for one object of the bucket, which is what an account that may only use
// objects is allowed to do.
func (d *Driver) Check(ctx context.Context) error {
	_, err := d.list(ctx, storagedrivers.ListOptions{}, 1)
	if errors.Is(err, gcsdk.ErrBucketNotExist) {
		err = fmt.Errorf("bucket %q: %w", d.config.Bucket, err)
	}
	return mapError(ctx, err)
}

// Features tells that the service decides who creates a name, and replaces objects whole.
func (d *Driver) Features() storagedrivers.Features {
	return storagedrivers.Features{Create: storagedrivers.Atomic, Replace: storagedrivers.Atomic, Repeat: true}
}

// Close releases the connections.
func (d *Driver) Close() error {
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
	_ storagedrivers.Driver    = (*Driver)(nil)
	_ storagedrivers.Presigner = (*Driver)(nil)
)
