package gcs

import (
	"context"
	"errors"
	"fmt"
	"io"

	gcsdk "cloud.google.com/go/storage"

	"github.com/caddymedia/media/storagedrivers"
)

// maxGenerations bounds how often Open starts again because the object was replaced between reading
// its attributes and the download.
const maxGenerations = 5

var errReplaced = fmt.Errorf("%w: the object is replaced all the time", storagedrivers.ErrUnavailable)

// Open returns the bytes of rng. It reads the attributes first. A download contains neither the
// time of the upload nor, if the range is refused, a sign that the object exists.
func (d *driver) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	object, err := d.object(ctx, key)
	if err != nil {
		return nil, storagedrivers.Info{}, err
	}
	for range maxGenerations {
		attrs, err := object.Attrs(ctx)
		if err != nil {
			return nil, storagedrivers.Info{}, mapError(ctx, err)
		}
		length, err := rng.Within(attrs.Size)
		if err != nil {
			return nil, storagedrivers.Info{}, err
		}
		if rng == (storagedrivers.Range{}) {
			length = -1 // all of it, and its checksum is compared
		}
		body, err := download(ctx, object, attrs, rng.Offset, length)
		if err == nil {
			return body, d.newInfo(attrs), nil
		}
		if !errors.Is(err, gcsdk.ErrObjectNotExist) {
			return nil, storagedrivers.Info{}, mapError(ctx, err)
		}
	}
	return nil, storagedrivers.Info{}, errReplaced
}

// reader reads one generation and maps errors.
type reader struct {
	ctx  context.Context //nolint:containedctx // the contract has readers that ctx governs
	body *gcsdk.Reader
}

// download opens length bytes of a generation from offset on, or all if length is negative. It
// returns the bytes as they are stored; otherwise the service would decompress an object with a
// content encoding.
func download(
	ctx context.Context, object *gcsdk.ObjectHandle, attrs *gcsdk.ObjectAttrs, offset, length int64,
) (*reader, error) {
	object = object.Generation(attrs.Generation).ReadCompressed(attrs.ContentEncoding != "")
	body, err := object.NewRangeReader(withBudget(ctx), offset, length)
	if err != nil {
		return nil, err
	}
	return &reader{ctx, body}, nil
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // callers compare it with ==
		err = mapError(r.ctx, err)
	}
	return n, err
}

func (r *reader) Close() error { return r.body.Close() }
