package storagedrivers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/caddymedia/media/storagedrivers/guard"
)

// An Appender is a [Driver] whose objects can grow in place, so that bytes that come in parts need
// no copy when they are whole. A growing object is visible, with the Info of the moment. Its entity
// tag may be that of an earlier one under its key. Its readers may also return bytes that were
// appended after they were opened.
type Appender interface {
	// Append opens the object under key for writing at its end, and makes the bytes durable that it
	// has. If it is missing and size is 0, Append creates it; if size is not 0, the error is
	// fs.ErrNotExist. ctx does not govern the writer.
	//
	// size is the size that the caller expects. If the object has another one, the error is
	// ErrChanged. If another caller has adopted it, or flushes it for a second, that is [ErrInUse].
	// An object that was committed is fs.ErrExist. The error is [errors.ErrUnsupported] if the
	// backend or the system lacks what is needed.
	Append(ctx context.Context, key string, size int64) (Appended, error)
}

// Appended is a writer of a growing object. It is for one goroutine.
//
// Writers need not know of each other. The errors of Append are also those of every call: if
// another writer has appended, the call fails with ErrChanged and does nothing. So of several
// writers at one size, in all processes that use the backend, one succeeds.
type Appended interface {
	// Write appends. After an error the bytes that it has counted stay.
	io.Writer

	// Flush makes the written bytes durable. If the backend reports that it has lost bytes, the
	// object is cut to its last size known as durable.
	Flush(ctx context.Context) error

	// Adopt ends the writer, whose bytes are flushed, and returns the object as staged data that
	// cannot be written. Its Commit moves no bytes. The object stays under its own key until the
	// caller deletes it, whatever happens to the staged data. Nothing is appended to it before the
	// staged data is closed.
	Adopt(ctx context.Context) (Staged, error)

	// Close ends the writer. All written bytes stay, durable or not. It must be called once, unless
	// Adopt has ended the writer.
	Close() error
}

// Growing are bytes that come in parts, until they are staged as a whole or removed. Any process
// that uses the backend can continue them. Of several writers at one size one succeeds. A Growing
// has the state of the moment when it was found, and what its own writers have added. It is for one
// goroutine.
//
// If the driver is an [Appender], the bytes are the object under the key. Otherwise, and if the
// system does not let that grow, they are objects under the key, a dot, and the offset in 16
// digits. Each of these is created once and never replaced.
type Growing struct {
	storage *Storage
	key     string
	growth
}

// growth is what is known of a growing object.
type growth struct {
	ends     []int64   // of its pieces, in ascending order
	modTime  time.Time // of the last piece
	appended bool      // it is one object
}

const (
	// pieceSize is the largest size of a piece, unless it must be stored as a whole.
	pieceSize = 16 << 20
	// pieceTime bounds storing a piece, which does not end with its caller.
	pieceTime = 2 * time.Minute
	// maxUnseen is how many pieces of other processes are found one by one. More are listed.
	maxUnseen = 8
)

// Growing finds the growing object under key; a missing one is empty.
func (s *Storage) Growing(ctx context.Context, key string) (*Growing, error) {
	g := s.NewGrowing(key)
	ctx = WithoutCache(ctx)
	if _, ok := s.driver.(Appender); ok {
		info, err := s.Stat(ctx, key)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if info.Size > 0 { // beside pieces it would be empty
			g.growth = growth{ends: []int64{info.Size}, modTime: info.ModTime, appended: true}
			return g, nil
		}
	}
	return g, g.findPieces(ctx)
}

// NewGrowing returns the growing object under a key that no one has used, or of which nothing need
// be known.
func (s *Storage) NewGrowing(key string) *Growing { return &Growing{storage: s, key: key} }

