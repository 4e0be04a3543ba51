package s3

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
)

const (
	// maxParts is the most parts of an object.
	maxParts = 10_000
	// lanes is how many parts of one object are sent at the same time, if memory allows.
	lanes = 4
)

// putParts sends an object in parts and completes the upload.
//
// The SDK's transfer manager is not used. It logs each refused creation to the standard logger and
// allocates new buffers for each object. It also aborts an upload before the driver can find out
// whether a completion without a response has happened.
func (d *driver) putParts(ctx context.Context, u *upload) (info storagedrivers.Info, err error) {
	id, err := d.beginParts(ctx, u)
	if err != nil {
		return storagedrivers.Info{}, mapError(ctx, err)
	}
	// The parts are removed before the driver looks for the object, so that nothing changes after
	// that.
	var once sync.Once
	abort := func(failed error) { once.Do(func() { d.abort(ctx, u.key, id, failed) }) }
	defer func() {
		if err != nil {
			abort(err)
		}
	}()
	parts, err := d.sendParts(ctx, u, id)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	return d.commit(ctx, u, func(longer context.Context, condition *string) (*string, error) {
		out, err := d.client.CompleteMultipartUpload(longer, &awss3.CompleteMultipartUploadInput{
			Bucket: &d.bucket, Key: d.name(u.key), UploadId: &id,
			IfNoneMatch:     condition,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
		if err != nil {
			abort(err)
			return nil, err
		}
		return out.ETag, nil
	})
}

// beginParts returns the service's ID of the upload, which is needed to abort it.
func (d *driver) beginParts(ctx context.Context, u *upload) (id string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	longer, cancel := lostreply.Outlive(ctx, lostreply.Grace)
	defer cancel()
	out, err := d.client.CreateMultipartUpload(longer, &awss3.CreateMultipartUploadInput{
		Bucket: &d.bucket, Key: d.name(u.key),
		ContentType:       optional(u.ContentType),
		CacheControl:      optional(u.CacheControl),
		Metadata:          map[string]string{lostreply.Key: u.ID},
		ChecksumAlgorithm: d.algorithm,
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.UploadId), nil
}

// sendParts sends all parts, several at the same time if memory allows, and returns them in order.
func (d *driver) sendParts(ctx context.Context, u *upload, id string) ([]types.CompletedPart, error) {
	size := max(partSize, (u.size+maxParts-1)/maxParts)
	c := &cutter{upload: u, size: size}
	parts := make([]types.CompletedPart, (u.size+size-1)/size)
	group, sending := errgroup.WithContext(ctx)
	lane := func(buffer []byte, release func()) {
		group.Go(func() error {
			defer release()
			for {
				i, content, err := c.cut(sending, buffer)
				if err != nil || len(content) == 0 {
					return err
				}
				if parts[i], err = d.sendPart(sending, u.key, id, int32(i+1), content); err != nil {
					return mapError(ctx, err)
				}
			}
		})
	}
	buffer, release, err := d.buffers.get(ctx, size)
	if err != nil {
		return nil, err
	}
	lane(buffer, release)
	for range min(lanes, len(parts)) - 1 {
		if buffer, release, ok := d.buffers.try(size); ok {
			lane(buffer, release)
		}
	}
	return parts, group.Wait()
}

// cutter cuts an object into parts for several senders.
type cutter struct {
	*upload
	size int64 // of a part

	mu   sync.Mutex
	next int
	err  error // of the source
}

// cut reads the next part. After the last one the parts are empty.
func (c *cutter) cut(ctx context.Context, buffer []byte) (i int, content []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || ctx.Err() != nil {
		return 0, nil, cmp.Or(c.err, ctx.Err())
	}
	i = c.next
	c.next++
	left := max(0, c.upload.size-int64(i)*c.size)
	content = buffer[:min(left, c.size)]
	_, c.err = io.ReadFull(c.r, content)
	return i, content, c.err
}

// sendPart sends one part. A part that arrives after its upload was aborted may stay for ever.
// Therefore sendPart waits for the response to a part that was sent completely, even after the end
// of ctx.
func (d *driver) sendPart(
	ctx context.Context, key, id string, number int32, content []byte,
) (types.CompletedPart, error) {
	longer, cancel := lostreply.Outlive(ctx, lostreply.Grace)
	defer cancel()
	out, err := d.client.UploadPart(longer, &awss3.UploadPartInput{
		Bucket: &d.bucket, Key: d.name(key), UploadId: &id, PartNumber: &number,
		Body:              &body{ctx, bytes.NewReader(content)},
		ChecksumAlgorithm: d.algorithm,
	}, retrying)
	if err != nil {
		return types.CompletedPart{}, err
	}
	return types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}, nil
}

// abort removes the parts of an upload, even after the end of ctx. failed is the error of the
// upload.
func (d *driver) abort(ctx context.Context, key, id string, failed error) {
	own, cancel := lostreply.Afterwards(ctx, d.timeout, failed)
	defer cancel()
	_, err := d.client.AbortMultipartUpload(own, &awss3.AbortMultipartUploadInput{
		Bucket: &d.bucket, Key: d.name(key), UploadId: &id,
	}, retrying)
	if err != nil && code(err) != "NoSuchUpload" {
		d.log.WarnContext(own, "the parts of a failed upload may have stayed in the bucket",
			"key", d.prefix+key, "upload_id", id, "error", err)
	}
}

const (
	// partSize is the size of a part. Objects up to this size are sent whole.
	partSize = 5 << 20
	// maxBuffered is the most bytes that all uploads of a driver hold in memory together.
	maxBuffered = 128 << 20
	// minPooled is the smallest buffer that is kept for the next upload.
	minPooled = 1 << 20
)

// buffers hold objects while they are sent. A request can then be signed and repeated for any
// source, and an error of the source is known before anything is sent.
type buffers struct {
	room  *semaphore.Weighted
	parts sync.Pool // of *[partSize]byte
}

func newBuffers() *buffers {
	return &buffers{
		room:  semaphore.NewWeighted(maxBuffered),
		parts: sync.Pool{New: func() any { return new([partSize]byte) }},
	}
}

// get waits for room and returns a buffer of n bytes. The holder of one must not wait for another.
// The SDK does not read a body after its call has returned, even with an error.
func (b *buffers) get(ctx context.Context, n int64) (buffer []byte, release func(), err error) {
	if err := b.room.Acquire(ctx, weight(n)); err != nil {
		return nil, nil, err
	}
	buffer, release = b.take(n)
	return buffer, release, nil
}

// try returns a buffer of n bytes if there is room for it.
func (b *buffers) try(n int64) (buffer []byte, release func(), ok bool) {
	if !b.room.TryAcquire(weight(n)) {
		return nil, nil, false
	}
	buffer, release = b.take(n)
	return buffer, release, true
}

func (b *buffers) take(n int64) (buffer []byte, release func()) {
	if !pooled(n) {
		return make([]byte, n), func() { b.room.Release(weight(n)) }
	}
	part := b.parts.Get().(*[partSize]byte)
	return part[:n], func() {
		b.parts.Put(part)
		b.room.Release(weight(n))
	}
}

func pooled(n int64) bool { return n >= minPooled && n <= partSize }

// weight returns the room that a buffer takes. A part that is larger than all the room, for an
// object of terabytes, gets all of it.
func weight(n int64) int64 {
	if pooled(n) {
		return partSize
	}
	return min(n, maxBuffered)
}
