package azblob

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

// driver stores objects as block blobs in one container.
//
// It is not a [storagedrivers.Sweeper]: an aborted upload leaves only uncommitted blocks. The
// service discards them after a week, or earlier if the key is stored.
type driver struct {
	name      string // of the container
	folder    string // the prefix of all keys in the container
	container *container.Client
	sign      signer // nil: nothing can
	transport *http.Transport
	timeout   time.Duration // that the service may keep silent
	now       func() time.Time
}

// newDriver returns a driver of a container, without using the network.
func newDriver(c Config) (*driver, error) {
	if err := c.Complete(); err != nil {
		return nil, err
	}
	d := &driver{
		name: c.Container, folder: c.folder(),
		transport: network.Transport(time.Duration(c.Timeout)),
		timeout:   time.Duration(c.Timeout),
		now:       time.Now, //nolint:forbidigo // the clock's one default
	}
	var err error
	d.container, d.sign, err = c.open(d.transport, d.now)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Stat returns the Info of an object.
func (d *driver) Stat(ctx context.Context, key string) (storagedrivers.Info, error) {
	found, _, err := d.look(ctx, key)
	return found, err
}

// look returns the Info of an object and the ID of its upload.
func (d *driver) look(ctx context.Context, key string) (storagedrivers.Info, string, error) {
	reply, err := d.blob(key).GetProperties(ctx, nil)
	if err != nil {
		return storagedrivers.Info{}, "", mapError(ctx, err)
	}
	size, err := lengthOf(reply.ContentLength)
	if err != nil {
		return storagedrivers.Info{}, "", err
	}
	found := newInfo(key, size, reply.ETag, reply.LastModified)
	for name, id := range reply.Metadata {
		if strings.EqualFold(name, lostreply.Key) { // headers have changed its case
			return found, value(id), nil
		}
	}
	return found, "", nil
}

// Delete removes an object with all of its snapshots. A missing one is fs.ErrNotExist.
func (d *driver) Delete(ctx context.Context, key string, opts storagedrivers.DeleteOptions) error {
	deletion := &blob.DeleteOptions{DeleteSnapshots: new(blob.DeleteSnapshotsOptionTypeInclude)}
	if opts.IfMatch != "" {
		deletion.AccessConditions = &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: new(azcore.ETag(opts.IfMatch))},
		}
	}
	_, err := d.blob(key).Delete(ctx, deletion)
	return mapChanged(ctx, err)
}

// Check lists the container, so that it needs no additional right.
func (d *driver) Check(ctx context.Context) error {
	_, err := d.List(ctx, storagedrivers.ListOptions{Limit: 1})
	if bloberror.HasCode(err, bloberror.ContainerNotFound) {
		return fmt.Errorf("the container %q does not exist and is not made: %w", d.name, err)
	}
	return err
}

// Features returns the guarantees of the service: all but those of a Stager.
func (d *driver) Features() storagedrivers.Features {
	return storagedrivers.Features{
		Create: storagedrivers.Atomic, Replace: storagedrivers.Atomic, Compare: storagedrivers.Atomic, Repeat: true, Streams: true,
		Copies: d.sign != nil,
	}
}

// Close closes the idle connections; no other is open any more.
func (d *driver) Close() error {
	d.transport.CloseIdleConnections()
	return nil
}

func (d *driver) blob(key string) *blockblob.Client {
	return d.container.NewBlockBlobClient(d.folder + key)
}

func newInfo(key string, size int64, etag *azcore.ETag, modTime *time.Time) storagedrivers.Info {
	return storagedrivers.Info{
		Key:         key,
		Size:        size,
		ModTime:     value(modTime).UTC(),
		ETag:        string(value(etag)),
		ContentType: storagedrivers.ContentType(key),
	}
}

// value returns *p, or the zero value if p is nil, because the service did not send it.
func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// Interface guards
var (
	_ storagedrivers.Driver    = (*driver)(nil)
	_ storagedrivers.Presigner = (*driver)(nil)
)