// findPieces finds the pieces behind those that are known.
func (g *Growing) findPieces(ctx context.Context) error {
	g.growth = g.storage.growths.get(g.key)
	for known := len(g.ends); len(g.ends) < known+maxUnseen; {
		info, err := g.storage.Stat(ctx, g.pieceKey(g.Size()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if info.Size == 0 { // some servers keep an empty object if a PUT is cut
			if len(g.ends) > known {
				g.storage.growths.set(g.key, g.growth)
			}
			return nil
		}
		g.add(info)
	}
	g.growth = growth{}
	for info, err := range g.storage.All(ctx, g.key+".") {
		if err != nil {
			return err
		}
		if info.Key == g.pieceKey(g.Size()) && info.Size > 0 {
			g.add(info)
		}
	}
	g.storage.growths.set(g.key, g.growth)
	return nil
}

// add adds a piece that begins at the end of those before.
func (g *Growing) add(info Info) {
	g.ends = append(g.ends, g.Size()+info.Size)
	g.modTime = info.ModTime
}

func (g *Growing) pieceKey(offset int64) string { return fmt.Sprintf("%s.%016d", g.key, offset) }

// pieces returns the objects that have the bytes, with their keys and sizes.
func (g *Growing) pieces() []Info {
	if g.appended {
		return []Info{{Key: g.key, Size: g.Size()}}
	}
	pieces := make([]Info, len(g.ends))
	begin := int64(0)
	for i, end := range g.ends {
		pieces[i] = Info{Key: g.pieceKey(begin), Size: end - begin}
		begin = end
	}
	return pieces
}

// Size returns the number of bytes that are stored.
func (g *Growing) Size() int64 {
	if len(g.ends) == 0 {
		return 0
	}
	return g.ends[len(g.ends)-1]
}

// Pieces returns the number of objects that have the bytes.
func (g *Growing) Pieces() int { return len(g.ends) }

// ModTime returns when the last bytes were stored before the object was found, by the clock of the
// backend; zero without bytes.
func (g *Growing) ModTime() time.Time { return g.modTime }

// Remove removes the bytes. Those that another process adds meanwhile may stay.
func (g *Growing) Remove(ctx context.Context) error {
	g.storage.growths.forget(g.key)
	if _, ok := g.storage.driver.(Appender); ok && len(g.ends) == 0 {
		return g.storage.Delete(ctx, g.key) // it may be empty
	}
	var errs []error
	for _, piece := range g.pieces() {
		err := g.storage.Delete(ctx, piece.Key)
		if errs = append(errs, err); errors.Is(err, ErrClosed) || ctx.Err() != nil {
			break // the others would fail too
		}
	}
	g.growth = growth{}
	return errors.Join(errs...)
}

// GrowthOptions say how bytes are added to a growing object.
type GrowthOptions struct {
	// Whole means that no byte is stored before a Flush. Otherwise bytes may be stored at any time.
	Whole bool
	// Reserve, if set, reserves a file for staged bytes.
	Reserve func() (release func(), err error)
}

// Append returns a writer at the end of the object. The error is [ErrChanged] if that has moved.
func (g *Growing) Append(ctx context.Context, opts GrowthOptions) (*GrowthWriter, error) {
	if opts.Reserve == nil {
		opts.Reserve = func() (func(), error) { return func() {}, nil }
	}
	w := &GrowthWriter{Growing: g, opts: opts, ctx: context.WithoutCancel(ctx)}
	if _, ok := g.storage.driver.(Appender); !ok || len(g.ends) > 0 && !g.appended {
		return w, nil
	}
	object, err := g.storage.appendTo(ctx, g.key, g.Size())
	if errors.Is(err, errors.ErrUnsupported) && !g.appended {
		return w, nil
	}
	if err != nil {
		return nil, moved(err)
	}
	w.object = object
	return w, nil
}

// moved returns ErrChanged for the errors of an object that another process has changed.
func moved(err error) error {
	for _, other := range []error{ErrInUse, fs.ErrExist, fs.ErrNotExist} {
		if errors.Is(err, other) {
			return fmt.Errorf("%w: %w", ErrChanged, err)
		}
	}
	return err
}

// GrowthWriter adds bytes to a growing object. If another process has added bytes, the error of its
// methods is [ErrChanged]. It is for one goroutine.
type GrowthWriter struct {
	*Growing
	opts   GrowthOptions
	ctx    context.Context //nolint:containedctx // of pieces that are stored while the next one is written
	object *appended       // that grows; nil for pieces

	piece   *piece // that is being written; nil for none
	storing sync.WaitGroup
	err     error // of the last piece that was stored
}

// Write adds bytes. It does not wait until they are stored.
func (w *GrowthWriter) Write(p []byte) (n int, err error) {
	if w.object != nil && !w.opts.Whole {
		n, err = w.object.Write(p)
		return n, moved(err)
	}
	for n < len(p) && err == nil {
		part := p[n:]
		if !w.opts.Whole {
			part = part[:min(int64(len(part)), pieceSize-w.piece.length())]
		}
		var written int
		written, err = w.write(part)
		n += written
		if err == nil && !w.opts.Whole && w.piece.length() == pieceSize {
			err = w.store()
		}
	}
	return n, err
}

// piece is a piece that is not stored yet.
type piece struct {
	staged  Staged
	size    int64
	release func()
}

// length returns the size of the piece; 0 for none.
func (p *piece) length() int64 {
	if p == nil {
		return 0
	}
	return p.size
}

func (p *piece) close() error {
	defer p.release()
	return p.staged.Close()
}

// write adds bytes to the piece, and begins one if there is none. It discards a piece that fails.
func (w *GrowthWriter) write(p []byte) (int, error) {
	if w.piece == nil {
		release, err := w.opts.Reserve()
		if err != nil {
			return 0, err
		}
		staged, err := w.storage.Stage(w.ctx)
		if err != nil {
			release()
			return 0, err
		}
		w.piece = &piece{staged: staged, release: release}
	}
	n, err := w.piece.staged.Write(p)
	w.piece.size += int64(n)
	if err != nil {
		err = errors.Join(err, w.piece.close())
		w.piece = nil
	}
	return n, err
}

// store begins to store the piece after the one before. The error is that of the one before;
// nothing is stored behind it.
func (w *GrowthWriter) store() error {
	w.storing.Wait()
	if w.err != nil || w.piece == nil {
		return w.err
	}
	p := w.piece
	w.piece = nil
	w.storing.Go(func() {
		commit := w.commit
		if w.object != nil {
			commit = w.copy
		}
		w.err = guard.Call(func() error { return commit(p) })
		_ = p.close() // nothing is written to it any more
	})
	return nil
}

// commit stores a piece as an object.
func (w *GrowthWriter) commit(p *piece) error {
	ctx, cancel := context.WithTimeout(w.ctx, pieceTime)
	defer cancel()
	change := Change{Staged: p.staged, Key: w.pieceKey(w.Size())}
	infos, err := w.storage.Commit(ctx, change)
	if errors.Is(err, fs.ErrExist) && w.removeEmpty(ctx, change.Key) {
		infos, err = w.storage.Commit(ctx, change)
	}
	if errors.Is(err, fs.ErrExist) {
		return moved(err)
	}
	if err != nil {
		return err
	}
	w.add(infos[0])
	w.storage.growths.set(w.key, w.growth)
	return nil
}

// removeEmpty removes an empty object, and reports whether there was one. No writer stores one, but
// some servers keep an object whose PUT was cut.
func (w *GrowthWriter) removeEmpty(ctx context.Context, key string) bool {
	info, err := w.storage.Stat(WithoutCache(ctx), key)
	if err != nil || info.Size > 0 {
		return false
	}
	_, err = w.storage.Commit(ctx, Change{Key: key, Options: PutOptions{IfMatch: info.ETag}})
	return err == nil
}

// copy appends a piece to the object that grows.
func (w *GrowthWriter) copy(p *piece) error {
	if _, err := p.staged.Seek(0, io.SeekStart); err != nil {
		return err
	}
	err := copyBytes(w.object, p.staged)
	return errors.Join(moved(err), w.flush(w.ctx))
}

// flush makes the bytes durable that were appended to the object.
func (w *GrowthWriter) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pieceTime)
	defer cancel()
	if err := w.object.Flush(ctx); err != nil {
		return moved(err)
	}
	if w.object.size > 0 {
		w.growth = growth{ends: []int64{w.object.size}, modTime: w.storage.now(), appended: true}
	}
	return nil
}

