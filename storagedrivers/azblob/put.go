package azblob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	mathrand "math/rand/v2"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
)

const (
	// attempts is how often an upload is sent if other writers discard its blocks, and how often a
	// block is sent.
	attempts = 4
	// firstPause is about the first pause between attempts; each is twice as long as the previous
	// one.
	firstPause = 100 * time.Millisecond
)

// upload is a running Put. The SDK's UploadStream is not used: it frees the memory of blocks when
// it returns, while an aborted connection may still read them, which crashes the process.
type upload struct {
	*lostreply.Upload
	driver *driver
	blob   *blockblob.Client
	key    string
	size   int64 // -1 if it is not known yet
}

func (d *driver) newUpload(key string, size int64, opts storagedrivers.PutOptions) *upload {
	look := func(ctx context.Context) (storagedrivers.Info, string, error) { return d.look(ctx, key) }
	return &upload{lostreply.New(opts, d.timeout, look, doubtful), d, d.blob(key), key, size}
}

// Put stores all of r under key: a small object by one request, a large one by blocks that become
// an object when they are committed.
func (d *driver) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	if opts.Source != nil {
		return d.putCopy(ctx, key, opts)
	}
	size, err := storagedrivers.SourceSize(r)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	u := d.newUpload(key, size, opts)
	return u.repeat(ctx, func() (storagedrivers.Info, error) {
		if _, err := r.Seek(0, io.SeekStart); err != nil {
			return storagedrivers.Info{}, err
		}
		return u.send(ctx, r)
	})
}

// repeat calls store again if a commit of the key by another writer has discarded the blocks of
// this upload.
func (u *upload) repeat(ctx context.Context, store func() (storagedrivers.Info, error)) (storagedrivers.Info, error) {
	for attempt := 1; ; attempt++ {
		stored, err := store()
		if attempt == attempts || !bloberror.HasCode(err, bloberror.InvalidBlockList) {
			return stored, err
		}
		if err := pause(ctx, attempt); err != nil {
			return storagedrivers.Info{}, err
		}
	}
}

// send stores r, which is at its start.
func (u *upload) send(ctx context.Context, r io.Reader) (storagedrivers.Info, error) {
	if u.size > blockSize || u.size < 0 {
		return u.sendBlocks(ctx, r)
	}
	data := make([]byte, u.size)
	if err := fill(r, data); err != nil {
		return storagedrivers.Info{}, err
	}
	stored, err := u.commit(ctx, func(longer context.Context) (*azcore.ETag, *time.Time, error) {
		reply, err := u.blob.Upload(longer, streaming.NopCloser(bytes.NewReader(data)), &blockblob.UploadOptions{
			Metadata: u.metadata(), HTTPHeaders: u.headers(), AccessConditions: u.conditions(),
		})
		return reply.ETag, reply.LastModified, err
	})
	if errors.Is(err, fs.ErrExist) {
		// Azurite treats leftover blocks of an upload as an object, unless others are committed. If
		// an object really exists, sendBlocks sends nothing.
		return u.sendBlocks(ctx, bytes.NewReader(data))
	}
	return stored, err
}

// commit calls send, which makes the object visible.
func (u *upload) commit(
	ctx context.Context, send func(longer context.Context) (*azcore.ETag, *time.Time, error),
) (storagedrivers.Info, error) {
	stored, err := u.Commit(ctx, func(longer context.Context) (storagedrivers.Info, error) {
		etag, modTime, err := send(longer)
		return newInfo(u.key, u.size, etag, modTime), brief(err)
	})
	if err != nil {
		err = u.mapError(ctx, err)
		if errors.Is(err, storagedrivers.ErrChanged) {
			if own, missed := u.Find(ctx); missed == nil { // of an earlier attempt
				return own, nil
			}
		}
		return storagedrivers.Info{}, err
	}
	return stored, nil
}

// mapError maps the error of a request that creates the object.
func (u *upload) mapError(ctx context.Context, err error) error {
	if u.Mode == storagedrivers.CreateOnly && bloberror.HasCode(err, taken...) {
		return fmt.Errorf("%w: %w", fs.ErrExist, brief(err))
	}
	if u.IfMatch != "" {
		return mapChanged(ctx, err)
	}
	return mapError(ctx, err)
}

// mapChanged maps the error of a request on condition of an ETag.
func mapChanged(ctx context.Context, err error) error {
	if bloberror.HasCode(err, bloberror.ConditionNotMet) {
		return fmt.Errorf("%w: %s", storagedrivers.ErrChanged, brief(err).Error())
	}
	return mapError(ctx, err)
}

func (u *upload) metadata() map[string]*string { return map[string]*string{lostreply.Key: &u.ID} }

func (u *upload) headers() *blob.HTTPHeaders {
	headers := &blob.HTTPHeaders{}
	if u.ContentType != "" {
		headers.BlobContentType = &u.ContentType
	}
	if u.CacheControl != "" {
		headers.BlobCacheControl = &u.CacheControl
	}
	return headers
}

func (u *upload) conditions() *blob.AccessConditions {
	var conditions blob.ModifiedAccessConditions
	switch {
	case u.Mode == storagedrivers.CreateOnly:
		conditions.IfNoneMatch = new(azcore.ETagAny)
	case u.IfMatch != "":
		conditions.IfMatch = new(azcore.ETag(u.IfMatch))
	default:
		return nil
	}
	return &blob.AccessConditions{ModifiedAccessConditions: &conditions}
}

// fill reads data from the source. The end of the source is io.ErrUnexpectedEOF.
func fill(r io.Reader, data []byte) error {
	_, err := io.ReadFull(r, data)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// pause waits for a random time before attempt+1, so that clients do not retry at the same time.
func pause(ctx context.Context, attempt int) error {
	longest := firstPause << attempt
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(mathrand.N(longest)): //nolint:gosec // nothing secret
		return nil
	}
}
