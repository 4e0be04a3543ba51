package local

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/caddymedia/media/storagedrivers"
)

// Open returns the file itself for the zero range.
func (d *Driver) Open(ctx context.Context, key string, rng storagedrivers.Range) (io.ReadCloser, storagedrivers.Info, error) {
	fail := func(err error) (io.ReadCloser, storagedrivers.Info, error) {
		return nil, storagedrivers.Info{}, err
	}
	if err := ctx.Err(); err != nil {
		return fail(err)
	}
	root, err := d.open()
	if err != nil {
		return fail(err)
	}
	file, err := root.OpenFile(key, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return fail(d.lookupError(err))
	}
	stat, err := file.Stat()
	if err != nil {
		return fail(errors.Join(mapError(err), file.Close()))
	}
	if !stat.Mode().IsRegular() {
		return fail(errors.Join(notAnObject(key), file.Close()))
	}
	n, err := rng.Within(stat.Size())
	if err != nil {
		return fail(errors.Join(err, file.Close()))
	}
	info := newInfo(key, stat)
	if rng == (storagedrivers.Range{}) {
		return file, info, nil
	}
	return &section{Reader: io.NewSectionReader(file, rng.Offset, n), Closer: file}, info, nil
}

// section is a part of a file.
type section struct {
	io.Reader
	io.Closer
}