// Flush stores all bytes and makes them durable. It may follow a Write that has failed, whose piece
// is lost. The end of the request of ctx does not stop it.
func (w *GrowthWriter) Flush(ctx context.Context) error {
	if w.object != nil && !w.opts.Whole {
		return w.flush(ctx)
	}
	err := w.store()
	w.storing.Wait()
	return cmp.Or(err, w.err)
}

// Close ends the writer. Bytes that no Flush has stored may be lost.
func (w *GrowthWriter) Close() error {
	w.storing.Wait()
	var errs []error
	if w.piece != nil {
		errs = append(errs, w.piece.close())
	}
	if w.object != nil {
		errs = append(errs, w.object.Close())
	}
	return errors.Join(errs...)
}

// StageGrown returns the bytes of growing objects, one after the other, as staged data of s, which
// cannot be written. They are not moved if there is one object only, of s, which was appended to;
// nothing is added to it before the staged data is closed. Otherwise they are copied to the staged
// data that stage returns, or Stage if it is nil. The error is [ErrChanged] if bytes are missing.
func (s *Storage) StageGrown(ctx context.Context, stage func(context.Context) (Staged, error), objects ...*Growing) (Staged, error) {
	if len(objects) == 1 && objects[0].appended && objects[0].storage == s {
		adopted, err := objects[0].adopt(ctx)
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, errors.ErrUnsupported) {
			return adopted, moved(err)
		}
		// An earlier caller has committed it.
	}
	if stage == nil {
		stage = s.Stage
	}
	staged, err := stage(ctx)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := object.CopyTo(ctx, staged); err != nil {
			return nil, errors.Join(err, staged.Close())
		}
	}
	if _, err := staged.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, staged.Close())
	}
	return staged, nil
}

