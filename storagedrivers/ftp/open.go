package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
)

// openAttempts bounds how often an object may be replaced while it is opened.
const openAttempts = 5

// Open gives the bytes of rng. The reader takes a connection until it is at the end or
// closed.
func (d *Driver) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	c, err := d.get(ctx)
	if err != nil {
		return nil, storagedrivers.Info{}, err
	}
	var o opened
	for range openAttempts {
		err = c.run(ctx, func() error {
			var err error
			o, err = c.open(c.path(key), rng)
			return err
		})
		if !errors.Is(err, errReplaced) {
			break
		}
	}
	if err != nil {
		d.release(c)
		return nil, storagedrivers.Info{}, err
	}
	info := describe(key, o.entry)
	if o.response == nil {
		d.release(c)
		return http.NoBody, info, nil
	}
	b := &body{
		driver: d, conn: c, ctx: ctx, opened: o, stop: context.AfterFunc(ctx, c.cut),
	}
	return b, info, nil
}

// opened is a file that the server begins to send.
type opened struct {
	entry    entry
	response *jftp.Response // nil where there is nothing to send
	left     int64          // of what is wanted
	toEnd    bool           // what is wanted ends with the file
}

// open looks at a file and opens it. The server tells in between which file it opened,
// in most cases; a file that was replaced is errReplaced.
func (c *conn) open(path string, rng storagedrivers.Range) (opened, error) {
	e, err := c.look(path)
	if err != nil {
		return opened{}, err
	}
	n, err := rng.Within(e.size)
	if err != nil || n == 0 {
		return opened{entry: e}, err
	}
	response, size, err := c.retrieve(path, rng.Offset)
	if refused(err) {
		now, looked := c.look(path)
		switch {
		case looked != nil:
			return opened{}, looked // deleted meanwhile
		case now != e || errors.Is(mapError(err), fs.ErrNotExist):
			return opened{}, errReplaced // there was none for a moment
		}
		return opened{}, because(err, fs.ErrPermission)
	}
	if err != nil {
		return opened{}, err
	}
	if size >= 0 && size != e.size && size != e.size-rng.Offset {
		c.abort(response)
		return opened{}, errReplaced
	}
	return opened{e, response, n, rng.Offset+n == e.size}, nil
}

// body is the reader of a file that is being sent.
type body struct {
	driver *Driver
	conn   *conn
	ctx    context.Context //nolint:containedctx // the contract has readers that ctx governs
	opened
	stop func() bool
	err  error // what reading ended with
	free bool  // the connection was given back
}

// Read gives what comes, and the end only once the server has said that it was all.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case len(p) == 0:
		return 0, nil
	case b.left == 0:
		return 0, b.end()
	case int64(len(p)) > b.left:
		p = p[:b.left]
	}
	n, err := b.response.Read(p)
	b.left -= int64(n)
	switch {
	case err == io.EOF && b.left > 0: //nolint:errorlint // readers give it bare
		b.err = b.short()
	case err != nil && err != io.EOF: //nolint:errorlint // readers give it bare
		b.err = ended(b.ctx, b.conn.heard(err))
	}
	return n, b.err
}

// end is what comes after the last byte that is wanted: io.EOF, if all is right.
func (b *body) end() error {
	b.err = io.EOF
	if !b.toEnd {
		return b.err
	}
	n, err := b.response.Read(make([]byte, 1))
	if n > 0 {
		b.err = fmt.Errorf("%w: it is longer now", errReplaced)
		return b.err
	}
	if err == io.EOF { //nolint:errorlint // readers give it bare
		err = b.conn.finish(b.response)
	}
	if err != nil {
		b.err = ended(b.ctx, b.conn.heard(err))
	}
	b.giveBack()
	return b.err
}

// short tells why a transfer ended too early.
func (b *body) short() error {
	err := b.conn.finish(b.response)
	if err == nil {
		err = fmt.Errorf("%w: it is shorter now: %w", errReplaced, io.ErrUnexpectedEOF)
	}
	b.err = ended(b.ctx, err)
	b.giveBack()
	return b.err
}

// Close ends the reading. What was not read is not waited for.
func (b *body) Close() error {
	if b.free {
		return nil
	}
	if b.err == nil && b.left == 0 && b.toEnd {
		_ = b.end() // all was read, but for the end
	}
	if !b.free {
		b.conn.abort(b.response)
		b.giveBack()
	}
	if b.err == nil {
		b.err = fs.ErrClosed
	}
	return nil
}

func (b *body) giveBack() {
	if !b.stop() {
		b.conn.broken = true
	}
	b.free = true
	b.driver.release(b.conn)
}
