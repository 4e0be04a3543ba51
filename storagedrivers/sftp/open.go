package sftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/caddymedia/media/storagedrivers"
)

const (
	// openAttempts bounds how often an object may be replaced while it is opened.
	openAttempts = 8
	// smallObject is the largest object that Open reads completely if a handle may change its file.
	smallObject = 1 << 20
)

// object is a reader of one generation, with any offset.
type object interface {
	io.ReadSeekCloser
	io.ReaderAt
}

// opened is an object with its Info.
type opened struct {
	object
	info storagedrivers.Info
}

// Open opens the file. It transfers nothing before the first Read, unless the object is small and
// its handle may change to another file.
func (d *driver) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	o, err := do(ctx, d.pool, func(c *conn) (opened, error) { return d.open(ctx, c, key, rng) })
	switch {
	case err != nil:
		return nil, storagedrivers.Info{}, err
	case rng == (storagedrivers.Range{}):
		return o.object, o.info, nil
	}
	return struct{ io.ReadCloser }{o}, o.info, nil // its offsets are not the object's
}

// open opens the file, and tries again if it is replaced meanwhile.
func (d *driver) open(ctx context.Context, c *conn, key string, rng storagedrivers.Range) (opened, error) {
	missing := 0
	for range openAttempts {
		o, err := d.openOnce(ctx, c, key, rng)
		switch {
		case errors.Is(err, fs.ErrNotExist) && missing < 2 && d.Features().Replace != storagedrivers.Atomic:
			missing++
			// Wait until this process no longer replaces the object, which may be missing meanwhile.
			unlock, err := d.naming.Share(ctx, d.path(key))
			if err != nil {
				return opened{}, err
			}
			unlock()
		case !errors.Is(err, storagedrivers.ErrChanged) || ctx.Err() != nil:
			return o, err
		}
	}
	return opened{}, fmt.Errorf("%w: %w while it was opened", storagedrivers.ErrUnavailable, storagedrivers.ErrChanged)
}

// openOnce opens the file. Some hosts resolve a handle by its path, so that Stat may describe
// another file than the opened one. On such hosts the path must have the same generation before and
// after.
func (d *driver) openOnce(
	ctx context.Context, c *conn, key string, rng storagedrivers.Range,
) (opened, error) {
	handles := d.handles()
	var before storagedrivers.Info
	var err error
	if handles != exact {
		if before, err = d.find(c, key); err != nil {
			return opened{}, err
		}
	}
	file, err := c.Open(d.path(key))
	if err != nil {
		if _, missing := d.find(c, key); errors.Is(missing, fs.ErrNotExist) {
			return opened{}, missing // some hosts have other words for folders
		}
		return opened{}, err
	}
	stat, err := file.Stat()
	if err == nil && !stat.Mode().IsRegular() {
		err = notAnObject(key)
	}
	if err != nil {
		return opened{}, errors.Join(err, file.Close())
	}
	info := newInfo(key, stat)
	n, err := rng.Within(info.Size)
	switch {
	case handles != exact && !info.Same(before):
		err = storagedrivers.ErrChanged
	case err == nil:
		return d.opened(c, &reader{
			ctx: ctx, c: c, file: file, path: d.path(key), handles: handles, info: info,
			offset: rng.Offset, end: rng.Offset + n,
		})
	}
	return opened{}, errors.Join(err, file.Close())
}

// opened returns r. If the handle may change its file and the object is small, it returns the whole
// content instead.
func (d *driver) opened(c *conn, r *reader) (opened, error) {
	if r.handles == shaky && r.end-r.offset <= smallObject {
		b, err := io.ReadAll(r)
		closed := r.file.Close()
		switch {
		case err != nil:
			return opened{}, err
		case closed != nil: // rclone compares checksums here
			return opened{}, fmt.Errorf("%w: %w", storagedrivers.ErrChanged, mapError(closed))
		}
		return opened{small{bytes.NewReader(b)}, r.info}, nil
	}
	d.pool.share(c)
	r.closing = func() {
		d.tasks.Go(func() {
			_ = r.file.Close() // it was only read
			d.pool.release(c)
		})
	}
	return opened{r, r.info}, nil
}

// handles returns the behaviour of the host's handles, as far as it is known.
func (d *driver) handles() handling {
	if a := d.known.Load(); a != nil {
		return a.handles
	}
	return unknown
}

// small is an object that was read completely by Open.
type small struct{ *bytes.Reader }

func (small) Close() error { return nil }
