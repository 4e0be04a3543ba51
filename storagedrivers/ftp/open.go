package ftp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"

	jftp "github.com/jlaffaye/ftp"

	"github.com/caddymedia/media/storagedrivers"
)

// A server does not report which generation of an object it sends. The driver reads the size and
// time before and after the download: if they are the same, so is the generation. The last piece is
// withheld from the reader until then. Uploads of this process change nothing between the first
// check and the reply to RETR, so that also a reader of less than the whole range has one
// generation.
//
// Up to maxWhole bytes are read within Open, so that they can be read again if the object was
// replaced meanwhile. Then a slow client also holds no connection.
const (
	maxWhole = 1 << 20

	// openAttempts bounds how often an object may be replaced while it is opened.
	openAttempts = 4
)

var errReplaced = fmt.Errorf("%w: %w", storagedrivers.ErrUnavailable, storagedrivers.ErrChanged)

// Open returns the bytes of rng.
func (d *driver) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	for attempt := 1; ; attempt++ {
		body, e, err := d.open(ctx, key, rng)
		// An object that is being replaced may also be refused: the server had none for a moment.
		again := errors.Is(err, errReplaced) || errors.Is(err, fs.ErrPermission)
		switch {
		case err == nil:
			return body, newInfo(key, e), nil
		case attempt == openAttempts || !again:
			return nil, storagedrivers.Info{}, err
		}
	}
}

// open is one attempt of Open.
func (d *driver) open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (body io.ReadCloser, e entry, err error) {
	t := transfer{driver: d, ctx: ctx}
	err = d.do(ctx, func(c *conn) error {
		t.conn, t.path = c, c.path(key)
		var err error
		body, err = t.whole(rng)
		return err
	})
	if errors.Is(err, errTooLong) {
		body, err = t.stream(rng)
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
	entry    entry          // before the download
	left     int64          // bytes that are still to come
	toEnd    bool           // they end with the file
	response *jftp.Response // nil before the download
	skip     int64          // bytes that come before the wanted ones
	stop     func() bool    // ends the watch of ctx
	err      error          // of the download; io.EOF is success
	closed   bool
}

// start starts the download, unless it is empty. errTooLong means that it has more than most bytes.
func (t *transfer) start(rng storagedrivers.Range, most int64) error {
	unlock, err := naming.Share(t.ctx, t.driver.lockName(t.path))
	if err != nil {
		return err
	}
	defer unlock()
	if t.entry, err = t.conn.stat(t.path); err != nil {
		return err
	}
	t.left, err = rng.Within(t.entry.size)
	switch {
	case err != nil || t.left == 0:
		return err
	case t.left > most:
		return errTooLong
	}
	t.toEnd = rng.Offset+t.left == t.entry.size
	t.response, t.skip, err = t.conn.retrieve(t.path, rng.Offset)
	if isRefusal(err) {
		if changed := t.check(); changed != nil {
			return changed
		}
		return refusalReason(err, fs.ErrPermission)
	}
	return err
}

// whole reads the object into memory. errTooLong means that there is no memory for it, or that it
// takes too long.
func (t *transfer) whole(rng storagedrivers.Range) (body io.ReadCloser, err error) {
	if err := t.start(rng, maxWhole); err != nil || t.left == 0 {
		return http.NoBody, err
	}
	size := t.left
	if !t.driver.memory.TryAcquire(size) {
		t.leave()
		return nil, errTooLong
	}
	content, err := t.readAll()
	if err != nil {
		t.leave()
		t.driver.memory.Release(size)
		return nil, err
	}
	return &inMemory{ctx: t.ctx, content: bytes.NewReader(content), release: func() { t.driver.memory.Release(size) }}, nil
}

func (t *transfer) readAll() ([]byte, error) {
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
func (t *transfer) stream(rng storagedrivers.Range) (io.ReadCloser, error) {
	c, err := t.driver.connection(t.ctx, t.driver.pool.getDownload)
	if err != nil {
		return nil, err
	}
	t.conn, t.response = c, nil
	err = c.run(t.ctx, func() error { return t.start(rng, math.MaxInt64) })
	if err != nil || t.left == 0 {
		t.release()
		return http.NoBody, err
	}
	t.stop = context.AfterFunc(t.ctx, c.cut)
	return t, nil
}

// check returns an error unless the object is still of the generation in entry.
func (t *transfer) check() error {
	e, err := t.conn.stat(t.path)
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
	return t.conn.run(t.ctx, t.check)
}

// finish ends a download that was read to its end. Only then the server reports whether it was
// complete.
func (t *transfer) finish() error {
	err := t.conn.checkReply(accept(jftp.StatusRequestedFileActionOK, t.response.Close()))
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
