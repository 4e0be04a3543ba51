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

// Open returns the bytes of rng. The reader reopens a broken connection at the same offset, as long
// as the object is unchanged.
func (d *driver) Open(
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
		return nil, storagedrivers.Info{}, mapError(ctx, err)
	}
	size, err := totalSize(&reply)
	if err == nil {
		_, err = rng.Within(size) // Azurite answers also where nothing is left
	}
	if err != nil {
		_ = reply.Body.Close() // the first error counts
		return nil, storagedrivers.Info{}, err
	}
	// Retries request the rest of the same generation.
	body := reply.NewRetryReader(ctx, &blob.RetryReaderOptions{EarlyCloseAsError: true})
	return &reader{ctx, body}, newInfo(key, size, reply.ETag, reply.LastModified), nil
}

// totalSize returns the size of the whole object.
func totalSize(reply *blob.DownloadStreamResponse) (int64, error) {
	part := value(reply.ContentRange)
	if part == "" {
		return lengthOf(reply.ContentLength)
	}
	size, err := strconv.ParseInt(part[strings.LastIndexByte(part, '/')+1:], 10, 64) // bytes 5-9/12345
	if err != nil {
		return 0, fmt.Errorf("the service answers with the range %q: %w", part, err)
	}
	return size, nil
}

// lengthOf returns the length of an object. Without it, a proxy has changed the reply.
func lengthOf(length *int64) (int64, error) {
	if length == nil {
		return 0, azure.Foreign("an object without a length")
	}
	return *length, nil
}

// reader maps the errors of a body.
type reader struct {
	ctx context.Context //nolint:containedctx // the contract has readers that ctx governs
	io.ReadCloser
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err == io.EOF { // callers compare it with ==
		return n, err
	}
	return n, mapError(r.ctx, err)
}