// adopt returns an appended object as staged data.
func (g *Growing) adopt(ctx context.Context) (Staged, error) {
	object, err := g.storage.appendTo(ctx, g.key, g.Size())
	if err != nil {
		return nil, err
	}
	staged, err := object.adopt(ctx)
	if err != nil {
		return nil, errors.Join(err, object.Close())
	}
	return staged, nil
}

// CopyTo copies the bytes. The error is ErrChanged if some are missing: then other pieces are there
// now.
func (g *Growing) CopyTo(ctx context.Context, to io.Writer) error {
	for _, piece := range g.pieces() {
		from, err := g.storage.OpenSeeker(ctx, piece.Key)
		if err == nil && from.Info.Size != piece.Size {
			err = errors.Join(ErrChanged, from.Close())
		}
		if err != nil {
			g.storage.growths.forget(g.key)
			return moved(err)
		}
		if err := errors.Join(copyBytes(to, from), from.Close()); err != nil {
			return err
		}
	}
	return nil
}

// copyBytes copies with large steps, which are fewer for a backend.
func copyBytes(to io.Writer, from io.Reader) error {
	buffer := copyBuffers.Get().(*[copySize]byte) //nolint:forcetypeassert // the pool holds nothing else
	defer copyBuffers.Put(buffer)
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buffer[:])
	return err
}

const copySize = 256 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// growths are the growing objects that a process has seen lately, so that it need not list their
// pieces.
type growths struct {
	mu     sync.Mutex
	byKey  map[string]growth
	pieces int // of all
}

// maxKnown is the largest number of pieces that are remembered.
const maxKnown = 1 << 14

func (k *growths) get(key string) growth {
	k.mu.Lock()
	defer k.mu.Unlock()
	g := k.byKey[key]
	g.ends = slices.Clip(g.ends) // others may add to them too
	return g
}

func (k *growths) set(key string, g growth) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(key)
	for other := range k.byKey { // any one: it is found again
		if k.pieces+len(g.ends) <= maxKnown {
			break
		}
		k.drop(other)
	}
	if k.byKey == nil {
		k.byKey = map[string]growth{}
	}
	k.byKey[key] = g
	k.pieces += len(g.ends)
}

func (k *growths) forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(key)
}

func (k *growths) drop(key string) {
	k.pieces -= len(k.byKey[key].ends)
	delete(k.byKey, key)
}

// appendTo opens the object under key for writing at its end, see [Appender]. The driver is one.
func (s *Storage) appendTo(ctx context.Context, key string, size int64) (*appended, error) {
	const op = "append"
	if !s.references.Acquire() {
		return nil, s.wrap(op, key, ErrClosed)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, ErrUnavailable)
	defer cancel()
	a := &appended{storage: s, key: key, size: size}
	err := s.run(ctx, op, key, func(ctx context.Context) (err error) {
		a.inner, err = s.driver.(Appender).Append(ctx, key, size) //nolint:forcetypeassert // see above
		return err
	})
	if err != nil {
		_ = s.references.Release() // the first error counts
		return nil, err
	}
	return a, nil
}

// appended is the Appended of a driver, with the checks of every storage. It keeps the storage open
// until it, or the staged data that it has become, is closed.
type appended struct {
	storage *Storage
	inner   Appended
	key     string
	size    int64
}

func (a *appended) Write(p []byte) (int, error) {
	n, err := a.inner.Write(p)
	a.size += int64(n)
	return n, a.storage.wrap("append", a.key, err)
}

// Flush is [Appended.Flush].
func (a *appended) Flush(ctx context.Context) error { return a.attempt(ctx, "flush", a.inner.Flush) }

// adopt is [Appended.Adopt].
func (a *appended) adopt(ctx context.Context) (Staged, error) {
	st := &staged{storage: a.storage, size: a.size}
	err := a.attempt(ctx, "adopt", func(ctx context.Context) (err error) {
		st.inner, err = a.inner.Adopt(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return st, nil
}

func (a *appended) attempt(ctx context.Context, op string, f func(context.Context) error) error {
	ctx, o := a.storage.begin(ctx, op, a.key)
	note(ctx, attribute.Int64("media.size", a.size))
	return o.end(a.storage.attempt(ctx, op, f))
}

// Close is [Appended.Close].
func (a *appended) Close() error {
	err := errors.Join(a.inner.Close(), a.storage.references.Release())
	return a.storage.wrap("append", a.key, err)
}
