package gcs

import (
	"context"
	"io"

	gcsdk "cloud.google.com/go/storage"
)

// reader gives the bytes of one generation and the errors of this package.
type reader struct {
	ctx  context.Context //nolint:containedctx // the contract has readers that ctx governs
	body *gcsdk.Reader
}

// download begins to read length bytes of a generation from offset on, or all if length is
// below zero. What is stored is what comes: the service would unpack an object that somebody
// has stored with a content encoding, and is not told to take one where there is none.
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
	if err != nil && err != io.EOF { //nolint:errorlint // readers give it bare
		err = mapError(r.ctx, err)
	}
	return n, err
}

func (r *reader) Close() error { return r.body.Close() }
