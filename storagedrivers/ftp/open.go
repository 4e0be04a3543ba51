package ftp

import (
	"context"
	"errors"
	"io"
	"net/http"

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
)

// Open returns the bytes of rng.
func (d *Driver) Open(
	ctx context.Context, key string, rng storagedrivers.Range,
) (io.ReadCloser, storagedrivers.Info, error) {
	r := &reading{driver: d, key: key, rng: rng, lend: d.pool.get}
	for attempt := 1; ; {
		b, err := r.try(ctx, attempt == openAttempts)
		switch {
		case err == nil && b == nil:
			return http.NoBody, newInfo(key, r.entry), nil
		case err == nil:
			return b, newInfo(key, b.entry), nil
		case errors.Is(err, errTooLong):
			r.lend = d.pool.getLong
		case errors.Is(err, errCrowded):
		case errors.Is(err, errReplaced) && attempt < openAttempts:
			attempt++
		default:
			return nil, storagedrivers.Info{}, err
		}
	}
}

var (
	errTooLong = errors.New("too long to be read at once")
	errCrowded = errors.New("too many connections for now")
)

// reading is the opening of an object.
type reading struct {
	driver *Driver
	key    string
	rng    storagedrivers.Range
	lend   func(context.Context) (*conn, error)
	entry  entry // the latest look
}

// try opens the object once. The body is nil if there is nothing to read. errTooLong means that a
// connection for long use is needed, errCrowded that the caller should try again. lenient accepts a
// whole object without knowing its time.
func (r *reading) try(ctx context.Context, lenient bool) (*body, error) {
	c, err := r.driver.get(ctx, r.lend)
	if err != nil {
		return nil, err
	}
	b := &body{driver: r.driver, conn: c, ctx: ctx, path: c.path(r.key)}
	err = c.run(ctx, func() error { return b.look(r.rng) })
	if r.entry = b.entry; err == nil && b.left > 0 {
		err = r.open(ctx, b, lenient)
	}
	if r.driver.yields(ctx, c, err) {
		err = errCrowded
	}
	if err != nil || b.response == nil {
		_ = b.Close() // the error says more
		return nil, err
	}
	return b, nil
}

// open starts the download, and completes it if it is short.
func (r *reading) open(ctx context.Context, b *body, lenient bool) error {
	d := r.driver
	lenient = lenient && r.rng.Offset == 0 && b.toEnd
	weight := b.left
	if lenient {
		weight = maxWhole
	}
	whole := b.left <= maxWhole && d.memory.TryAcquire(weight)
	if whole {
		b.weight = weight
	} else if !d.pool.lengthen(b.conn) {
		return errTooLong
	}
	lenient = lenient && whole
	err := b.conn.run(ctx, func() error { return b.open(r.rng.Offset, lenient) })
	if err != nil {
		return err
	}
	b.stop = context.AfterFunc(ctx, b.conn.cut)
	switch {
	case lenient:
		return b.readAll()
	case whole:
		return b.readAhead()
	}
	return b.lookBeside(ctx)
}
