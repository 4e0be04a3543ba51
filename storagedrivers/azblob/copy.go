package azblob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

const (
	// copySize is the size of a copied block. The service is silent while it copies one.
	copySize = 64 << 20
	// copyTime is the lifetime of the address at which the service reads the source.
	copyTime = 24 * time.Hour
)

// putCopy copies an object within the service, in blocks. Copy Blob is not used: the copy may be
// visible before it is complete. Copy Blob From URL keeps the headers of the source.
func (d *driver) putCopy(ctx context.Context, key string, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	source := *opts.Source
	if source.Size == 0 || source.ETag == "" {
		return storagedrivers.Info{}, errors.ErrUnsupported
	}
	address, err := d.Presign(ctx, source.Key, storagedrivers.PresignOptions{Lifetime: copyTime})
	if errors.Is(err, fs.ErrPermission) { // an identity that is no delegator
		err = fmt.Errorf("signing the address of the source: %w: %w", errors.ErrUnsupported, err)
	}
	if err != nil {
		return storagedrivers.Info{}, err
	}
	u := d.newUpload(key, source.Size, opts)
	if opts.Mode == storagedrivers.CreateOnly && u.size > copySize { // as in sendBlocks
		if stored, err := u.Find(ctx); !errors.Is(err, fs.ErrNotExist) {
			return stored, err
		}
	}
	return u.repeat(ctx, func() (storagedrivers.Info, error) {
		ids, err := u.copyAll(ctx, address, source.ETag)
		if err != nil {
			return storagedrivers.Info{}, err
		}
		return u.commitBlocks(ctx, ids)
	})
}

// copyAll copies the object at an address into blocks, and returns their names in order.
func (u *upload) copyAll(ctx context.Context, address, tag string) ([]string, error) {
	size := max(copySize, (u.size+maxBlocks-1)/maxBlocks)
	ids := make([]string, (u.size+size-1)/size)
	group, copying := guard.WithContext(ctx, concurrency)
	for i := range ids {
		ids[i] = u.blockID(i)
		from := int64(i) * size
		opts := &blockblob.StageBlockFromURLOptions{
			Range:                          blob.HTTPRange{Offset: from, Count: min(size, u.size-from)},
			SourceModifiedAccessConditions: &blob.SourceModifiedAccessConditions{SourceIfMatch: new(azcore.ETag(tag))},
		}
		group.Go(func() error {
			_, err := u.stageBy(copying, func() error {
				_, err := u.blob.StageBlockFromURL(copying, ids[i], address, opts)
				return err
			})
			return err
		})
	}
	return ids, mapCopyError(ctx, group.Wait())
}

// mapCopyError is mapError for a request that reads a source. A service that cannot read it at its
// address leaves that to the caller.
func mapCopyError(ctx context.Context, err error) error {
	replied, ok := errors.AsType[*azcore.ResponseError](err)
	switch {
	case !ok || ctx.Err() != nil:
	case bloberror.HasCode(err, bloberror.SourceConditionNotMet),
		bloberror.HasCode(err, bloberror.CannotVerifyCopySource) && replied.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %w", storagedrivers.ErrChanged, brief(err))
	case bloberror.HasCode(err, bloberror.CannotVerifyCopySource), replied.StatusCode == http.StatusNotImplemented:
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, brief(err))
	}
	return mapError(ctx, err)
}
