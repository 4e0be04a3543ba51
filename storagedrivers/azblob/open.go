package azblob

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/caddymedia/media/storagedrivers"
)

// Open gives the bytes of rng. A connection that breaks is opened again where it broke, as
// long as the object is still the same.
func (d *Driver) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	count := rng.Length
	if count > math.MaxInt64-rng.Offset {
		count = blob.CountToEnd
	}
	reply, err := d.blob(key).DownloadStream(ctx, &blob.DownloadStreamOptions{
		Range: blob.HTTPRange{Offset: rng.Offset, Count: count},
	})
	if err != nil {
		return nil, storagedrivers.Info{}, failed(ctx, err)
	}
	size, err := totalSize(&reply)
	if err == nil {
		_, err = rng.Within(size) // Azurite answers also where nothing is left
	}
	if err != nil {
		_ = reply.Body.Close() // the answer is the one to tell of
		return nil, storagedrivers.Info{}, err
	}
	// It asks for the rest of this very generation.
	body := reply.NewRetryReader(ctx, &blob.RetryReaderOptions{EarlyCloseAsError: true})
	return &reader{ctx, body}, info(key, size, reply.ETag, reply.LastModified), nil
}

// totalSize gives the size of the object that a part or all of is answered with.
func totalSize(reply *blob.DownloadStreamResponse) (int64, error) {
	part := value(reply.ContentRange)
	if part == "" {
		return value(reply.ContentLength), nil
	}
	size, err := strconv.ParseInt(part[strings.LastIndexByte(part, '/')+1:], 10, 64) // bytes 5-9/12345
	if err != nil {
		return 0, fmt.Errorf("the service answers with the range %q: %w", part, err)
	}
	return size, nil
}

// reader maps the errors of a body.
type reader struct {
	ctx context.Context //nolint:containedctx // the contract has readers that ctx governs
	io.ReadCloser
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err == io.EOF { // readers give it bare
		return n, err
	}
	return n, failed(r.ctx, err)
}
