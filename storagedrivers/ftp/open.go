package ftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
)

// A server does not report which generation of an object it sends. The driver reads the size and
// time before and after it opens the file: if they are the same, so is the generation.
//
// Up to maxWhole bytes are read within Open, so that they can be read again if the object was
// replaced meanwhile. Then a slow client also holds no connection. For a longer object, the second
// check uses another connection. If there is none, the check follows the download, and the last
// piece is withheld from the reader until then.
const (
	maxWhole = 1 << 20

	// openAttempts bounds how often an object may be replaced while it is opened. The last attempt
	// accepts a whole object without knowing its time.
	openAttempts = 4

	// openRefusals is how often a server may refuse to open an existing object before the object
	// counts as forbidden. The object may have been replaced by one that looks the same, with the
	// name free for a moment.
	openRefusals = 3
)

var errReplaced = fmt.Errorf("%w: %w", storagedrivers.ErrUnavailable, storagedrivers.ErrChanged)

// Open returns the bytes of rng.
func (d *driver) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	for attempt := 1; ; attempt++ {
		last := attempt == openAttempts
		body, e, err := d.open(ctx, key, rng, last)
		switch {
		case err == nil:
			return body, newInfo(key, e), nil
		case last || !errors.Is(err, errReplaced):
			return nil, storagedrivers.Info{}, err
		}
	}
}

// open is one attempt of Open. anyTime accepts a whole object that is replaced again and again,
// without knowing its time.
func (d *driver) open(
	ctx context.Context, key string, rng storagedrivers.Range, anyTime bool,
) (body io.ReadCloser, e entry, err error) {
	var t transfer
	short := true
	err = d.do(ctx, func(c *conn) error {
		t = transfer{driver: d, ctx: ctx, conn: c, path: c.path(key), offset: rng.Offset}
		var err error
		if t.entry, err = c.stat(t.path); err != nil {
			return err
		}
		if t.left, err = rng.Within(t.entry.size); err != nil || t.left == 0 {
			body = http.NoBody
			return err
		}
		t.toEnd = rng.Offset+t.left == t.entry.size
		if short = t.left <= maxWhole; short {
			body, err = t.whole(anyTime && rng.Offset == 0 && t.toEnd)
			short = !errors.Is(err, errTooLong)
		}
		if !short {
			return nil
		}
		return err
	})
	if err == nil && !short {
		body, err = t.stream(ctx)
	}
	return body, t.entry, err
}

// errTooLong means that an object cannot be read as a whole.
var errTooLong = errors.New("too long to be read at once")

// transfer is the download of an object. It does not return the last piece before it knows that the
// download was complete and of the generation in entry.
type transfer struct {
	driver   *driver
	ctx      context.Context //nolint:containedctx // the contract has readers that ctx governs
	conn     *conn           // nil once it is returned
	path     string
	entry    entry // the first look
	offset   int64
	left     int64          // bytes that are still to come
	toEnd    bool           // they end with the file
	response *jftp.Response // nil before the download
	skip     int64          // bytes that come before the wanted ones
	checked  bool           // the server sends the generation in entry
	stop     func() bool    // ends the watch of ctx
	err      error          // of the download; io.EOF is success
	closed   bool
}

// start starts the download. Many servers announce the length of the file.
func (t *transfer) start(anySize bool) error {
	response, size, skip, err := t.conn.retrieve(t.path, t.offset)
	for refusals := 1; isRefusal(err) && !isTooManyConnections(err); refusals++ {
		now, looked := t.conn.stat(t.path)
		switch {
		case looked != nil:
			return looked // deleted meanwhile
		case now != t.entry || errors.Is(mapError(err), fs.ErrNotExist):
			return errReplaced // there was none for a moment
		case refusals == openRefusals:
			return refusalReason(err, fs.ErrPermission)
		}
		response, size, skip, err = t.conn.retrieve(t.path, t.offset)
	}
	if err != nil {
		return err
	}
	t.response, t.skip = response, skip
	if !anySize && size >= 0 && size != t.entry.size && size != t.entry.size-t.offset {
		return errReplaced
	}
	return nil
}

// whole reads the object into memory. errTooLong means that there is no memory for it, or that it
// takes too long. anyTime accepts an object of any generation up to its end; its time is then
// unknown.
func (t *transfer) whole(anyTime bool) (body io.ReadCloser, err error) {
	size := t.left
	if anyTime {
		size = maxWhole
	}
	if !t.driver.memory.TryAcquire(size) {
		return nil, errTooLong
	}
	left := t.left
	content, err := t.readAll(anyTime)
	t.left = left
	if t.response != nil && err != nil && !t.conn.broken {
		t.conn.abort(t.response)
	}
	if err != nil {
		t.driver.memory.Release(size)
		return nil, err
	}
	return &inMemory{ctx: t.ctx, content: bytes.NewReader(content), release: func() { t.driver.memory.Release(size) }}, nil
}

