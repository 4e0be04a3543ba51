package s3

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/semaphore"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
	"github.com/caddymedia/media/storagedrivers/internal/source"
)

const (
	// maxParts is the most parts of an object.
	maxParts = 10_000
	// lanes is how many parts of one object are sent at the same time, if memory allows.
	lanes = 4
)

// putParts sends an object in parts by send, and completes the upload.
//
// The SDK's transfer manager is not used. It logs each refused creation to the standard logger and
// allocates new buffers for each object. It also aborts an upload before the driver can find out
// whether a completion without a response has happened.
func (d *driver) putParts(
	ctx context.Context, u *upload, send func(ctx context.Context, u *upload, id string) ([]types.CompletedPart, error),
) (info storagedrivers.Info, err error) {
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
	parts, err := send(ctx, u, id)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	return d.commit(ctx, u, func(longer context.Context, c condition) (*string, error) {
		out, err := d.client.CompleteMultipartUpload(longer, &awss3.CompleteMultipartUploadInput{
			Bucket: &d.bucket, Key: d.name(u.key), UploadId: &id,
			IfNoneMatch:     c.noneMatch,
			IfMatch:         c.match,
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
		ChecksumAlgorithm: u.algorithm,
	})
	if err != nil {
		return "", err
	}
	if aws.ToString(out.UploadId) == "" {
		return "", s3Service.Foreign("an upload without an ID")
	}
	return *out.UploadId, nil
}

// sendParts sends all parts, several at the same time if memory allows, and returns them in order.
func (d *driver) sendParts(ctx context.Context, u *upload, id string) ([]types.CompletedPart, error) {
	size := max(partSize, (u.size+maxParts-1)/maxParts)
	c := &cutter{upload: u, source: source.New(ctx, u.r), size: size}
	group, sending := guard.WithContext(ctx, lanes)
	lane := func(buffer []byte, release func()) {
		group.Go(func() error {
			defer release()
			for {
				number, content, err := c.cut(sending, buffer)
				if err != nil || len(content) == 0 {
					return err
				}
				part, err := d.sendPart(sending, u.key, id, number, content)
				if err != nil {
					return mapError(ctx, err)
				}
				c.sent(part)
			}
		})
	}
	if u.size < 0 {
		if err := d.openStreamLanes(lane); err != nil {
			return nil, err
		}
	} else {
		buffer, release, err := d.buffers.get(ctx, size)
		if err != nil {
			return nil, err
		}
		lane(buffer, release)
		for range min(lanes, (u.size+size-1)/size) - 1 {
			if buffer, release, ok := d.buffers.try(size); ok {
				lane(buffer, release)
			}
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	u.size = c.source.Size()
	slices.SortFunc(c.parts, func(a, b types.CompletedPart) int { return cmp.Compare(*a.PartNumber, *b.PartNumber) })
	return c.parts, nil
}

// openStreamLanes calls lane for an object of unknown size. It does not wait for room: objects that
// arrive slowly may have it all. Uploads of known size do not wait for them either.
func (d *driver) openStreamLanes(lane func(buffer []byte, release func())) error {
	for i := range lanes {
		buffer, release, ok := d.streams.try(partSize)
		if ok {
			lane(buffer, release)
		} else if i == 0 {
			return storagedrivers.ErrBusy
		}
	}
	return nil
}

// cutter cuts an object into parts for several senders.
type cutter struct {
	*upload
	source *source.Reader
	size   int64 // of a part

	mu   sync.Mutex // of reading
	last int32      // number
	err  error      // of the source

	partsMu sync.Mutex // reading may take long
	parts   []types.CompletedPart
}

// cut reads the next part. After the last one the parts are empty.
func (c *cutter) cut(ctx context.Context, buffer []byte) (number int32, content []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || ctx.Err() != nil {
		return 0, nil, cmp.Or(c.err, ctx.Err())
	}
	left := c.size
	if c.upload.size >= 0 {
		left = min(left, c.upload.size-int64(c.last)*c.size)
	}
	c.last++
	n, err := io.ReadFull(c.source, buffer[:max(0, left)])
	if c.upload.size >= 0 || c.source.Err() != nil {
		c.err = err // of a source of unknown size, the end is none
	}
	return c.last, buffer[:n], c.err
}

func (c *cutter) sent(part types.CompletedPart) {
	c.partsMu.Lock()
	defer c.partsMu.Unlock()
	c.parts = append(c.parts, part)
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
	// maxBuffered is the most bytes that all uploads of known size of a driver hold in memory
	// together, and maxStreamed that of the others.
	maxBuffered = 64 << 20
	maxStreamed = 64 << 20
	// minPooled is the smallest buffer that is kept for the next upload.
	minPooled = 1 << 20
)

// buffers hold objects while they are sent. A request can then be signed and repeated for any
// source, and an error of the source is known before anything is sent.
type buffers struct {
	room  *semaphore.Weighted
	parts sync.Pool // of *[partSize]byte
}

func newBuffers(room int64) *buffers {
	return &buffers{
		room:  semaphore.NewWeighted(room),
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
