package gcs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	gcsdk "cloud.google.com/go/storage"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
)

// putCopy copies an object within the service. In a bucket with versions, the source may be
// an earlier one.
func (d *driver) putCopy(
	ctx context.Context, object *gcsdk.ObjectHandle, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	source := opts.Source
	generation, err := strconv.ParseInt(strings.Trim(source.ETag, `"`), 10, 64)
	if err != nil {
		return storagedrivers.Info{}, errors.ErrUnsupported
	}
	from, err := d.object(ctx, source.Key)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	u := &upload{driver: d, object: object, size: source.Size}
	u.Upload = lostreply.New(opts, time.Duration(d.config.Timeout), u.look, func(error) bool { return true })
	info, err := u.Commit(ctx, func(ctx context.Context) (storagedrivers.Info, error) {
		copier := u.conditional().CopierFrom(from.Generation(generation))
		copier.ContentType, copier.CacheControl = u.ContentType, u.CacheControl
		copier.Metadata = map[string]string{lostreply.Key: u.ID}
		attrs, err := copier.Run(ctx)
		if err != nil {
			return storagedrivers.Info{}, err
		}
		return d.newInfo(attrs), nil
	})
	err = mapError(ctx, err)
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, gcsdk.ErrBucketNotExist) {
		err = fmt.Errorf("%w: %w", storagedrivers.ErrChanged, err)
	}
	return u.unmatched(ctx, info, err)
}
