package local

import (
	"context"
	"errors"
	"io"

	"github.com/caddymedia/media/storagedrivers"
)

const copyBuffer = 256 << 10

// Put stages r and commits it.
func (d *Driver) Put(ctx context.Context, key string, r io.ReadSeeker, opts storagedrivers.PutOptions) (info storagedrivers.Info, err error) {
	st, err := d.Stage(ctx)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if err := copyAll(ctx, st, r); err != nil {
		return info, err
	}
	infos, err := d.Commit(ctx, []storagedrivers.Change{{Staged: st, Key: key, Options: opts}})
	if err != nil {
		return info, err
	}
	return infos[0], nil
}

func copyAll(ctx context.Context, w io.Writer, r io.Reader) error {
	buf := make([]byte, copyBuffer)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := r.Read(buf)
		if _, werr := w.Write(buf[:n]); werr != nil {
			return werr
		}
		if err == io.EOF { // the end is io.EOF itself; a wrapped one is a failure
			return nil
		}
		if err != nil {
			return err
		}
	}
}
