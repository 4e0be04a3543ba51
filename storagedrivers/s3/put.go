package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithy "github.com/aws/smithy-go"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
)

// upload is a running Put.
type upload struct {
	*lostreply.Upload
	key  string
	size int64 // -1 if it is not known yet
	r    io.Reader
	// algorithm of the checksums of its parts; empty: that of the service.
	algorithm types.ChecksumAlgorithm
}

func (d *driver) newUpload(key string, opts storagedrivers.PutOptions) *upload {
	look := func(ctx context.Context) (storagedrivers.Info, string, error) { return d.look(ctx, key) }
	return &upload{Upload: lostreply.New(opts, d.timeout, look, doubtful), key: key, algorithm: d.algorithm}
}

// Put stores all of r under key. An object larger than a part is sent in parts, which a further
// request combines.
func (d *driver) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	if opts.Source != nil {
		return d.putCopy(ctx, key, opts)
	}
	size, err := storagedrivers.SourceSize(r)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	u := d.newUpload(key, opts)
	u.size, u.r = size, r
	if size >= 0 && size <= partSize {
		return d.putWhole(ctx, u)
	}
	if opts.Mode == storagedrivers.CreateOnly { // the service refuses a key that is taken only at the end
		if info, err := u.Find(ctx); !errors.Is(err, fs.ErrNotExist) {
			return info, err
		}
	}
	return d.putParts(ctx, u, d.sendParts)
}

func (d *driver) putWhole(ctx context.Context, u *upload) (storagedrivers.Info, error) {
	buffer, release, err := d.buffers.get(ctx, u.size)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	defer release()
	if _, err := io.ReadFull(u.r, buffer); err != nil {
		return storagedrivers.Info{}, err
	}
	return d.commit(ctx, u, func(longer context.Context, c condition) (*string, error) {
		out, err := d.client.PutObject(longer, &awss3.PutObjectInput{
			Bucket: &d.bucket, Key: d.name(u.key),
			Body:              &body{ctx, bytes.NewReader(buffer)},
			IfNoneMatch:       c.noneMatch,
			IfMatch:           c.match,
			ContentType:       optional(u.ContentType),
			CacheControl:      optional(u.CacheControl),
			Metadata:          map[string]string{lostreply.Key: u.ID},
			ChecksumAlgorithm: d.algorithm,
		})
		if err != nil {
			return nil, err
		}
		return out.ETag, nil
	})
}

// condition is that of making an object appear: If-None-Match, If-Match or none.
type condition struct{ noneMatch, match *string }

// whenAbsent is the condition that the key is free.
var whenAbsent = condition{noneMatch: aws.String("*")}

// commit makes an object appear by send, which returns its entity tag.
func (d *driver) commit(
	ctx context.Context, u *upload, send func(longer context.Context, c condition) (*string, error),
) (storagedrivers.Info, error) {
	c, release, err := d.claim(ctx, u)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	defer release()
	info, err := u.Commit(ctx, func(longer context.Context) (storagedrivers.Info, error) {
		tag, err := send(longer, c)
		return storagedrivers.Info{
			Key: u.key, Size: u.size, ETag: strong(tag), ContentType: storagedrivers.ContentType(u.key),
		}, brief(err)
	})
	if err != nil {
		if err = mapError(ctx, err); u.IfMatch != "" && (errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist)) {
			if own, missed := u.Find(ctx); missed == nil { // of an earlier attempt
				return own, nil
			}
			err = fmt.Errorf("%w: %s", storagedrivers.ErrChanged, err.Error())
		}
		return storagedrivers.Info{}, err
	}
	if info.ModTime.IsZero() { // the object was replaced or deleted since
		info.ModTime = d.now().UTC().Truncate(time.Second)
	}
	return info, nil
}

// claim returns the condition for making an object appear. If the service does not support
// conditions, the key is locked in this process until release is called.
func (d *driver) claim(ctx context.Context, u *upload) (c condition, release func(), err error) {
	if u.Mode != storagedrivers.CreateOnly && u.IfMatch == "" {
		return c, func() {}, nil
	}
	known, err := d.knownConditions(ctx)
	switch {
	case err != nil:
		return c, nil, err
	case u.Mode != storagedrivers.CreateOnly:
		if known.compared {
			c.match = &u.IfMatch
		}
		return c, func() {}, nil
	case known.accepted:
		c = whenAbsent
	}
	if known.kept {
		return c, func() {}, nil
	}
	if release, err = d.locks.Lock(ctx, u.key); err != nil {
		return c, nil, err
	}
	// An own object of an earlier attempt is sent again, which changes nothing.
	if _, err = u.Find(ctx); err != nil && !errors.Is(err, fs.ErrNotExist) {
		release()
		return c, nil, err
	}
	return c, release, nil
}

// body is an object that is sent until ctx ends. A request whose body ends early is invalid; one
// that was sent completely continues until its response. The SDK does not mistake the error of body
// for one of the network.
type body struct {
	ctx context.Context //nolint:containedctx // it ends the sending, not a call
	*bytes.Reader
}

// Read returns bytes until ctx ends.
func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, &smithy.CanceledError{Err: err}
	}
	return b.Reader.Read(p)
}

// WriteTo hides the WriteTo of bytes.Reader, which would ignore ctx.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{b})
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
