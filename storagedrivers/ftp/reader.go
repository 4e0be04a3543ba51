package ftp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
)

// maxBeside bounds the wait for a second connection.
const maxBeside = 2 * time.Second

// body is the reader of an object. It does not return the last piece before it knows that the
// download was complete and of the generation in entry.
type body struct {
	driver   *Driver
	conn     *conn
	ctx      context.Context //nolint:containedctx // the contract has readers that ctx governs
	path     string
	entry    entry          // the first look
	left     int64          // bytes that are still to come
	toEnd    bool           // they end with the file
	response *jftp.Response // nil before the download
	skip     int64          // bytes that come before the wanted ones
	known    bool           // the server sends the generation in entry
	ahead    []byte         // was read and waits for the reader
	weight   int64          // of the driver's memory
	stop     func() bool
	err      error // of the download; io.EOF is success
	free     bool  // the connection was returned
	closed   bool
}

// look makes the first check.
func (b *body) look(rng storagedrivers.Range) error {
	var err error
	if b.entry, err = b.conn.look(b.path); err != nil {
		return err
	}
	b.left, err = rng.Within(b.entry.size)
	b.toEnd = rng.Offset+b.left == b.entry.size
	return err
}

// openRefusals is how often a server may refuse to open an existing object before the object counts
// as forbidden. The object may have been replaced by one that looks the same, with the name free
// for a moment.
const openRefusals = 3

// open starts the download. Many servers announce the length of the file.
func (b *body) open(offset int64, anySize bool) error {
	response, size, skip, err := b.conn.retrieve(b.path, offset)
	for refusals := 1; refused(err) && !crowded(err); refusals++ {
		now, looked := b.conn.look(b.path)
		switch {
		case looked != nil:
			return looked // deleted meanwhile
		case now != b.entry || errors.Is(mapError(err), fs.ErrNotExist):
			return errReplaced // there was none for a moment
		case refusals == openRefusals:
			return because(err, fs.ErrPermission)
		}
		response, size, skip, err = b.conn.retrieve(b.path, offset)
	}
	if err != nil {
		return err
	}
	b.response, b.skip = response, skip
	if !anySize && size >= 0 && size != b.entry.size && size != b.entry.size-offset {
		return errReplaced
	}
	return nil
}

// lookBeside makes the second check over another connection, if one is free in time.
func (b *body) lookBeside(ctx context.Context) error {
	if !b.driver.pool.several() {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, min(maxBeside, b.driver.config.Timeout/4))
	defer cancel()
	c, err := b.driver.get(wait, b.driver.pool.get)
	if err == nil {
		defer b.driver.release(c)
		err = c.run(ctx, func() error { return b.lookAgain(c) })
		b.known = err == nil
	}
	if errors.Is(err, errReplaced) {
		return err
	}
	return nil // if it failed, the look follows the download
}

// lookAgain makes the second check.
func (b *body) lookAgain(c *conn) error {
	e, err := c.look(b.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && e != b.entry {
		return errReplaced
	}
	return err
}

// readAhead reads up to the end. It stops if that takes too long, so that the reader need not wait.
func (b *body) readAhead() error {
	patience := b.driver.now().Add(b.driver.config.Timeout / 4)
	b.ahead = make([]byte, 0, b.left)
	for b.err == nil {
		if b.driver.now().After(patience) {
			_ = b.driver.pool.lengthen(b.conn) // it is long, even if there should be no more of them
			return nil
		}
		var n int
		n, b.err = b.receive(b.ahead[len(b.ahead):cap(b.ahead)])
		b.ahead = b.ahead[:len(b.ahead)+n]
	}
	if b.err == io.EOF { //nolint:errorlint // receive returns it bare
		return nil
	}
	return b.err
}

// readAll reads an object of any generation up to its end. Its time is then unknown.
func (b *body) readAll() error {
	content, err := io.ReadAll(io.LimitReader(b.response, maxWhole+1))
	if err == nil && len(content) > maxWhole {
		err = errReplaced
	}
	if err == nil {
		err = b.conn.finish(b.response)
	}
	if err != nil {
		return ended(b.ctx, b.conn.heard(err))
	}
	b.entry, b.ahead, b.err = entry{size: int64(len(content))}, content, io.EOF
	b.giveBack()
	return nil
}

// Read returns the buffered bytes, then reads from the server.
func (b *body) Read(p []byte) (int, error) {
	switch {
	case b.closed:
		return 0, fs.ErrClosed
	case len(p) == 0:
		return 0, nil
	case len(b.ahead) > 0:
		if b.ctx.Err() != nil {
			return 0, ended(b.ctx, b.ctx.Err())
		}
		n := copy(p, b.ahead)
		b.ahead = b.ahead[n:]
		return n, nil
	case b.err != nil:
		return 0, b.err
	}
	var n int
	n, b.err = b.receive(p)
	return n, b.err
}

// receive reads from the server. It returns io.EOF with the last piece, after the checks succeed;
// otherwise it withholds the last piece.
func (b *body) receive(p []byte) (int, error) {
	skipped, err := io.CopyN(io.Discard, b.response, b.skip)
	b.skip -= skipped
	var n int
	if err == nil {
		n, err = b.response.Read(p[:min(int64(len(p)), b.left)])
		b.left -= int64(n)
	}
	switch {
	case err != nil && err != io.EOF: //nolint:errorlint // readers return it bare
		return n, ended(b.ctx, b.conn.heard(err))
	case err != nil && b.left > 0:
		return n, b.short()
	case b.left > 0:
		return n, nil
	}
	if err := b.end(); err != nil {
		return 0, ended(b.ctx, err)
	}
	return n, io.EOF
}

// end is called after the last requested byte.
func (b *body) end() error {
	if b.toEnd {
		n, err := b.response.Read(make([]byte, 1))
		if n > 0 {
			return fmt.Errorf("%w: it is longer now", errReplaced)
		}
		if err != io.EOF { //nolint:errorlint // readers return it bare
			return b.conn.heard(err)
		}
		if err = b.conn.finish(b.response); err != nil {
			return err
		}
	} else {
		b.conn.abort(b.response)
	}
	if !b.known {
		if err := b.conn.run(b.ctx, func() error { return b.lookAgain(b.conn) }); err != nil {
			return err
		}
	}
	b.giveBack()
	return nil
}

// short returns the error of a download that ended too early.
func (b *body) short() error {
	err := b.conn.finish(b.response)
	if err == nil {
		err = fmt.Errorf("%w: it is shorter now: %w", errReplaced, io.ErrUnexpectedEOF)
	}
	err = ended(b.ctx, err)
	b.giveBack()
	return err
}

// Close closes the reader. It does not wait for the rest of the file.
func (b *body) Close() error {
	if b.closed {
		return nil
	}
	b.closed, b.ahead = true, nil
	if !b.free {
		if b.response != nil && !b.conn.broken {
			b.conn.abort(b.response)
		}
		b.giveBack()
	}
	b.driver.memory.Release(b.weight)
	return nil
}

// giveBack returns the connection to the pool.
func (b *body) giveBack() {
	if b.stop != nil && !b.stop() {
		b.conn.broken = true
	}
	b.free = true
	b.driver.release(b.conn)
}
