package s3

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
)

// copySize is the size of a copied part. The service is silent while it copies one.
const copySize = 64 << 20

// putCopy copies an object within the service, in parts. CopyObject is not used: few services heed
// If-None-Match there, as all do that heed it when parts are completed. It has a limit of 5 GiB,
// and a service that does not know it stores an empty object.
func (d *driver) putCopy(ctx context.Context, key string, opts storagedrivers.PutOptions) (storagedrivers.Info, error) {
	source := *opts.Source
	if source.Size == 0 || source.ETag == "" {
		return storagedrivers.Info{}, errors.ErrUnsupported
	}
	u := d.newUpload(key, opts)
	u.size = source.Size
	u.algorithm = "" // the checksum of a copied part is not known

	if opts.Mode == storagedrivers.CreateOnly && u.size > copySize { // as in Put
		if info, err := u.Find(ctx); !errors.Is(err, fs.ErrNotExist) {
			return info, err
		}
	}
	return d.putParts(ctx, u, func(ctx context.Context, u *upload, id string) ([]types.CompletedPart, error) {
		parts, err := d.copyParts(ctx, u, id, source)
		if err != nil && !errors.Is(err, storagedrivers.ErrChanged) {
			return nil, err
		}
		return parts, d.confirmSource(ctx, source, err)
	})
}

// confirmSource returns an error unless source was copied, or refused with ErrChanged, as it is.
// Some services ignore the condition of a part's source, and others do not know it.
func (d *driver) confirmSource(ctx context.Context, source storagedrivers.Info, refused error) error {
	now, err := d.Stat(ctx, source.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (now.ETag != source.ETag || now.Size != source.Size):
		return fmt.Errorf("%w: it was not copied", storagedrivers.ErrChanged)
	case err == nil && refused != nil:
		return fmt.Errorf("%w: the unchanged source is refused: %s", errors.ErrUnsupported, refused.Error())
	}
	return err
}

// copyParts copies source into the parts of an upload, several at the same time.
func (d *driver) copyParts(
	ctx context.Context, u *upload, id string, source storagedrivers.Info,
) ([]types.CompletedPart, error) {
	size := max(copySize, (u.size+maxParts-1)/maxParts)
	parts := make([]types.CompletedPart, (u.size+size-1)/size)
	group, copying := guard.WithContext(ctx, lanes)
	for i := range parts {
		group.Go(func() error {
			if err := copying.Err(); err != nil {
				return err
			}
			from := int64(i) * size
			part, err := d.copyPart(copying, u.key, id, int32(i+1), source, from, min(from+size, u.size))
			parts[i] = part
			return err
		})
	}
	return parts, group.Wait()
}

// copyPart copies the bytes of source between two offsets into a part. Like sendPart, it waits for
// the response.
func (d *driver) copyPart(
	ctx context.Context, key, id string, number int32, source storagedrivers.Info, from, to int64,
) (types.CompletedPart, error) {
	longer, cancel := lostreply.Outlive(ctx, lostreply.Grace)
	defer cancel()
	out, err := d.client.UploadPartCopy(longer, &awss3.UploadPartCopyInput{
		Bucket: &d.bucket, Key: d.name(key), UploadId: &id, PartNumber: &number,
		CopySource:        aws.String(escaped(d.bucket + "/" + *d.name(source.Key))),
		CopySourceIfMatch: &source.ETag,
		CopySourceRange:   aws.String(fmt.Sprintf("bytes=%d-%d", from, to-1)),
	}, retrying)
	if err != nil {
		return types.CompletedPart{}, mapCopyError(ctx, err)
	}
	if out.CopyPartResult == nil || aws.ToString(out.CopyPartResult.ETag) == "" {
		return types.CompletedPart{}, fmt.Errorf("the service does not copy parts: %w", errors.ErrUnsupported)
	}
	return types.CompletedPart{PartNumber: &number, ETag: out.CopyPartResult.ETag}, nil
}

// mapCopyError is mapError for a request that reads a source by its entity tag.
func mapCopyError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return mapError(ctx, err)
	}
	if sentinel := sentinelOf(err); errors.Is(sentinel, fs.ErrNotExist) || errors.Is(sentinel, fs.ErrExist) { // a failed condition
		return fmt.Errorf("%w: %w", storagedrivers.ErrChanged, brief(err))
	}
	switch status(err) {
	case http.StatusBadRequest, http.StatusRequestedRangeNotSatisfiable: // a shorter source does not have the range
		return fmt.Errorf("%w: %w", storagedrivers.ErrChanged, brief(err))
	case http.StatusMethodNotAllowed, http.StatusLengthRequired, http.StatusNotImplemented: // it knows no sources
		return fmt.Errorf("%w: %w", errors.ErrUnsupported, brief(err))
	}
	return mapError(ctx, err)
}

// escaped returns the name of a source as a header has it.
func escaped(name string) string {
	return strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(name))
}
