package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/caddymedia/media/storagedrivers"
)

// Open returns the bytes of rng.
func (d *driver) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	out, err := d.client.GetObject(ctx, &awss3.GetObjectInput{
		Bucket: &d.bucket, Key: d.name(key), Range: header(rng),
	})
	if err != nil {
		return nil, storagedrivers.Info{}, mapReadError(ctx, err)
	}
	info := storagedrivers.Info{
		Key:         key,
		ModTime:     aws.ToTime(out.LastModified),
		ETag:        strong(out.ETag),
		ContentType: storagedrivers.ContentType(key),
	}
	content := &reader{ctx: ctx, ReadCloser: out.Body}
	if out.ContentLength == nil && out.ContentRange == nil { // a proxy has removed it
		stat, statErr := d.Stat(ctx, key)
		if err = statErr; err == nil && stat.ETag != info.ETag {
			err = storagedrivers.ErrChanged
		}
		out.ContentLength = &stat.Size
	}
	if err == nil {
		info.Size, err = content.cut(out, rng)
	}
	if err != nil {
		return nil, storagedrivers.Info{}, errors.Join(err, out.Body.Close())
	}
	return content, info, nil
}

// header returns the Range header for rng.
func header(rng storagedrivers.Range) *string {
	switch {
	case rng == (storagedrivers.Range{}):
		return nil
	case rng.Length == 0 || rng.Length > math.MaxInt64-rng.Offset:
		return aws.String(fmt.Sprintf("bytes=%d-", rng.Offset))
	default:
		return aws.String(fmt.Sprintf("bytes=%d-%d", rng.Offset, rng.Offset+rng.Length-1))
	}
}

// reader reads an object until ctx ends.
type reader struct {
	io.ReadCloser
	ctx  context.Context //nolint:containedctx // the contract has readers that ctx governs
	part io.Reader       // the wanted part; nil: all
}

// cut returns the size of the whole object. If the response is the whole object, it cuts the reader
// to rng.
func (r *reader) cut(out *awss3.GetObjectOutput, rng storagedrivers.Range) (size int64, err error) {
	if out.ContentRange != nil {
		_, total, _ := strings.Cut(*out.ContentRange, "/")
		if size, err = strconv.ParseInt(total, 10, 64); err != nil {
			return 0, fmt.Errorf("the answer has the content range %q: %w", *out.ContentRange, err)
		}
		return size, nil
	}
	size = aws.ToInt64(out.ContentLength)
	n, err := rng.Within(size)
	if err != nil || n == size {
		return size, err
	}
	if _, err := io.CopyN(io.Discard, r.ReadCloser, rng.Offset); err != nil {
		return 0, mapError(r.ctx, err)
	}
	r.part = io.LimitReader(r.ReadCloser, n)
	return size, nil
}

// Read returns the next bytes.
func (r *reader) Read(p []byte) (int, error) {
	from := r.part
	if from == nil {
		from = r.ReadCloser
	}
	n, err := from.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // readers give it bare
		err = mapError(r.ctx, err)
	}
	return n, err
}
