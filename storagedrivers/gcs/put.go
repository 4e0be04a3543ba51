package gcs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	gcsdk "cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/internal/source"
)

const (
	// chunkSize is how much of a larger object is sent, and sent again, at once; it waits
	// in memory. A smaller object is one request.
	chunkSize = 8 << 20
	// repetitions is how often a chunk is sent again.
	repetitions = 2
	// uploadID is the metadata by which an upload knows its object again.
	uploadID = "caddymedia-upload"
	// maxGrace is how long an upload whose caller has given up is waited for at most when all
	// of it was sent.
	maxGrace = 5 * time.Second
)

// Put stores all of r under key.
func (d *Driver) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	object, err := d.object(ctx, key)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	size, err := r.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = r.Seek(0, io.SeekStart)
	}
	if err != nil {
		return storagedrivers.Info{}, err
	}
	u := &upload{
		object: object, source: source.New(ctx, r), size: size, options: opts, id: cmp.Or(opts.ID, rand.Text()),
		timeout: d.config.Timeout, grace: min(d.config.Timeout, maxGrace),
	}
	attrs, err := u.run(ctx)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	return d.info(attrs), nil
}

// upload is one object on its way.
type upload struct {
	object  *gcsdk.ObjectHandle
	source  *source.Reader
	size    int64 // as the source says
	options storagedrivers.PutOptions
	id      string
	timeout time.Duration // that the service may keep silent
	grace   time.Duration // see maxGrace
}

// run stores the object and gives its attributes.
func (u *upload) run(ctx context.Context) (*gcsdk.ObjectAttrs, error) {
	if attrs, err := u.lookFirst(ctx); attrs != nil || err != nil {
		return attrs, err
	}
	attrs, err := u.send(ctx)
	if err == nil {
		return attrs, nil
	}
	if broken := u.source.Err(); broken != nil {
		return nil, broken
	}
	// When all of it has gone out the answer may be what was lost.
	if u.source.Size() == u.size {
		if attrs := u.stored(ctx, err); attrs != nil {
			return attrs, nil
		}
	}
	return nil, mapError(ctx, err)
}

// lookFirst spares a large object the way to a name that is taken: fs.ErrExist, or the
// attributes if that is the upload's own object, from an earlier attempt whose answer was
// lost. The service decides in the end.
func (u *upload) lookFirst(ctx context.Context) (*gcsdk.ObjectAttrs, error) {
	if u.options.Mode != storagedrivers.CreateOnly || u.size < chunkSize {
		return nil, nil //nolint:nilnil // nothing is there, or nobody looked
	}
	attrs, err := u.object.Attrs(ctx)
	switch {
	case err == nil && u.owns(attrs):
		return attrs, nil
	case err == nil:
		return nil, fs.ErrExist
	case errors.Is(err, gcsdk.ErrObjectNotExist):
		return nil, nil //nolint:nilnil // see above
	default:
		return nil, mapError(ctx, err)
	}
}

// owns tells whether an object is this upload's, all of it.
func (u *upload) owns(attrs *gcsdk.ObjectAttrs) bool {
	return attrs.Metadata[uploadID] == u.id && attrs.Size == u.size
}

// send sends the object. Only a writer whose context has ended before it is closed leaves
// nothing behind.
func (u *upload) send(ctx context.Context) (*gcsdk.ObjectAttrs, error) {
	patient, cancel := u.outliving(ctx)
	defer cancel()
	w := u.writer(patient)
	n, err := io.Copy(w, u.source)
	if err == nil && n != u.size {
		err = fmt.Errorf("the source gave %d bytes instead of %d: %w", n, u.size, storagedrivers.ErrSizeMismatch)
	}
	if err != nil {
		cancel()
		_ = w.Close() // it tells of the cancellation
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return w.Attrs(), nil
}

// outliving gives a context that ends with ctx or, once all of the object is on its way, a
// little later: without the answer nobody knows what there is.
func (u *upload) outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if u.source.Size() == u.size {
			time.AfterFunc(u.grace, cancel)
		} else {
			cancel()
		}
	})
	return patient, func() {
		stop()
		cancel()
	}
}

func (u *upload) writer(ctx context.Context) *gcsdk.Writer {
	object := u.object
	if u.options.Mode == storagedrivers.CreateOnly {
		object = object.If(gcsdk.Conditions{DoesNotExist: true})
	}
	left := 0 // of the repetitions
	if u.size >= chunkSize {
		left = repetitions
	}
	w := object.Retryer(
		gcsdk.WithPolicy(gcsdk.RetryAlways),
		gcsdk.WithBackoff(gax.Backoff{Initial: 100 * time.Millisecond, Max: time.Second}),
		gcsdk.WithErrorFunc(func(err error) bool {
			if left == 0 || !transient(ctx, err) {
				return false
			}
			left--
			return true
		}),
	).NewWriter(ctx)
	w.ProgressFunc = func(int64) { left = repetitions }
	w.ChunkSize = int(min(u.size+1, chunkSize)) // the SDK takes as much memory at once
	w.ContentType = u.options.ContentType
	w.CacheControl = u.options.CacheControl
	w.Metadata = map[string]string{uploadID: u.id}
	return w
}

// transient tells whether a chunk may be sent again. A service that has kept silent for
// as long as it may is not waited for once more.
func transient(ctx context.Context, err error) bool {
	return errors.Is(mapError(ctx, err), storagedrivers.ErrUnavailable) && !network.Silent(err)
}

// stored returns the attributes of the object under the key if it is all of this upload's, which
// ended with failed; otherwise nil.
func (u *upload) stored(ctx context.Context, failed error) *gcsdk.ObjectAttrs {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), network.Afterwards(u.timeout, failed))
	defer cancel()
	attrs, err := u.object.Attrs(ctx)
	if err != nil || !u.owns(attrs) {
		return nil
	}
	return attrs
}
