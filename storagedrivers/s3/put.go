package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	smithy "github.com/aws/smithy-go"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
)

const (
	// uploadID is the metadata by which an upload knows its own object.
	uploadID = "media-upload"
	// grace is how long a request that makes an object appear may still be answered
	// after its caller has given up: without the answer nobody knows what there is.
	grace = 5 * time.Second
)

// upload is one object on its way.
type upload struct {
	key  string
	size int64
	r    io.Reader
	opts storagedrivers.PutOptions
	id   string // as no other upload's
}

// Put stores all of r under key. What is larger than a part is sent in parts, which are an
// object only once the service has been told that they are.
func (d *Driver) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	size, err := r.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	if err != nil {
		return storagedrivers.Info{}, err
	}
	u := &upload{key: key, size: size, r: r, opts: opts, id: cmp.Or(opts.ID, rand.Text())}
	if size <= partSize {
		return d.putWhole(ctx, u)
	}
	if opts.Mode == storagedrivers.CreateOnly { // the service would tell when all was sent
		if info, err := d.free(ctx, u); err != nil || info.Key != "" {
			return info, err
		}
	}
	return d.putParts(ctx, u)
}

// free tells whether nobody has stored anything under the key of u yet: otherwise it is
// fs.ErrExist, or the Info of u's own object, which an earlier attempt has stored.
func (d *Driver) free(ctx context.Context, u *upload) (storagedrivers.Info, error) {
	head, err := d.head(ctx, u.key)
	if err == nil && head.Metadata[uploadID] == u.id {
		return d.headInfo(u.key, head), nil
	}
	if err == nil {
		return storagedrivers.Info{}, fs.ErrExist
	}
	if err = mapReadError(ctx, err); errors.Is(err, fs.ErrNotExist) {
		return storagedrivers.Info{}, nil
	}
	return storagedrivers.Info{}, err
}

func (d *Driver) putWhole(ctx context.Context, u *upload) (storagedrivers.Info, error) {
	buffer, release, err := d.buffers.get(ctx, u.size)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	defer release()
	if _, err := io.ReadFull(u.r, buffer); err != nil {
		return storagedrivers.Info{}, err
	}
	return d.commit(ctx, u, func(patient context.Context, condition *string) (*string, error) {
		out, err := d.client.PutObject(patient, &awss3.PutObjectInput{
			Bucket: &d.bucket, Key: d.name(u.key),
			Body:              &body{ctx, bytes.NewReader(buffer)},
			IfNoneMatch:       condition,
			ContentType:       optional(u.opts.ContentType),
			CacheControl:      optional(u.opts.CacheControl),
			Metadata:          map[string]string{uploadID: u.id},
			ChecksumAlgorithm: d.algorithm,
		})
		if err != nil {
			return nil, err
		}
		return out.ETag, nil
	})
}

// commit makes an object appear by send, whose entity tag it gives, and tells what
// stands there then.
func (d *Driver) commit(
	ctx context.Context, u *upload, send func(patient context.Context, condition *string) (*string, error),
) (storagedrivers.Info, error) {
	if err := ctx.Err(); err != nil {
		return storagedrivers.Info{}, err
	}
	condition, release, err := d.claim(ctx, u)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	defer release()
	patient, cancel := network.Outlive(ctx, grace)
	defer cancel()
	tag, err := send(patient, condition)
	if err != nil && !doubtful(err) {
		return storagedrivers.Info{}, mapError(ctx, err)
	}
	return d.settle(ctx, u, tag, err)
}

// claim gives the condition on which an upload may make its object appear. Where the
// service does not keep it, the key is this process's until release.
func (d *Driver) claim(ctx context.Context, u *upload) (condition *string, release func(), err error) {
	if u.opts.Mode != storagedrivers.CreateOnly {
		return nil, func() {}, nil
	}
	known, err := d.knownConditions(ctx)
	if err != nil {
		return nil, nil, err
	}
	if known.accepted {
		condition = aws.String("*")
	}
	if known.kept {
		return condition, func() {}, nil
	}
	if release, err = d.locks.Lock(ctx, u.key); err != nil {
		return nil, nil, err
	}
	if _, err = d.free(ctx, u); err != nil { // its own is sent again, which changes nothing
		release()
		return nil, nil, err
	}
	return condition, release, nil
}

// settle looks at what stands under the key of an upload that was answered with tag or
// failed: if it is the upload's own object, it did not fail, and if it is another one where
// there was to be none, that is why. A service that refuses an object while it is still
// being sent may close the connection before its answer is read.
func (d *Driver) settle(ctx context.Context, u *upload, tag *string, failed error) (storagedrivers.Info, error) {
	own, cancel := d.afterwards(ctx, failed)
	defer cancel()
	head, err := d.head(own, u.key, retrying)
	if err == nil && (head.Metadata[uploadID] == u.id || failed == nil && strong(head.ETag) == strong(tag)) {
		return d.headInfo(u.key, head), nil
	}
	if failed != nil && err == nil && u.opts.Mode == storagedrivers.CreateOnly && ctx.Err() == nil {
		return storagedrivers.Info{}, fmt.Errorf("%w: %w", fs.ErrExist, brief(failed))
	}
	if failed != nil {
		return storagedrivers.Info{}, mapError(ctx, failed)
	}
	// It was stored, and somebody has replaced or deleted it since.
	return storagedrivers.Info{
		Key:         u.key,
		Size:        u.size,
		ModTime:     d.now().UTC().Truncate(time.Second),
		ETag:        strong(tag),
		ContentType: storagedrivers.ContentType(u.key),
	}, nil
}

// afterwards returns a context for looking or tidying up after a request that ended with failed,
// also if the context of the caller has ended.
func (d *Driver) afterwards(ctx context.Context, failed error) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), network.Afterwards(d.timeout, failed))
}

// body is an object that is sent as long as ctx lasts. A request whose body breaks off is
// void; one that has been sent whole goes on to its answer. Its error is the one that the SDK
// does not take for the network's.
type body struct {
	ctx context.Context //nolint:containedctx // it ends the sending, not a call
	*bytes.Reader
}

// Read gives bytes until ctx ends.
func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, &smithy.CanceledError{Err: err}
	}
	return b.Reader.Read(p)
}

// WriteTo does what Read does: without it the reader's own would know no end.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{b})
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