func (t *transfer) readAll(anyTime bool) ([]byte, error) {
	if err := t.start(anyTime); err != nil {
		return nil, err
	}
	if anyTime {
		content, err := io.ReadAll(io.LimitReader(t.response, maxWhole+1))
		switch {
		case err != nil:
			return nil, t.conn.checkReply(err)
		case len(content) > maxWhole:
			return nil, errReplaced
		}
		t.entry = entry{size: int64(len(content))}
		return content, t.finish()
	}
	patience := t.driver.now().Add(t.driver.config.timeout() / 4)
	content := make([]byte, 0, t.left)
	for {
		n, err := t.receive(content[len(content):cap(content)])
		content = content[:len(content)+n]
		switch {
		case err == io.EOF: //nolint:errorlint // receive returns it bare
			return content, nil
		case err != nil:
			return nil, err
		case t.driver.now().After(patience):
			return nil, errTooLong
		}
	}
}

// stream returns a reader of the download, which keeps its connection.
func (t *transfer) stream(ctx context.Context) (body io.ReadCloser, err error) {
	err = t.driver.use(ctx, t.driver.pool.getDownload, func(c *conn) (kept bool, err error) {
		s := *t
		s.conn, s.response = c, nil
		if err = c.run(ctx, func() error { return s.start(false) }); err == nil {
			s.stop = context.AfterFunc(ctx, c.cut)
			err = s.checkBeside(ctx)
		}
		if err != nil {
			s.leave()
			return false, err
		}
		body = &s
		return true, nil
	})
	return body, err
}

// checkBeside makes the second check over another connection, if one is free in time.
func (t *transfer) checkBeside(ctx context.Context) error {
	d := t.driver
	if !d.pool.several() {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, d.config.timeout()/4)
	defer cancel()
	c, err := d.pool.get(wait)
	if err == nil {
		defer d.pool.put(c)
		err = c.run(ctx, func() error { return t.check(c) })
		t.checked = err == nil
	}
	if errors.Is(err, errReplaced) {
		return err
	}
	return nil // if it failed, the check follows the download
}

// check makes the second check.
func (t *transfer) check(c *conn) error {
	e, err := c.stat(t.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && e != t.entry {
		return errReplaced
	}
	return err
}

// Read reads from the server.
func (t *transfer) Read(p []byte) (n int, err error) {
	switch {
	case t.closed:
		return 0, fs.ErrClosed
	case len(p) == 0:
		return 0, nil
	case t.err != nil:
		return 0, t.err
	}
	if n, err = t.receive(p); err != nil {
		if err != io.EOF { //nolint:errorlint // receive returns it bare
			err = operationError(t.ctx, err)
		}
		t.err = err
		t.release()
	}
	return n, err
}

// receive reads from the server. It returns io.EOF with the last piece, after the checks succeed;
// otherwise it withholds the last piece.
func (t *transfer) receive(p []byte) (int, error) {
	skipped, err := io.CopyN(io.Discard, t.response, t.skip)
	t.skip -= skipped
	var n int
	if err == nil {
		n, err = t.response.Read(p[:min(int64(len(p)), t.left)])
		t.left -= int64(n)
	}
	switch {
	case err != nil && err != io.EOF: //nolint:errorlint // readers return it bare
		return n, t.conn.checkReply(err)
	case err != nil && t.left > 0:
		if err = t.finish(); err == nil {
			err = fmt.Errorf("%w: it is shorter now: %w", errReplaced, io.ErrUnexpectedEOF)
		}
		return n, err
	case t.left > 0:
		return n, nil
	}
	if err := t.end(); err != nil {
		return 0, err
	}
	return n, io.EOF
}

// end is called after the last requested byte.
func (t *transfer) end() error {
	if t.toEnd {
		n, err := t.response.Read(make([]byte, 1))
		if n > 0 {
			return fmt.Errorf("%w: it is longer now", errReplaced)
		}
		if err != io.EOF { //nolint:errorlint // readers return it bare
			return t.conn.checkReply(err)
		}
		if err = t.finish(); err != nil {
			return err
		}
	} else {
		t.conn.abort(t.response)
		t.response = nil
	}
	if t.checked {
		return nil
	}
	return t.conn.run(t.ctx, func() error { return t.check(t.conn) })
}

// finish ends a download that was read to its end. Only then the server reports whether it was
// complete.
func (t *transfer) finish() error {
	err := t.conn.checkReply(t.response.Close())
	t.response = nil
	return err
}

// Close closes the reader. It does not wait for the rest of the file.
func (t *transfer) Close() error {
	t.closed = true
	t.release()
	return nil
}

// release returns the connection to the pool.
func (t *transfer) release() {
	if t.conn != nil {
		t.leave()
		t.driver.pool.put(t.conn)
		t.conn = nil
	}
}

// leave ends the transfer, so that the connection can be used again.
func (t *transfer) leave() {
	if t.response != nil && !t.conn.broken {
		t.conn.abort(t.response)
	}
	if t.stop != nil && !t.stop() {
		t.conn.broken = true
	}
}

// inMemory is the reader of an object that was read as a whole.
type inMemory struct {
	ctx     context.Context //nolint:containedctx // the contract has readers that ctx governs
	content *bytes.Reader   // nil once it is closed
	release func()
}

func (b *inMemory) Read(p []byte) (int, error) {
	switch {
	case b.content == nil:
		return 0, fs.ErrClosed
	case b.ctx.Err() != nil:
		return 0, operationError(b.ctx, b.ctx.Err())
	}
	return b.content.Read(p)
}

func (b *inMemory) Close() error {
	if b.content != nil {
		b.content = nil
		b.release()
	}
	return nil
}
