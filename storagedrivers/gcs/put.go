package gcs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	gcsdk "cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/internal/lostreply"
	"github.com/caddymedia/media/storagedrivers/internal/network"
	"github.com/caddymedia/media/storagedrivers/internal/source"
)

const (
	// chunkSize is the size of the requests for a larger object; it is buffered, so that it can be
	// sent again. A smaller object is one request.
	chunkSize = 8 << 20
	// repetitions is how often a chunk is sent again.
	repetitions = 2
)

// Put stores all of r under key.
func (d *driver) Put(
	ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions,
) (storagedrivers.Info, error) {
	object, err := d.object(ctx, key)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	if opts.Source != nil {
		return d.putCopy(ctx, object, opts)
	}
	size, err := storagedrivers.SourceSize(r)
	if err != nil {
		return storagedrivers.Info{}, err
	}
	u := &upload{driver: d, object: object, source: source.New(ctx, r), size: size}
	u.Upload = lostreply.New(opts, time.Duration(d.config.Timeout), u.look, u.doubtful)
	if opts.Mode == storagedrivers.CreateOnly && u.large() { // the service refuses a key that is taken only at the end
		if info, err := u.Find(ctx); !errors.Is(err, fs.ErrNotExist) {
			return info, err
		}
	}
	info, err := u.Commit(ctx, u.send)
	if broken := u.source.Err(); err != nil && broken != nil {
		return storagedrivers.Info{}, broken // whatever the SDK makes of it
	}
	return u.unmatched(ctx, info, mapError(ctx, err))
}

// upload is a running Put.
type upload struct {
	*lostreply.Upload
	driver *driver
	object *gcsdk.ObjectHandle
	source *source.Reader
	size   int64 // as the source says; -1 until it is known
}

// large reports whether the object is sent in chunks.
func (u *upload) large() bool { return u.size < 0 || u.size >= chunkSize }

// look returns the Info of the object under the key and, if it is complete, the ID of its upload.
func (u *upload) look(ctx context.Context) (storagedrivers.Info, string, error) {
	attrs, err := u.object.Attrs(ctx)
	if err != nil {
		return storagedrivers.Info{}, "", mapError(ctx, err)
	}
	if u.size >= 0 && attrs.Size != u.size {
		return u.driver.newInfo(attrs), "", nil
	}
	return u.driver.newInfo(attrs), attrs.Metadata[lostreply.Key], nil
}

// doubtful reports whether the whole object was sent. Then the object may be stored despite any
// error.
func (u *upload) doubtful(error) bool { return u.source.Err() == nil && u.source.Size() == u.size }

// send sends the object. On an error it cancels the context before it closes the writer, which
// would otherwise leave data behind.
func (u *upload) send(ctx context.Context) (storagedrivers.Info, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := u.writer(ctx)
	n, err := io.Copy(w, u.source)
	if err == nil && u.size < 0 {
		u.size = n
	}
	if err == nil && n != u.size {
		err = fmt.Errorf("the source gave %d bytes instead of %d: %w", n, u.size, storagedrivers.ErrSizeMismatch)
	}
	if err != nil {
		cancel()
		_ = w.Close() // its error is the cancellation
		return storagedrivers.Info{}, err
	}
	if err := w.Close(); err != nil {
		return storagedrivers.Info{}, err
	}
	return u.driver.newInfo(w.Attrs()), nil
}

// conditional returns the object with the condition under which it is stored.
func (u *upload) conditional() *gcsdk.ObjectHandle {
	switch {
	case u.Mode == storagedrivers.CreateOnly:
		return u.object.If(gcsdk.Conditions{DoesNotExist: true})
	case u.IfMatch != "":
		return u.object.If(gcsdk.Conditions{GenerationMatch: generationOf(u.IfMatch)})
	}
	return u.object
}

// unmatched returns the outcome of storing the object, with ErrChanged for a failed IfMatch.
func (u *upload) unmatched(ctx context.Context, info storagedrivers.Info, err error) (storagedrivers.Info, error) {
	if u.IfMatch == "" || !errors.Is(err, fs.ErrExist) {
		return info, err
	}
	if own, missed := u.Find(ctx); missed == nil { // of an earlier attempt
		return own, nil
	}
	return info, fmt.Errorf("%w: %s", storagedrivers.ErrChanged, err.Error())
}

func (u *upload) writer(ctx context.Context) *gcsdk.Writer {
	object := u.conditional()
	left := 0 // of the repetitions
	if u.large() {
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
	w.ChunkSize = chunkSize // the SDK takes as much memory at once
	if !u.large() {
		w.ChunkSize = int(u.size + 1)
	}
	w.ContentType = u.ContentType
	w.CacheControl = u.CacheControl
	w.Metadata = map[string]string{lostreply.Key: u.ID}
	return w
}

// transient reports whether a chunk may be sent again. It returns false after the time-out of a
// silent service.
func transient(ctx context.Context, err error) bool {
	return errors.Is(mapError(ctx, err), storagedrivers.ErrUnavailable) && !network.Silent(err)
}
