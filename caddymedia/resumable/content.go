package resumable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/caddymedia/media/storagedrivers"
)

// Content returns a reader of all bytes of a complete upload. The caller must close it. If the
// upload is finished meanwhile, Read fails with fs.ErrNotExist.
func (u *Upload) Content(ctx context.Context) io.ReadCloser {
	return &content{ctx: ctx, left: u.pieces(), missing: u.Length}
}

// Adopt returns the bytes of a complete upload as staged data of its storage, which the caller must
// close. Committing it moves no bytes. The error matches [errors.ErrUnsupported] if the storage
// cannot do that, or if an earlier attempt has committed the bytes: see [Upload.Content].
func (u *Upload) Adopt(ctx context.Context) (storagedrivers.Staged, error) {
	if !u.grown {
		return nil, errors.ErrUnsupported
	}
	object, err := u.storage.Append(ctx, dataKey(u.ID, grownName), u.Length)
	if errors.Is(err, fs.ErrExist) {
		err = errors.Join(errors.ErrUnsupported, err)
	}
	if err != nil {
		return nil, err
	}
	staged, err := object.Adopt(ctx)
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	return staged, nil
}

// piece is a segment with its storage; parts may be on another one.
type piece struct {
	storage *storagedrivers.Storage
	info    storagedrivers.Info
}

func (u *Upload) pieces() []piece {
	var all []piece
	for _, part := range u.parts {
		all = append(all, part.pieces()...)
	}
	for _, info := range u.segments {
		all = append(all, piece{u.storage, info})
	}
	return all
}

// content reads one piece after the other.
type content struct {
	ctx     context.Context //nolint:containedctx // of all reads, as in storagedrivers.Object
	left    []piece
	open    *storagedrivers.Object
	missing int64 // bytes
}

func (c *content) Read(p []byte) (int, error) {
	for {
		if c.open == nil {
			if err := c.next(); err != nil {
				return 0, err
			}
		}
		n, err := c.open.Read(p)
		c.missing -= int64(n)
		if errors.Is(err, io.EOF) {
			err = c.Close()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next opens the next piece. The error is io.EOF after the last one.
func (c *content) next() error {
	if len(c.left) == 0 {
		if c.missing != 0 {
			return fmt.Errorf("%d bytes of a resumable upload are missing: %w", c.missing, io.ErrUnexpectedEOF)
		}
		return io.EOF
	}
	next := c.left[0]
	open, err := next.storage.OpenSeeker(c.ctx, next.info.Key)
	if err != nil {
		return err
	}
	if open.Info.Size != next.info.Size {
		return errors.Join(fmt.Errorf("segment %s has changed: %w", next.info.Key, fs.ErrNotExist), open.Close())
	}
	c.left, c.open = c.left[1:], open
	return nil
}

// Close closes the piece that is open.
func (c *content) Close() error {
	if c.open == nil {
		return nil
	}
	open := c.open
	c.open = nil
	return open.Close()
}
