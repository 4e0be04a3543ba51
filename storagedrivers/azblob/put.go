package azblob

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

const (
	// attempts is how often an upload is sent whose blocks others have dropped, and how
	// often a block is sent.
	attempts = 4
	// firstPause is about how long the first pause between them takes; they double.
	firstPause = 100 * time.Millisecond
	// idName is the metadata by which an upload knows its own object.
	idName = "uploadid"
)

// upload is one Put on its way. The SDK's UploadStream is not used: it frees the memory of
// blocks when it returns, while a connection that was broken off may still read them, and
// that crashes the process.
type upload struct {
	driver *Driver
	blob   *blockblob.Client
	key    string
	id     string // of the upload, to know its object by
	size   int64
	opts   storagedrivers.PutOptions
}

// Put stores all of r under key: a small object by one request, a large one by blocks that
// become an object when they are committed.
func (d *Driver) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	u := &upload{driver: d, blob: d.blob(key), key: key, id: cmp.Or(opts.ID, rand.Text()), size: size, opts: opts}
	for attempt := 1; ; attempt++ {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return storagedrivers.Info{}, err
		}
		stored, err := u.send(ctx, r)
		// Whoever commits an object drops the blocks that others have sent under its key.
		if attempt == attempts || !bloberror.HasCode(err, bloberror.InvalidBlockList) {
			return stored, err
		}
		if err := pause(ctx, attempt); err != nil {
			return storagedrivers.Info{}, err
		}
	}
}

// send stores r, which stands at its start.
func (u *upload) send(ctx context.Context, r io.Reader) (storagedrivers.Info, error) {
	if u.size > blockSize {
		return u.sendBlocks(ctx, r)
	}
	data := make([]byte, u.size)
	if err := fill(r, data); err != nil {
		return storagedrivers.Info{}, err
	}
	stored, err := u.commit(ctx, func(ctx context.Context) (*azcore.ETag, *time.Time, error) {
		reply, err := u.blob.Upload(ctx, streaming.NopCloser(bytes.NewReader(data)), &blockblob.UploadOptions{
			Metadata: u.metadata(), HTTPHeaders: u.headers(), AccessConditions: u.conditions(),
		})
		return reply.ETag, reply.LastModified, err
	})
	if errors.Is(err, fs.ErrExist) {
		// Azurite takes blocks that an upload has left behind for an object, unless others
		// are committed. Where there is one indeed nothing is sent.
		return u.sendBlocks(ctx, bytes.NewReader(data))
	}
	return stored, err
}

// commit calls send, which makes the object visible, and finds out what came of it.
func (u *upload) commit(
	ctx context.Context, send func(context.Context) (*azcore.ETag, *time.Time, error),
) (storagedrivers.Info, error) {
	if err := ctx.Err(); err != nil {
		return storagedrivers.Info{}, err
	}
	etag, modTime, err := u.sent(ctx, send)
	if err != nil && !uncertain(err) {
		return storagedrivers.Info{}, u.failed(ctx, err)
	}
	found, id, missed := u.find(ctx, err)
	switch {
	case missed == nil && id == u.id:
		return found, nil
	case err == nil: // replaced since, or the service does not tell
		return info(u.key, u.size, etag, modTime), nil
	case missed == nil && u.opts.Mode == storagedrivers.CreateOnly: // somebody else's
		return storagedrivers.Info{}, failed(ctx, fs.ErrExist)
	}
	return storagedrivers.Info{}, u.failed(ctx, err)
}

// sent calls send with a context that outlives ctx a little: breaking the request off would
// leave unknown whether there is an object.
func (u *upload) sent(
	ctx context.Context, send func(context.Context) (*azcore.ETag, *time.Time, error),
) (*azcore.ETag, *time.Time, error) {
	longer, cancel := network.Outlive(ctx, u.driver.grace)
	defer cancel()
	return send(longer)
}

// find looks for the object after a request that ended with failed, also when ctx has ended, and
// returns the id of the upload that it is from.
func (u *upload) find(ctx context.Context, failed error) (storagedrivers.Info, string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), network.Afterwards(u.driver.timeout, failed))
	defer cancel()
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{
		MaxRetries: attempts - 1, RetryDelay: firstPause, MaxRetryDelay: time.Second,
	})
	reply, err := u.blob.GetProperties(ctx, nil)
	if err != nil {
		return storagedrivers.Info{}, "", err
	}
	about := info(u.key, value(reply.ContentLength), reply.ETag, reply.LastModified)
	for name, id := range reply.Metadata {
		if strings.EqualFold(name, idName) { // headers have changed its case
			return about, value(id), nil
		}
	}
	return about, "", nil
}

// failed maps the error of a request that was to make the object.
func (u *upload) failed(ctx context.Context, err error) error {
	// The second is how a signature is refused that may create but not overwrite.
	if u.opts.Mode == storagedrivers.CreateOnly &&
		bloberror.HasCode(err, bloberror.ConditionNotMet, bloberror.UnauthorizedBlobOverwrite) {
		return fmt.Errorf("%w: %w", fs.ErrExist, brief(err))
	}
	return failed(ctx, err)
}

func (u *upload) metadata() map[string]*string { return map[string]*string{idName: &u.id} }

func (u *upload) headers() *blob.HTTPHeaders {
	headers := &blob.HTTPHeaders{}
	if u.opts.ContentType != "" {
		headers.BlobContentType = &u.opts.ContentType
	}
	if u.opts.CacheControl != "" {
		headers.BlobCacheControl = &u.opts.CacheControl
	}
	return headers
}

func (u *upload) conditions() *blob.AccessConditions {
	if u.opts.Mode != storagedrivers.CreateOnly {
		return nil
	}
	return &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: new(azcore.ETagAny)},
	}
}

// fill reads data from the source; its end is an error here.
func fill(r io.Reader, data []byte) error {
	_, err := io.ReadFull(r, data)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// pause waits before what has failed attempt times is tried again, not in step with others.
func pause(ctx context.Context, attempt int) error {
	longest := firstPause << attempt
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(mathrand.N(longest)): //nolint:gosec // nothing secret
		return nil
	}
}
