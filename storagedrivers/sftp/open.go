package sftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/caddymedia/media/storagedrivers"
	"github.com/caddymedia/media/storagedrivers/guard"
)

// openAttempts bounds how often an object may be replaced while it is opened.
const openAttempts = 8

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

// Open opens the file. It transfers nothing before the first Read.
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
		case errors.Is(err, fs.ErrNotExist) && missing < 2 && !d.abilities().replace:
			missing++
			// Wait until this process no longer replaces the object, which may be missing meanwhile.
			unlock, err := naming.Share(ctx, d.lockName(key))
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

// openOnce opens the file. Some hosts resolve a handle by its path, and some open the file only at
// the first read. On such hosts the path must have the same generation before and after.
func (d *driver) openOnce(
	ctx context.Context, c *conn, key string, rng storagedrivers.Range,
) (opened, error) {
	exact := d.abilities().exact
	var before storagedrivers.Info
	var err error
	if !exact {
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
	if !exact {
		if _, err = file.ReadAt(make([]byte, 1), 0); err == io.EOF { //nolint:errorlint // the library returns it bare
			err = nil
		}
	}
	var stat fs.FileInfo
	if err == nil {
		stat, err = file.Stat()
	}
	if err == nil && !stat.Mode().IsRegular() {
		err = notAnObject(key)
	}
	if err != nil {
		return opened{}, errors.Join(err, file.Close())
	}
	info := newInfo(key, stat)
	n, err := rng.Within(info.Size)
	if !exact && !info.Same(before) {
		err = storagedrivers.ErrChanged
	}
	if err != nil {
		return opened{}, errors.Join(err, file.Close())
	}
	d.pool.share(c)
	return opened{&reader{
		ctx: ctx, c: c, file: file, path: d.path(key), exact: exact, info: info, offset: rng.Offset, end: rng.Offset + n,
		closing: func() {
			d.tasks.Go(func() {
				_ = guard.Call(file.Close) // it was only read
				d.pool.release(c)
			})
		},
	}, info}, nil
}
